// Captures of tcpdump: the events of a live run equal those that its gateway recorded, in every file format, and TCP’s
// retransmissions, disorder and losses do not change the events.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { PcapRecording } from '../../../cli/recordings/pcap/pcap-recording.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { traceEventLine } from '../../../proto/trace/writer.js';
import { encodeDownlink } from '../../../proto/wire/codec.js';
import { testBytes } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { convertCapture, FIN, mqtt, pcapOf, RST, SYN, type TestSegment } from '../../helpers/recordings/capture.js';
import { eventLines, readRecording } from '../../helpers/recordings/read-recording.js';

const folder = join(root, 'test/recordings');
const LIVE = ['bench-loopback.pcap', 'bench-any.pcap'].map((name) => readFileSync(join(folder, name)));
/** The gateway’s own trace of the same run. */
const GATEWAY = readFileSync(join(folder, 'bench-gateway.jsonl'), 'utf8').trim().split('\n');
// The arguments of a `PcapRecording` are the broker’s ports (`[]` for 1883 alone), and the lock of connections whose
// CONNECT is missing.

/** The maximum difference between a packet’s capture and the gateway’s own time for the event. */
const MAX_DIFFERENCE_MS = 100;
/**
 * A pcap file is a header of 24 bytes, then packets: a header of 16 bytes, with the packet's length at 8, and bytes.
 */
const PCAP = { fileHeaderBytes: 24, packetHeaderBytes: 16, packetLengthOffset: 8 };

const CONNECT = mqtt({
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion: 4,
  clientId: 'A4C138F0E1D2',
  username: 'A4C138F0E1D2',
  password: Buffer.from('secret'),
  keepalive: 60,
  clean: true,
});
const CONNACK = mqtt({ cmd: 'connack', returnCode: 0, sessionPresent: false });
const REFUSAL = mqtt({ cmd: 'connack', returnCode: 5, sessionPresent: false });
/** A PUBLISH with a ping that was made at 2026-11-20T08:00:00Z. */
const uplink = (sequence: number): Buffer =>
  mqtt({
    cmd: 'publish',
    topic: 'up',
    payload: Buffer.from(testBytes(sequence, { boot: 1, timeMs: 1_795_161_600_000 })),
    qos: 1,
    messageId: sequence,
    dup: false,
    retain: false,
  });
/** A PUBLISH with a command that expires a day after that. */
const COMMAND = mqtt({
  cmd: 'publish',
  topic: 'down',
  payload: Buffer.from(encodeDownlink({ id: 7, expiresMs: 1_795_248_000_000, command: { type: 'unlock' } })),
  qos: 1,
  messageId: 1,
  dup: false,
  retain: false,
});
const DISCONNECT = mqtt({ cmd: 'disconnect' });

/** Three uplinks (messages of a lock). */
const UPLINKS = Buffer.concat([uplink(1), uplink(2), uplink(3)]);
/** The segments of an accepted connection; `at` is in seconds, `offset` counts the bytes of a side, −1 is its SYN. */
const START: readonly TestSegment[] = [
  { from: 'client', at: 0, offset: -1, flags: SYN },
  { from: 'server', at: 0.1, offset: -1, flags: SYN, acknowledges: 0 },
  { from: 'client', at: 0.2, offset: 0, bytes: CONNECT, acknowledges: 0 },
  { from: 'server', at: 0.3, offset: 0, bytes: CONNACK, acknowledges: CONNECT.length },
];
/** The offset in the client’s stream after CONNECT. */
const AFTER_CONNECT = CONNECT.length;

/**
 * Reads a capture of these segments. Returns its events as short lines: seconds since the first event, the last digits
 * of the MAC, and the event. The connect counts as made at CONNACK, 0.3 s after the SYN.
 */
async function eventLinesOf(segments: readonly TestSegment[], chunkBytes?: number): Promise<string[]> {
  const read = await readRecording(new PcapRecording([], null), [pcapOf(segments)], chunkBytes);
  t.same(read.faults, []);
  return eventLines(read.events);
}

/** The uplinks in segments of these lengths. */
function segmentsOf(...lengths: number[]): TestSegment[] {
  let offset = 0;
  return lengths.map((length, index) => {
    const bytes = UPLINKS.subarray(offset, offset + length);
    offset += length;
    const start = AFTER_CONNECT + offset - length;
    return { from: 'client', at: 1 + index / 10, offset: start, bytes, acknowledges: CONNACK.length };
  });
}

t.test('a capture of a live run has the events that the gateway recorded', async (t) => {
  const reader = new TraceReader();
  const recorded = GATEWAY.flatMap((line) => {
    const event = reader.read(line);
    return event.ok && event.value !== null ? [event.value] : [];
  });
  const key = (event: TraceEvent): string => traceEventLine({ ...event, atMs: 0 });
  for (const capture of LIVE) {
    for (const file of [
      capture,
      ...(['big-endian', 'nanoseconds', 'pcapng'] as const).map((format) => convertCapture(capture, format)),
    ]) {
      const { events, skipped, faults } = await readRecording(new PcapRecording([], null), [file]);
      t.same([skipped, faults], [[], []]);
      t.same(events.map(({ event }) => key(event)).sort(), recorded.map(key).sort());
      for (const { event } of events) {
        const original = recorded.find((other) => key(other) === key(event));
        t.ok(Math.abs((original?.atMs ?? 0) - event.atMs) < MAX_DIFFERENCE_MS, `${event.event} at ${event.atMs}`);
      }
    }
  }
});

t.test('a capture that tcpdump -C cut into two files gives the events of the uncut capture', async (t) => {
  const [capture] = LIVE as [Buffer];
  let cutOffset = PCAP.fileHeaderBytes;
  for (let packets = 0; packets < 25; packets++)
    cutOffset += PCAP.packetHeaderBytes + capture.readUInt32LE(cutOffset + PCAP.packetLengthOffset);
  const secondFile = Buffer.concat([capture.subarray(0, PCAP.fileHeaderBytes), capture.subarray(cutOffset)]);
  // Read in chunks of 7 bytes. The next test uses 13.
  const uncut = await readRecording(new PcapRecording([], null), [capture], 7);
  const cut = await readRecording(new PcapRecording([], null), [capture.subarray(0, cutOffset), secondFile]);
  t.same(cut.events, uncut.events);
  t.ok(uncut.events.length > 10, 'there are events');
});

t.test('split, repeated and reordered segments give the same events', async (t) => {
  const oneSegment = segmentsOf(UPLINKS.length);
  const expected = await eventLinesOf([...START, ...oneSegment]);
  t.same(expected, ['0 D2 connect', '0.7 D2 ping 1/1', '0.7 D2 ping 1/2', '0.7 D2 ping 1/3']);
  // Without the times, which depend on the segments.
  const withoutTimes = (lines: string[]): string[] => lines.map((line) => line.replace(/^\S+ /, ''));
  const split = segmentsOf(1, 20, 3, UPLINKS.length - 24);
  const [a, b, c, d] = split as [TestSegment, TestSegment, TestSegment, TestSegment];
  const repeated = { ...b, at: 1.5, bytes: Buffer.concat([b.bytes as Buffer, c.bytes as Buffer]) };
  for (const segments of [split, [a, a, b, a, c, b, d], [d, c, b, a], [c, d, c, a, b], [a, repeated, c, d, b]])
    t.same(withoutTimes(await eventLinesOf([...START, ...segments], 13)), withoutTimes(expected));
});

t.test('after bytes that the capture lost, reading continues with the next complete packets', async (t) => {
  const { length } = uplink(1);
  const [first, , third] = segmentsOf(length, length, length) as [TestSegment, TestSegment, TestSegment];
  // The server's acknowledgement of all bytes shows that the missing segment was sent.
  const acknowledgement: TestSegment = {
    from: 'server',
    at: 2,
    offset: CONNACK.length,
    acknowledges: AFTER_CONNECT + UPLINKS.length,
  };
  const read = await readRecording(new PcapRecording([], null), [pcapOf([...START, first, third, acknowledgement])]);
  t.same(eventLines(read.events), ['0 D2 connect', '0.7 D2 ping 1/1', '1.7 D2 ping 1/3']);
  t.equal(read.skipped.length, 1);
  t.match(read.skipped[0], /bytes that the capture does not have/);
});

t.test('the cause of a disconnect follows from how the connection ends', async (t) => {
  // The last event of a connection that ends with these segments.
  const lastEvent = async (...end: TestSegment[]): Promise<string | undefined> =>
    (await eventLinesOf([...START, ...end])).at(-1);
  const disconnect: TestSegment = {
    from: 'client',
    at: 1,
    offset: AFTER_CONNECT,
    bytes: DISCONNECT,
    acknowledges: CONNACK.length,
  };
  const fin = (from: 'client' | 'server', at: number): TestSegment => ({
    from,
    at,
    offset: from === 'client' ? AFTER_CONNECT : CONNACK.length,
    flags: FIN,
    acknowledges: from === 'client' ? CONNACK.length : AFTER_CONNECT,
  });
  t.equal(await lastEvent(disconnect), '0.7 D2 disconnect closed');
  t.equal(await lastEvent(fin('client', 3)), '2.7 D2 disconnect dropped');
  t.equal(await lastEvent({ ...fin('client', 3), flags: RST }), '2.7 D2 disconnect dropped');
  t.equal(await lastEvent({ ...fin('server', 3), flags: RST }), '2.7 D2 disconnect dropped');
  t.equal(await lastEvent(fin('server', 3)), '2.7 D2 disconnect gateway');
  // The client was silent for one and a half times its keepalive of 60 s.
  t.equal(await lastEvent(fin('server', 90.5)), '90.2 D2 disconnect keepalive');
  const secondConnection = START.map((segment) => ({ ...segment, at: segment.at + 5, clientPort: 50_001 }));
  const takeover = await eventLinesOf([...START, ...secondConnection, fin('server', 6)]);
  t.same(takeover, ['0 D2 connect', '5 D2 disconnect takeover', '5 D2 connect']);
  const late = await eventLinesOf([
    ...START,
    { ...fin('client', 1), offset: AFTER_CONNECT + UPLINKS.length },
    // More than there are: all bytes of the uplinks.
    ...segmentsOf(300),
  ]);
  t.match(late.join(), /ping 1\/3,.* disconnect dropped$/, 'bytes that come after the FIN count');
});

t.test('if the client’s own port is an MQTT port too, the SYN shows who the client is', async (t) => {
  const command: TestSegment = { from: 'server', at: 2, offset: CONNACK.length, bytes: COMMAND };
  const end = { at: 3, bytes: DISCONNECT, offset: AFTER_CONNECT + UPLINKS.length };
  const play: readonly TestSegment[] = [...START, ...segmentsOf(300), command, { from: 'client', ...end }];
  const swapped = play.map((segment) => ({ ...segment, clientPort: 1884 }));
  const { events, faults } = await readRecording(new PcapRecording([1883, 1884], null), [pcapOf(swapped)]);
  t.same(faults, []);
  t.same(eventLines(events), await eventLinesOf(play));
});

t.test('phones and commands are imported; refused clients and clients that are not locks are counted', async (t) => {
  const connect = (clientId: string, protocolVersion: 4 | 5 = 4): Buffer =>
    mqtt({ cmd: 'connect', protocolId: 'MQTT', protocolVersion, clientId, keepalive: 60, clean: true });
  const opened = async (first: Buffer, answer: Buffer): Promise<[string[], readonly string[]]> => {
    const segments: TestSegment[] = [
      { from: 'client', at: 0, offset: -1, flags: SYN },
      { from: 'server', at: 0.05, offset: -1, flags: SYN },
      { from: 'client', at: 0.1, offset: 0, bytes: Buffer.concat([first, uplink(1)]) },
      { from: 'server', at: 0.2, offset: 0, bytes: Buffer.concat([answer, COMMAND]) },
    ];
    const read = await readRecording(new PcapRecording([], null), [pcapOf(segments)]);
    return [eventLines(read.events), read.skipped];
  };
  t.same((await opened(CONNECT, CONNACK))[0], ['0 D2 connect', '0 D2 ping 1/1', '0.1 D2 command 7 unlock']);
  t.same((await opened(connect('phone-A4C138F0E1D2-1'), CONNACK))[0].slice(0, 2), [
    '0 D2 phone connect',
    '0 D2 phone ping 1/1',
  ]);
  const [eventsOfRefused, skippedOfRefused] = await opened(CONNECT, REFUSAL);
  t.same(eventsOfRefused, []);
  // Each reason is followed by the number of its packet.
  t.same(skippedOfRefused, ['a refused CONNECT 4', 'a PUBLISH of a connection that is refused 4']);
  t.match((await opened(connect('dashboard'), CONNACK))[1], [
    /a client that is not a lock 3/,
    /foreign 3/,
    /foreign 4/,
  ]);
  t.match((await opened(connect('A4C138F0E1D2', 5), CONNACK))[1], [/a connection with MQTT 5 3/, /foreign/, /foreign/]);
});

t.test('a connection whose CONNECT was not captured needs --mac', async (t) => {
  const capture = pcapOf([{ from: 'client', at: 1, offset: 500, bytes: uplink(4), acknowledges: CONNACK.length }]);
  const unknown = await readRecording(new PcapRecording([], null), [capture]);
  t.same(unknown.events, []);
  t.match(unknown.skipped, [/bytes that the capture does not have/, /unknown lock/]);
  const known = await readRecording(new PcapRecording([], 'A4C138F0E1D9' as never), [capture]);
  t.same(eventLines(known.events), ['0 D9 ping 1/4']);
});

t.test('a TLS connection is an error that says what to do instead', async (t) => {
  // The start of a TLS handshake: the type of the record, the version, lengths.
  const hello = Buffer.from('160301020001000200', 'hex');
  const tls = (serverPort: number): Buffer =>
    pcapOf([
      { from: 'client', at: 0, offset: -1, flags: SYN, serverPort },
      { from: 'client', at: 1, offset: 0, bytes: hello, acknowledges: 0, serverPort },
    ]);
  for (const [ports, file] of [[[], tls(1883)] as const, [[8883], tls(8883)] as const, [[], tls(8883)] as const]) {
    const { faults } = await readRecording(new PcapRecording(ports, null), [file]);
    t.equal(faults[0]?.at, 'packet 2');
    t.match(faults[0]?.message, /is TLS, .*lockgate trace record/);
  }
});

t.test('a damaged file is an error with the offset, and the packets before the damage are read', async (t) => {
  const [capture] = LIVE as [Buffer];
  const fault = async (file: Buffer): Promise<string | undefined> => {
    const { faults } = await readRecording(new PcapRecording([], null), [file]);
    return faults[0] === undefined ? undefined : `${faults[0].at}: ${faults[0].message}`;
  };
  t.match(await fault(Buffer.from('received;bike\n')), /^offset 0: the file starts with 72656365: expected a capture/);
  t.match(await fault(Buffer.alloc(0)), /^offset 0: the file has 0 bytes/);
  const damaged = Buffer.from(capture);
  damaged.writeUInt32LE(0x7fffffff, PCAP.fileHeaderBytes + PCAP.packetLengthOffset);
  t.match(await fault(damaged), /^offset 32: packet 1 claims 2147483647 bytes/);
  const pcapng = Buffer.from(convertCapture(capture, 'pcapng'));
  // The first block, the section header, has 28 bytes. The length of a block is after its type of 4 bytes.
  pcapng.writeUInt32LE(13, 28 + 4);
  t.match(await fault(pcapng), /^offset 32: a block claims 13 bytes/);
  const cut = await readRecording(new PcapRecording([], null), [capture.subarray(0, -5)]);
  t.match(cut.skipped, [/^a packet that is not complete \d+$/]);
  t.ok(cut.events.length > 10, 'the packets before are read');
});
