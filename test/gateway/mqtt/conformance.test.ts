/**
 * The normative statements of MQTT 3.1.1, as far as they concern a client that may CONNECT, PUBLISH to `up`, SUBSCRIBE
 * to `down`, UNSUBSCRIBE, PINGREQ, PUBACK and DISCONNECT: bytes in, bytes out, and whether the connection ends. Each
 * row is sent whole and byte by byte, through the fast path and through the library only.
 */
import t, { type Test } from 'tap';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { runLoopTurns, type SimulatedSocket, startManualBroker } from '../../helpers/mqtt/manual-broker.js';
import { runMutated } from '../../helpers/mqtt/mutated-run.js';
import { encodeLength, packet } from '../../helpers/mqtt/raw-lock.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';

const MAC = testMac();
const SECRET = 'lgs_hand';
/** Number of mutated packets; the long test has a million. */
const MUTATED = 3000;
/** A CONNACK with this return code. */
const connack = (code: number): string => `200200${code.toString(16).padStart(2, '0')}`;
const [PINGREQ, PINGRESP, DISCONNECT] = ['c000', 'd000', 'e000'];

type Part = string | { readonly text: string | Buffer };

/** Bytes of hex digits and texts: a text gets its length in two bytes before it (1.5.3). */
function bytes(...parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part.replaceAll(' ', ''), 'hex');
      const text = Buffer.from(part.text);
      return Buffer.concat([Buffer.from([text.length >> 8, text.length & 0xff]), text]);
    }),
  );
}

const text = (value: string | Buffer) => ({ text: value });
/** A packet of a header in hex and what is behind its length. */
const made = (header: string, ...parts: readonly Part[]): Buffer =>
  packet(Number.parseInt(header, 16), bytes(...parts));

interface ConnectParts {
  readonly name?: string;
  readonly level?: string;
  readonly flags?: string;
  readonly header?: string;
  readonly rest?: readonly Part[];
}

/** A valid CONNECT of the lock, with these members replaced. */
function connect({ name = 'MQTT', level = '04', flags = 'c2', header = '10', rest }: ConnectParts = {}): Buffer {
  return made(header, text(name), level, flags, '012c', ...(rest ?? [text(MAC), text(MAC), text(SECRET)]));
}

const publish = (flags: string, topic: string, id: string, payload = 'p'): Buffer =>
  made(`3${flags}`, text(topic), id, Buffer.from(payload).toString('hex'));
const puback = (id: string): string => `4002${id}`;
const suback = (id: string, ...codes: string[]): string => packet(0x90, bytes(id, ...codes)).toString('hex');
const unsuback = (id: string): string => `b002${id}`;

interface Row {
  /** The statements, as MQTT 3.1.1's appendix B numbers them. */
  readonly of: string;
  readonly what: string;
  readonly say: Buffer | readonly Buffer[];
  /** The expected answer, hex; none if undefined. */
  readonly hears?: string;
  /** Whether the gateway closes the connection; false if undefined. */
  readonly ends?: true;
  /** The payloads that are stored; none if undefined. */
  readonly stores?: readonly string[];
  /** The reason that operators see if something is refused. */
  readonly why?: RegExp;
}

const ILL_FORMED = Buffer.from([0x64, 0xc0, 0x80]);
const SURROGATE = Buffer.from([0xed, 0xa0, 0x80]);
const NUL = 'do\0wn';

/** Rows that are sent as the first packet of a connection. */
const CONNECTS: readonly Row[] = [
  { of: '3.1.4-4, 3.2.0-1', what: 'a good CONNECT', say: connect(), hears: connack(0) },
  { of: '3.2.2-3', what: 'clean session 0, nothing kept', say: connect({ flags: 'c0' }), hears: connack(0) },
  { of: '3.1.2-1', what: 'MQTT 3.1', say: connect({ name: 'MQIsdp', level: '03' }), hears: connack(0) },
  {
    of: '3.1.2-2',
    what: 'MQTT 3.1 by the name of 3.1.1',
    say: connect({ name: 'MQIsdp' }),
    hears: connack(1),
    ends: true,
    why: /level 4/,
  },
  { of: '3.1.0-1', what: 'a PUBLISH first', say: publish('2', 'up', '0001'), ends: true, why: /not a CONNECT/ },
  { of: '3.1.0-1', what: 'a PINGREQ first', say: bytes(PINGREQ), ends: true, why: /not a CONNECT/ },
  { of: '2.2.2-2', what: 'flags in the header', say: connect({ header: '11' }), ends: true, why: /flags/ },
  { of: '3.1.2-1', what: 'another protocol name', say: connect({ name: 'MQTX' }), ends: true, why: /protocol name/ },
  ...['00', '03', '05', '06', '7f', '84', 'ff'].map((level) => ({
    of: '3.1.2-2',
    what: `protocol level 0x${level}`,
    say: connect({ level }),
    hears: connack(1),
    ends: true as const,
    why: /protocol level/,
  })),
  {
    of: '3.1.2-2',
    what: 'a CONNECT of MQTT 5, whose fields stand elsewhere',
    say: connect({ level: '05', rest: ['05 11 00000078', text(MAC), text(MAC), text(SECRET)] }),
    hears: connack(1),
    ends: true,
    why: /protocol level 5/,
  },
  { of: '3.1.2-3', what: 'the reserved flag', say: connect({ flags: 'c3' }), ends: true, why: /reserved/ },
  { of: '3.1.2-11, -13', what: 'will QoS without a will', say: connect({ flags: 'ca' }), ends: true, why: /will/ },
  { of: '3.1.2-11, -15', what: 'will retain without a will', say: connect({ flags: 'e2' }), ends: true, why: /will/ },
  {
    of: '3.1.2-14',
    what: 'will QoS 3',
    say: connect({ flags: 'de', rest: [text(MAC), text('up'), text('x'), text(MAC), text(SECRET)] }),
    ends: true,
    why: /will/,
  },
  {
    of: '3.1.2-9',
    what: 'a will without its message',
    say: connect({ flags: '06', rest: [text(MAC), text('up')] }),
    ends: true,
    why: /ends within its will message/,
  },
  {
    of: '3.1.3-10',
    what: 'a will topic that is no UTF-8',
    say: connect({ flags: 'c6', rest: [text(MAC), text(ILL_FORMED), text('x'), text(MAC), text(SECRET)] }),
    ends: true,
    why: /UTF-8/,
  },
  {
    of: '3.1.2-8',
    what: 'a will, which no lock has',
    say: connect({ flags: 'c6', rest: [text(MAC), text('up'), text('x'), text(MAC), text(SECRET)] }),
    hears: connack(5),
    ends: true,
    why: /will/,
  },
  {
    of: '3.1.2-22',
    what: 'a password without a user name',
    say: connect({ flags: '42', rest: [text(MAC), text(SECRET)] }),
    ends: true,
    why: /password/,
  },
  {
    of: '3.1.2-19',
    what: 'no user name where the flag says so',
    say: connect({ flags: '82', rest: [text(MAC)] }),
    ends: true,
    why: /ends within its user name/,
  },
  {
    of: '3.1.2-21',
    what: 'no password where the flag says so',
    say: connect({ rest: [text(MAC), text(MAC)] }),
    ends: true,
    why: /ends within its password/,
  },
  {
    of: '3.1.2-18, -20',
    what: 'fields that no flag announces',
    say: connect({ flags: '02' }),
    ends: true,
    why: /bytes after its last field/,
  },
  {
    of: '3.1.4-1',
    what: 'a password longer than the packet',
    say: connect({ rest: [text(MAC), text(MAC), '0009 61'] }),
    ends: true,
    why: /ends within its password/,
  },
  { of: '3.1.3-3', what: 'no client id', say: connect({ rest: [] }), ends: true, why: /ends within its client id/ },
  {
    of: '3.1.4-1',
    what: 'half a keepalive',
    say: made('10', text('MQTT'), '04c2', '01'),
    ends: true,
    why: /keepalive/,
  },
  { of: '3.1.4-1', what: 'an empty CONNECT', say: made('10'), ends: true, why: /protocol name/ },
  { of: '3.1.4-1', what: 'half a protocol name', say: made('10', '0004 4d51'), ends: true, why: /protocol name/ },
  { of: '3.1.4-1', what: 'no protocol level', say: made('10', text('MQTT')), ends: true, why: /protocol level/ },
  {
    of: '3.1.3-4, 1.5.3-1',
    what: 'a client id that is no UTF-8',
    say: connect({ rest: [text(SURROGATE), text(MAC), text(SECRET)] }),
    ends: true,
    why: /client id .*UTF-8/,
  },
  {
    of: '1.5.3-2',
    what: 'U+0000 in the client id',
    say: connect({ rest: [text(NUL), text(MAC), text(SECRET)] }),
    ends: true,
    why: /client id .*U\+0000/,
  },
  {
    of: '3.1.3-11',
    what: 'a user name that is no UTF-8',
    say: connect({ rest: [text(MAC), text(ILL_FORMED), text(SECRET)] }),
    ends: true,
    why: /user name .*UTF-8/,
  },
  {
    of: '1.5.3-3',
    what: 'a byte order mark is part of the client id',
    say: connect({ rest: [text(`\ufeff${MAC}`), text(MAC), text(SECRET)] }),
    hears: connack(5),
    ends: true,
    why: /client id and user name/,
  },
  {
    of: '3.1.3-8',
    what: 'an empty client id, clean session 0',
    say: connect({ flags: 'c0', rest: [text(''), text(MAC), text(SECRET)] }),
    hears: connack(2),
    ends: true,
    why: /client id is empty/,
  },
  {
    of: '3.1.3-6',
    what: 'an empty client id, clean session 1: no identity',
    say: connect({ rest: [text(''), text(MAC), text(SECRET)] }),
    hears: connack(5),
    ends: true,
    why: /client id and user name/,
  },
  {
    of: '3.2.2-4, -5, 3.1.4-5',
    what: 'a wrong password, and an uplink behind it',
    say: [connect({ rest: [text(MAC), text(MAC), text('no')] }), publish('2', 'up', '0001')],
    hears: connack(5),
    ends: true,
    why: /wrong secret/,
  },
];

/** Rows that an authenticated lock sends. */
const PACKETS: readonly Row[] = [
  { of: '3.1.0-2', what: 'a second CONNECT', say: connect(), ends: true, why: /CONNECT is not allowed/ },
  {
    of: '3.3.4-1, 2.3.1-6, 4.3.2-2',
    what: 'QoS 1',
    say: publish('2', 'up', '000a'),
    hears: puback('000a'),
    stores: ['p'],
  },
  { of: '3.3.4-1, 2.3.1-5', what: 'QoS 0', say: publish('0', 'up', ''), stores: ['p'] },
  { of: '3.3.1-1', what: 'sent again', say: publish('a', 'up', 'ffff'), hears: puback('ffff'), stores: ['p'] },
  { of: '3.3.4-1', what: 'no payload', say: publish('2', 'up', '0001', ''), hears: puback('0001'), stores: [''] },
  { of: '3.3.1-2', what: 'QoS 0, sent again', say: publish('8', 'up', ''), ends: true, why: /DUP/ },
  { of: '3.3.1-4', what: 'both bits of QoS', say: publish('6', 'up', '0001'), ends: true, why: /QoS/ },
  { of: '3.3.5-2', what: 'QoS 2, which no lock uses', say: publish('4', 'up', '0001'), ends: true, why: /QoS 2/ },
  { of: '3.3.5-2', what: 'retained', say: publish('3', 'up', '0001'), ends: true, why: /retained/ },
  { of: '3.3.5-2', what: 'another topic', say: publish('2', 'down', '0001'), ends: true, why: /topic "down"/ },
  { of: '3.3.2-2', what: 'a wildcard', say: publish('2', 'up/#', '0001'), ends: true, why: /#/ },
  {
    of: '3.3.2-1, 1.5.3-1',
    what: 'a topic that is no UTF-8',
    say: made('32', text(SURROGATE), '0001 70'),
    ends: true,
    why: /topic/,
  },
  { of: '4.7.3-1', what: 'an empty topic', say: publish('2', '', '0001'), ends: true, why: /empty topic/ },
  {
    of: '2.3.1-1',
    what: 'a PUBLISH with packet id 0',
    say: publish('2', 'up', '0000'),
    ends: true,
    why: /packet id 0/,
  },
  { of: '4.8.0-1', what: 'an empty PUBLISH', say: made('32'), ends: true, why: /PUBLISH: it ends within its topic/ },
  { of: '4.8.0-1', what: 'half a topic length', say: made('30', '00'), ends: true, why: /ends within its topic/ },
  {
    of: '4.8.0-1',
    what: 'a topic longer than the packet',
    say: made('30', '0003 7570'),
    ends: true,
    why: /ends within its topic/,
  },
  {
    of: '4.8.0-1',
    what: 'no packet id, and another packet behind it',
    say: [made('32', text('up')), publish('2', 'up', '0007')],
    ends: true,
    why: /PUBLISH: it ends within its packet id/,
  },
  {
    of: '4.8.0-1',
    what: 'half a packet id, and another packet behind it',
    say: [made('32', text('up'), '12'), bytes('3400')],
    ends: true,
    why: /PUBLISH: it ends within its packet id/,
  },
  {
    of: '4.6.0-2',
    what: 'PUBACKs in order',
    say: [publish('2', 'up', '0002', 'a'), publish('2', 'up', '0001', 'b')],
    hears: puback('0002') + puback('0001'),
    stores: ['a', 'b'],
  },
  {
    of: '3.8.4-1, -2, -6',
    what: 'SUBSCRIBE at QoS 1',
    say: made('82', '0011', text('down'), '01'),
    hears: suback('0011', '01'),
  },
  {
    of: '3.8.4-6',
    what: 'SUBSCRIBE at QoS 0',
    say: made('82', '0011', text('down'), '00'),
    hears: suback('0011', '00'),
  },
  {
    of: '3.8.4-3',
    what: 'SUBSCRIBE twice',
    say: [made('82', '0011', text('down'), '00'), made('82', '0012', text('down'), '01')],
    hears: suback('0011', '00') + suback('0012', '01'),
  },
  {
    of: '3.8.3-2, 3.9.3-2',
    what: 'a wildcard, which is not supported',
    say: made('82', '0011', text('#'), '01'),
    hears: suback('0011', '80'),
    why: /topic/,
  },
  {
    of: '3.8.4-4, -5, 3.9.3-1',
    what: 'two filters, one of them refused',
    say: made('82', '0011', text('down'), '01', text('other'), '01'),
    hears: suback('0011', '01', '80'),
    why: /topic "other"/,
  },
  {
    of: '3.8.4-4, -5, 3.9.3-1',
    what: 'three filters, the first and the last refused',
    say: made('82', '0011', text('a'), '00', text('down'), '01', text('b'), '02'),
    hears: suback('0011', '80', '01', '80'),
    why: /topic/,
  },
  {
    of: '3.8.4-5, 3.9.3-1',
    what: 'the same filter twice',
    say: made('82', '0011', text('down'), '00', text('down'), '01'),
    hears: suback('0011', '00', '01'),
  },
  {
    of: '3.8.1-1, 2.2.2-2',
    what: 'a SUBSCRIBE with other flags',
    say: made('80', '0011', text('down'), '01'),
    ends: true,
    why: /flags/,
  },
  {
    of: '3.8.3-3',
    what: 'a SUBSCRIBE without a filter',
    say: made('82', '0011'),
    ends: true,
    why: /SUBSCRIBE: .*no topic filter/,
  },
  { of: '3.8.3-3', what: 'an empty SUBSCRIBE', say: made('82'), ends: true, why: /ends within its packet id/ },
  {
    of: '2.3.1-1',
    what: 'a SUBSCRIBE with packet id 0',
    say: made('82', '0000', text('down'), '01'),
    ends: true,
    why: /packet id 0/,
  },
  { of: '3.8.3-4', what: 'reserved bits of QoS', say: made('82', '0011', text('down'), '05'), ends: true, why: /QoS/ },
  { of: '3.8.3-4', what: 'QoS 3', say: made('82', '0011', text('down'), '03'), ends: true, why: /QoS/ },
  {
    of: '4.8.0-1',
    what: 'a filter without its QoS',
    say: made('82', '0011', text('down')),
    ends: true,
    why: /ends within its QoS/,
  },
  {
    of: '4.8.0-1',
    what: 'a second filter without its QoS',
    say: made('82', '0011', text('down'), '01', text('down')),
    ends: true,
    why: /ends within its QoS/,
  },
  {
    of: '4.8.0-1',
    what: 'a filter longer than the packet',
    say: made('82', '0011', '0009 646f'),
    ends: true,
    why: /ends within its topic filter/,
  },
  {
    of: '4.7.3-1',
    what: 'an empty filter',
    say: made('82', '0011', text(''), '01'),
    ends: true,
    why: /empty topic filter/,
  },
  {
    of: '3.8.3-1, 1.5.3-1',
    what: 'a filter that is no UTF-8',
    say: made('82', '0011', text(ILL_FORMED), '01'),
    ends: true,
    why: /UTF-8/,
  },
  {
    of: '1.5.3-1',
    what: 'a filter with a surrogate',
    say: made('82', '0011', text(SURROGATE), '01'),
    ends: true,
    why: /UTF-8/,
  },
  {
    of: '1.5.3-1',
    what: 'a filter that ends within a character',
    say: made('82', '0011', text(Buffer.from([0xe2, 0x82])), '01'),
    ends: true,
    why: /UTF-8/,
  },
  {
    of: '4.7.3-2, 1.5.3-2',
    what: 'U+0000 in a filter',
    say: made('82', '0011', text(NUL), '01'),
    ends: true,
    why: /U\+0000/,
  },
  {
    of: '1.5.3-1',
    what: 'characters of two, three and four bytes',
    say: made('82', '0011', text('é€😀'), '01'),
    hears: suback('0011', '80'),
    why: /topic/,
  },
  {
    of: '1.5.3-3',
    what: 'a byte order mark is part of the filter',
    say: made('82', '0011', text('\ufeffdown'), '01'),
    hears: suback('0011', '80'),
    why: /topic/,
  },
  {
    of: '4.7.1-2',
    what: 'a # that is not the last',
    say: made('82', '0011', text('#/down'), '01'),
    ends: true,
    why: /#/,
  },
  {
    of: '3.10.4-4',
    what: 'UNSUBSCRIBE',
    say: [made('82', '0011', text('down'), '01'), made('a2', '0012', text('down'))],
    hears: suback('0011', '01') + unsuback('0012'),
  },
  {
    of: '3.10.4-5',
    what: 'UNSUBSCRIBE from what it never subscribed to',
    say: made('a2', '0012', text('other')),
    hears: unsuback('0012'),
  },
  {
    of: '3.10.4-6',
    what: 'UNSUBSCRIBE from two',
    say: made('a2', '0012', text('down'), text('other')),
    hears: unsuback('0012'),
  },
  {
    of: '3.10.1-1, 2.2.2-2',
    what: 'an UNSUBSCRIBE with other flags',
    say: made('a0', '0012', text('down')),
    ends: true,
    why: /flags/,
  },
  {
    of: '3.10.3-2',
    what: 'an UNSUBSCRIBE without a filter',
    say: made('a2', '0012'),
    ends: true,
    why: /no topic filter/,
  },
  { of: '3.10.3-2', what: 'an empty UNSUBSCRIBE', say: made('a2'), ends: true, why: /ends within its packet id/ },
  {
    of: '2.3.1-1',
    what: 'an UNSUBSCRIBE with packet id 0',
    say: made('a2', '0000', text('down')),
    ends: true,
    why: /packet id 0/,
  },
  {
    of: '3.10.3-1',
    what: 'an UNSUBSCRIBE that is no UTF-8',
    say: made('a2', '0012', text(ILL_FORMED)),
    ends: true,
    why: /UTF-8/,
  },
  {
    of: '4.7.3-1',
    what: 'an UNSUBSCRIBE from an empty filter',
    say: made('a2', '0012', text('')),
    ends: true,
    why: /empty topic filter/,
  },
  { of: '3.4', what: 'a PUBACK that nobody waits for', say: [bytes('40020005'), bytes(PINGREQ)], hears: PINGRESP },
  { of: '4.8.0-1', what: 'an empty PUBACK', say: [bytes('4000'), bytes(PINGREQ)], ends: true, why: /PUBACK/ },
  { of: '4.8.0-1', what: 'a short PUBACK', say: [bytes('400105'), bytes(PINGREQ)], ends: true, why: /PUBACK/ },
  { of: '4.8.0-1', what: 'a long PUBACK', say: bytes('4003000500'), ends: true, why: /PUBACK/ },
  { of: '2.3.1-1', what: 'a PUBACK with packet id 0', say: bytes('40020000'), ends: true, why: /packet id 0/ },
  { of: '2.2.2-2', what: 'a PUBACK with flags', say: bytes('42020005'), ends: true, why: /flags/ },
  { of: '3.12.4-1', what: 'PINGREQ', say: bytes(PINGREQ), hears: PINGRESP },
  { of: '2.2.2-2', what: 'a PINGREQ with flags', say: bytes('c100'), ends: true, why: /flags/ },
  { of: '4.8.0-1', what: 'a PINGREQ with a body', say: bytes('c00100'), ends: true, why: /PINGREQ/ },
  { of: '3.14.4-2', what: 'DISCONNECT', say: bytes(DISCONNECT), ends: true },
  {
    of: '3.14.4-2',
    what: 'an uplink behind a DISCONNECT',
    say: [bytes(DISCONNECT), publish('2', 'up', '0001')],
    ends: true,
  },
  { of: '3.14.1-1', what: 'a DISCONNECT with flags', say: bytes('e100'), ends: true, why: /flags/ },
  { of: '4.8.0-1', what: 'a DISCONNECT with a body', say: bytes('e00100'), ends: true, why: /DISCONNECT/ },
  { of: '3.6.1-1', what: 'a PUBREL', say: bytes('62020001'), ends: true, why: /PUBREL is not allowed/ },
  { of: '3.13', what: 'what servers say', say: bytes('d000'), ends: true, why: /PINGRESP is not allowed/ },
  { of: '2.2.1', what: 'a packet of type 0', say: bytes('0000'), ends: true, why: /not allowed/ },
  {
    of: '2.2.3',
    what: 'a length of five bytes',
    say: Buffer.concat([bytes('32'), Buffer.from([0xff, 0xff, 0xff, 0xff, 1])]),
    ends: true,
    why: /length/,
  },
  {
    of: '2.2.3',
    what: 'a length over the limit',
    say: Buffer.from([0x32, ...encodeLength(65_537)]),
    ends: true,
    why: /65,537/,
  },
];

/** Sends a row over a connection. Returns the difference from the expected result; undefined if there is none. */
async function faultOf(
  row: Row,
  {
    socket,
    isWhole,
    site,
  }: { socket: SimulatedSocket; isWhole: boolean; site: Awaited<ReturnType<typeof startManualBroker>> },
): Promise<string | undefined> {
  const { ingest, events } = site;
  const reported: string[] = [];
  const listener = ({ why }: { why: string }): void => void reported.push(why);
  events.on('refused', listener);
  const [heardBefore, takenBefore] = [socket.received.length, ingest.taken.length];
  const said = Buffer.concat(Array.isArray(row.say) ? row.say : [row.say as Buffer]);
  for (const piece of isWhole ? [said] : Array.from(said, (byte) => Buffer.from([byte]))) {
    socket.send(Buffer.from(piece));
    await runLoopTurns(1);
  }
  await runLoopTurns(12);
  ingest.answer();
  await runLoopTurns();
  events.off('refused', listener);
  const seen = {
    hears: socket.received.slice(heardBefore),
    ends: socket.destroyed,
    stores: ingest.taken.slice(takenBefore).map(({ payload }) => payload),
  };
  const { hears = '', ends = false, stores = [], why } = row;
  const wanted = { hears, ends, stores };
  socket.endSending();
  await runLoopTurns(2);
  if (JSON.stringify(seen) !== JSON.stringify(wanted))
    return `${JSON.stringify(seen)} and not ${JSON.stringify(wanted)}; reported ${JSON.stringify(reported)}`;
  const isReported = why === undefined ? reported.length === 0 : reported.some((each) => why.test(each));
  return isReported ? undefined : `operators see ${JSON.stringify(reported)}`;
}

async function holdTo(t: Test, rows: readonly Row[], isLetIn: boolean): Promise<void> {
  for (const fastPath of [true, false]) {
    const site = await startManualBroker(t, { fastPath });
    for (const row of rows)
      for (const isWhole of [true, false]) {
        const socket = isLetIn ? await site.connect(MAC) : site.open();
        const fault = await faultOf(row, { socket, isWhole, site });
        const how = `${fastPath ? 'fast path' : 'library'}, ${isWhole ? 'whole' : 'byte by byte'}`;
        t.equal(fault, undefined, `[MQTT-${row.of}] ${row.what} (${how})`);
      }
  }
}

t.test('every CONNECT of the table gets its expected answer', (t) => holdTo(t, CONNECTS, false));
t.test('every packet of an authenticated lock gets its expected answer', (t) => holdTo(t, PACKETS, true));

t.test(
  '[MQTT-3.10.4-2] after an UNSUBSCRIBE no command is sent; after the next SUBSCRIBE commands are sent',
  async (t) => {
    const { connect, broker } = await startManualBroker(t);
    const lock = await connect(MAC);
    const session = broker.sessions.ofLock(Number.parseInt(MAC, 16));
    const listening: (boolean | undefined)[] = [];
    const subscribe = made('82', '0011', text('down'), '01');
    for (const say of [subscribe, made('a2', '0012', text('other')), made('a2', '0013', text('down')), subscribe]) {
      lock.send(say);
      await runLoopTurns();
      listening.push(session?.isListening);
    }
    t.same(listening, [true, true, false, true]);
  },
);

t.test('mutated packets get no wrong answers and do not delay honest locks', async (t) => {
  const seed = chooseSeed();
  const seen = await runMutated(t, seed, MUTATED);
  const { streams, mutated, accepted, closed, uplinks, maxTurns } = seen;
  t.same(seen.faults, [], `LOCKGATE_SEED=${seed} npm test -- dist/test/gateway/mqtt/conformance.test.js`);
  t.comment(`seed ${seed}: ${mutated} packets in ${streams} streams, ${accepted} let in, ${closed} ended`);
  t.comment(`an honest lock's ping waited ${maxTurns} turns at the most`);
  t.ok(accepted > streams / 3 && closed > streams / 3 && uplinks > streams / 20, `${uplinks} uplinks among them`);
  t.equal(seen.openConnections, 0, 'no connection is left');
});
