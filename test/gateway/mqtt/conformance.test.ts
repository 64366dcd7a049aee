/**
 * The normative statements of MQTT 3.1.1 about packets after the CONNECT, as far as they concern a client that may
 * PUBLISH to `up`, SUBSCRIBE to `down`, UNSUBSCRIBE, PINGREQ, PUBACK and DISCONNECT: bytes in, bytes out, and whether
 * the connection closes. Each case is sent in one chunk and byte by byte, through the gateway's fast path, which reads
 * ordinary uplinks (a lock's messages) itself, and through the MQTT library only. Also: mutated packets do not disturb
 * honest locks.
 */
import t from 'tap';
import { runLoopTurns, startManualBroker } from '../../helpers/mqtt/manual-broker.js';
import { runMutated } from '../../helpers/mqtt/mutated-run.js';
import {
  bytes,
  connect,
  DISCONNECT,
  ILL_FORMED,
  MAC,
  makePacket,
  NUL,
  type PacketCase,
  PINGREQ,
  PINGRESP,
  puback,
  publish,
  SURROGATE,
  suback,
  testCases,
  text,
  unsuback,
} from '../../helpers/mqtt/packet-cases.js';
import { encodeLength } from '../../helpers/mqtt/raw-lock.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';

/** Number of mutated packets; the long test has a million. */
const MUTATED = 3000;

/**
 * Packets that an authenticated lock sends. Headers, packet ids and QoS are in hex: `publish(flags, topic, id)` makes a
 * PUBLISH with the payload `p` (flags: 1 retained, 2 QoS 1, 4 QoS 2, 8 sent again), `makePacket` a packet of a header
 * (82 is SUBSCRIBE, a2 UNSUBSCRIBE) and its parts.
 */
const PACKET_CASES: readonly PacketCase[] = [
  {
    statements: '3.1.0-2',
    title: 'a second CONNECT',
    send: connect(),
    closes: true,
    reportedReason: /CONNECT is not allowed/,
  },
  {
    statements: '3.3.4-1, 2.3.1-6, 4.3.2-2',
    title: 'QoS 1',
    send: publish('2', 'up', '000a'),
    answer: puback('000a'),
    stores: ['p'],
  },
  { statements: '3.3.4-1, 2.3.1-5', title: 'QoS 0', send: publish('0', 'up', ''), stores: ['p'] },
  {
    statements: '3.3.1-1',
    title: 'sent again',
    send: publish('a', 'up', 'ffff'),
    answer: puback('ffff'),
    stores: ['p'],
  },
  {
    statements: '3.3.4-1',
    title: 'no payload',
    send: publish('2', 'up', '0001', ''),
    answer: puback('0001'),
    stores: [''],
  },
  {
    statements: '3.3.1-2',
    title: 'QoS 0, sent again',
    send: publish('8', 'up', ''),
    closes: true,
    reportedReason: /DUP/,
  },
  {
    statements: '3.3.1-4',
    title: 'both bits of QoS',
    send: publish('6', 'up', '0001'),
    closes: true,
    reportedReason: /QoS/,
  },
  {
    statements: '3.3.5-2',
    title: 'QoS 2, which no lock uses',
    send: publish('4', 'up', '0001'),
    closes: true,
    reportedReason: /QoS 2/,
  },
  {
    statements: '3.3.5-2',
    title: 'retained',
    send: publish('3', 'up', '0001'),
    closes: true,
    reportedReason: /retained/,
  },
  {
    statements: '3.3.5-2',
    title: 'another topic',
    send: publish('2', 'down', '0001'),
    closes: true,
    reportedReason: /topic "down"/,
  },
  { statements: '3.3.2-2', title: 'a wildcard', send: publish('2', 'up/#', '0001'), closes: true, reportedReason: /#/ },
  {
    statements: '3.3.2-1, 1.5.3-1',
    title: 'a topic that is no UTF-8',
    send: makePacket('32', text(SURROGATE), '0001 70'),
    closes: true,
    reportedReason: /topic/,
  },
  {
    statements: '4.7.3-1',
    title: 'an empty topic',
    send: publish('2', '', '0001'),
    closes: true,
    reportedReason: /empty topic/,
  },
  {
    statements: '2.3.1-1',
    title: 'a PUBLISH with packet id 0',
    send: publish('2', 'up', '0000'),
    closes: true,
    reportedReason: /packet id 0/,
  },
  {
    statements: '4.8.0-1',
    title: 'an empty PUBLISH',
    send: makePacket('32'),
    closes: true,
    reportedReason: /PUBLISH: it ends within its topic/,
  },
  {
    statements: '4.8.0-1',
    title: 'half a topic length',
    send: makePacket('30', '00'),
    closes: true,
    reportedReason: /ends within its topic/,
  },
  {
    statements: '4.8.0-1',
    title: 'a topic longer than the packet',
    send: makePacket('30', '0003 7570'),
    closes: true,
    reportedReason: /ends within its topic/,
  },
  {
    statements: '4.8.0-1',
    title: 'no packet id, followed by another packet',
    send: [makePacket('32', text('up')), publish('2', 'up', '0007')],
    closes: true,
    reportedReason: /PUBLISH: it ends within its packet id/,
  },
  {
    statements: '4.8.0-1',
    title: 'half a packet id, followed by another packet',
    send: [makePacket('32', text('up'), '12'), bytes('3400')],
    closes: true,
    reportedReason: /PUBLISH: it ends within its packet id/,
  },
  {
    statements: '4.6.0-2',
    title: 'PUBACKs in order',
    send: [publish('2', 'up', '0002', 'a'), publish('2', 'up', '0001', 'b')],
    answer: puback('0002') + puback('0001'),
    stores: ['a', 'b'],
  },
  {
    statements: '3.8.4-1, -2, -6',
    title: 'SUBSCRIBE at QoS 1',
    send: makePacket('82', '0011', text('down'), '01'),
    answer: suback('0011', '01'),
  },
  {
    statements: '3.8.4-6',
    title: 'SUBSCRIBE at QoS 0',
    send: makePacket('82', '0011', text('down'), '00'),
    answer: suback('0011', '00'),
  },
  {
    statements: '3.8.4-3',
    title: 'SUBSCRIBE twice',
    send: [makePacket('82', '0011', text('down'), '00'), makePacket('82', '0012', text('down'), '01')],
    answer: suback('0011', '00') + suback('0012', '01'),
  },
  {
    statements: '3.8.3-2, 3.9.3-2',
    title: 'a wildcard, which is not supported',
    send: makePacket('82', '0011', text('#'), '01'),
    answer: suback('0011', '80'),
    reportedReason: /topic/,
  },
  {
    statements: '3.8.4-4, -5, 3.9.3-1',
    title: 'two filters, one of them refused',
    send: makePacket('82', '0011', text('down'), '01', text('other'), '01'),
    answer: suback('0011', '01', '80'),
    reportedReason: /topic "other"/,
  },
  {
    statements: '3.8.4-4, -5, 3.9.3-1',
    title: 'three filters, the first and the last refused',
    send: makePacket('82', '0011', text('a'), '00', text('down'), '01', text('b'), '02'),
    answer: suback('0011', '80', '01', '80'),
    reportedReason: /topic/,
  },
  {
    statements: '3.8.4-5, 3.9.3-1',
    title: 'the same filter twice',
    send: makePacket('82', '0011', text('down'), '00', text('down'), '01'),
    answer: suback('0011', '00', '01'),
  },
  {
    statements: '3.8.1-1, 2.2.2-2',
    title: 'a SUBSCRIBE with other flags',
    send: makePacket('80', '0011', text('down'), '01'),
    closes: true,
    reportedReason: /flags/,
  },
  {
    statements: '3.8.3-3',
    title: 'a SUBSCRIBE without a filter',
    send: makePacket('82', '0011'),
    closes: true,
    reportedReason: /SUBSCRIBE: .*no topic filter/,
  },
  {
    statements: '3.8.3-3',
    title: 'an empty SUBSCRIBE',
    send: makePacket('82'),
    closes: true,
    reportedReason: /ends within its packet id/,
  },
  {
    statements: '2.3.1-1',
    title: 'a SUBSCRIBE with packet id 0',
    send: makePacket('82', '0000', text('down'), '01'),
    closes: true,
    reportedReason: /packet id 0/,
  },
  {
    statements: '3.8.3-4',
    title: 'reserved bits of QoS',
    send: makePacket('82', '0011', text('down'), '05'),
    closes: true,
    reportedReason: /QoS/,
  },
  {
    statements: '3.8.3-4',
    title: 'QoS 3',
    send: makePacket('82', '0011', text('down'), '03'),
    closes: true,
    reportedReason: /QoS/,
  },
  {
    statements: '4.8.0-1',
    title: 'a filter without its QoS',
    send: makePacket('82', '0011', text('down')),
    closes: true,
    reportedReason: /ends within its QoS/,
  },
  {
    statements: '4.8.0-1',
    title: 'a second filter without its QoS',
    send: makePacket('82', '0011', text('down'), '01', text('down')),
    closes: true,
    reportedReason: /ends within its QoS/,
  },
  {
    statements: '4.8.0-1',
    title: 'a filter longer than the packet',
    send: makePacket('82', '0011', '0009 646f'),
    closes: true,
    reportedReason: /ends within its topic filter/,
  },
  {
    statements: '4.7.3-1',
    title: 'an empty filter',
    send: makePacket('82', '0011', text(''), '01'),
    closes: true,
    reportedReason: /empty topic filter/,
  },
  {
    statements: '3.8.3-1, 1.5.3-1',
    title: 'a filter that is no UTF-8',
    send: makePacket('82', '0011', text(ILL_FORMED), '01'),
    closes: true,
    reportedReason: /UTF-8/,
  },
  {
    statements: '1.5.3-1',
    title: 'a filter with a surrogate',
    send: makePacket('82', '0011', text(SURROGATE), '01'),
    closes: true,
    reportedReason: /UTF-8/,
  },
  {
    statements: '1.5.3-1',
    title: 'a filter that ends within a character',
    send: makePacket('82', '0011', text(Buffer.from([0xe2, 0x82])), '01'),
    closes: true,
    reportedReason: /UTF-8/,
  },
  {
    statements: '4.7.3-2, 1.5.3-2',
    title: 'U+0000 in a filter',
    send: makePacket('82', '0011', text(NUL), '01'),
    closes: true,
    reportedReason: /U\+0000/,
  },
  {
    statements: '1.5.3-1',
    title: 'characters of two, three and four bytes',
    send: makePacket('82', '0011', text('é€😀'), '01'),
    answer: suback('0011', '80'),
    reportedReason: /topic/,
  },
  {
    statements: '1.5.3-3',
    title: 'a byte order mark is part of the filter',
    send: makePacket('82', '0011', text('\ufeffdown'), '01'),
    answer: suback('0011', '80'),
    reportedReason: /topic/,
  },
  {
    statements: '4.7.1-2',
    title: 'a # that is not the last',
    send: makePacket('82', '0011', text('#/down'), '01'),
    closes: true,
    reportedReason: /#/,
  },
  {
    statements: '3.10.4-4',
    title: 'UNSUBSCRIBE',
    send: [makePacket('82', '0011', text('down'), '01'), makePacket('a2', '0012', text('down'))],
    answer: suback('0011', '01') + unsuback('0012'),
  },
  {
    statements: '3.10.4-5',
    title: 'UNSUBSCRIBE from a filter without a subscription',
    send: makePacket('a2', '0012', text('other')),
    answer: unsuback('0012'),
  },
  {
    statements: '3.10.4-6',
    title: 'UNSUBSCRIBE from two filters',
    send: makePacket('a2', '0012', text('down'), text('other')),
    answer: unsuback('0012'),
  },
  {
    statements: '3.10.1-1, 2.2.2-2',
    title: 'an UNSUBSCRIBE with other flags',
    send: makePacket('a0', '0012', text('down')),
    closes: true,
    reportedReason: /flags/,
  },
  {
    statements: '3.10.3-2',
    title: 'an UNSUBSCRIBE without a filter',
    send: makePacket('a2', '0012'),
    closes: true,
    reportedReason: /no topic filter/,
  },
  {
    statements: '3.10.3-2',
    title: 'an empty UNSUBSCRIBE',
    send: makePacket('a2'),
    closes: true,
    reportedReason: /ends within its packet id/,
  },
  {
    statements: '2.3.1-1',
    title: 'an UNSUBSCRIBE with packet id 0',
    send: makePacket('a2', '0000', text('down')),
    closes: true,
    reportedReason: /packet id 0/,
  },
  {
    statements: '3.10.3-1',
    title: 'an UNSUBSCRIBE that is no UTF-8',
    send: makePacket('a2', '0012', text(ILL_FORMED)),
    closes: true,
    reportedReason: /UTF-8/,
  },
  {
    statements: '4.7.3-1',
    title: 'an UNSUBSCRIBE from an empty filter',
    send: makePacket('a2', '0012', text('')),
    closes: true,
    reportedReason: /empty topic filter/,
  },
  {
    statements: '3.4',
    title: 'a PUBACK of a packet that the gateway did not send',
    send: [bytes('40020005'), bytes(PINGREQ)],
    answer: PINGRESP,
  },
  {
    statements: '4.8.0-1',
    title: 'an empty PUBACK',
    send: [bytes('4000'), bytes(PINGREQ)],
    closes: true,
    reportedReason: /PUBACK/,
  },
  {
    statements: '4.8.0-1',
    title: 'a short PUBACK',
    send: [bytes('400105'), bytes(PINGREQ)],
    closes: true,
    reportedReason: /PUBACK/,
  },
  { statements: '4.8.0-1', title: 'a long PUBACK', send: bytes('4003000500'), closes: true, reportedReason: /PUBACK/ },
  {
    statements: '2.3.1-1',
    title: 'a PUBACK with packet id 0',
    send: bytes('40020000'),
    closes: true,
    reportedReason: /packet id 0/,
  },
  {
    statements: '2.2.2-2',
    title: 'a PUBACK with flags',
    send: bytes('42020005'),
    closes: true,
    reportedReason: /flags/,
  },
  { statements: '3.12.4-1', title: 'PINGREQ', send: bytes(PINGREQ), answer: PINGRESP },
  { statements: '2.2.2-2', title: 'a PINGREQ with flags', send: bytes('c100'), closes: true, reportedReason: /flags/ },
  {
    statements: '4.8.0-1',
    title: 'a PINGREQ with a body',
    send: bytes('c00100'),
    closes: true,
    reportedReason: /PINGREQ/,
  },
  { statements: '3.14.4-2', title: 'DISCONNECT', send: bytes(DISCONNECT), closes: true },
  {
    statements: '3.14.4-2',
    title: 'an uplink after a DISCONNECT',
    send: [bytes(DISCONNECT), publish('2', 'up', '0001')],
    closes: true,
  },
  {
    statements: '3.14.1-1',
    title: 'a DISCONNECT with flags',
    send: bytes('e100'),
    closes: true,
    reportedReason: /flags/,
  },
  {
    statements: '4.8.0-1',
    title: 'a DISCONNECT with a body',
    send: bytes('e00100'),
    closes: true,
    reportedReason: /DISCONNECT/,
  },
  {
    statements: '3.6.1-1',
    title: 'a PUBREL',
    send: bytes('62020001'),
    closes: true,
    reportedReason: /PUBREL is not allowed/,
  },
  {
    statements: '3.13',
    title: 'a PINGRESP, which only servers send',
    send: bytes('d000'),
    closes: true,
    reportedReason: /PINGRESP is not allowed/,
  },
  {
    statements: '2.2.1',
    title: 'a packet of type 0',
    send: bytes('0000'),
    closes: true,
    reportedReason: /not allowed/,
  },
  {
    statements: '2.2.3',
    title: 'a length of five bytes',
    send: Buffer.concat([bytes('32'), Buffer.from([0xff, 0xff, 0xff, 0xff, 1])]),
    closes: true,
    reportedReason: /length/,
  },
  {
    statements: '2.2.3',
    title: 'a length over the limit',
    send: Buffer.from([0x32, ...encodeLength(65_537)]),
    closes: true,
    reportedReason: /65,537/,
  },
];

const isAuthenticated = true;
t.test('every packet of an authenticated lock gets its expected answer', (t) =>
  testCases(t, PACKET_CASES, isAuthenticated),
);

t.test(
  '[MQTT-3.10.4-2] commands are for a session that listens: not after an UNSUBSCRIBE, again after the next SUBSCRIBE',
  async (t) => {
    const { connect, broker } = await startManualBroker(t);
    const lock = await connect(MAC);
    // The manual broker gives a lock its MAC, read as a number, as the device id.
    const session = broker.sessions.ofLock(Number.parseInt(MAC, 16));
    const listening: (boolean | undefined)[] = [];
    const subscribe = makePacket('82', '0011', text('down'), '01');
    for (const send of [
      subscribe,
      makePacket('a2', '0012', text('other')),
      makePacket('a2', '0013', text('down')),
      subscribe,
    ]) {
      lock.send(send);
      await runLoopTurns();
      listening.push(session?.isListening);
    }
    t.same(listening, [true, true, false, true]);
  },
);

// `runMutated` reports a fault also if an honest lock's ping gets no answer within some turns of the event loop.
t.test('mutated packets get no wrong answers and do not delay honest locks', async (t) => {
  const seed = chooseSeed();
  const result = await runMutated(t, seed, MUTATED);
  const { streams, mutated, accepted, closed, uplinks, maxTurns } = result;
  t.same(result.faults, [], `LOCKGATE_SEED=${seed} npm test -- dist/test/gateway/mqtt/conformance.test.js`);
  t.comment(`seed ${seed}: ${mutated} packets in ${streams} streams, ${accepted} accepted, ${closed} closed`);
  t.comment(`an honest lock's ping waited at most ${maxTurns} turns of the event loop`);
  // Otherwise the mutations would break nearly every packet, or hardly any, and test only one way of handling it.
  t.ok(accepted > streams / 3 && closed > streams / 3 && uplinks > streams / 20, `${uplinks} uplinks among them`);
  t.equal(result.openConnections, 0, 'no connection is open at the end');
});
