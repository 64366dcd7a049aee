// The member `credential` of a trace's uplinks (protocol.md §4) says which secret of the lock, or which phone, sent the
// uplink. A lock with a new secret, and each phone of a lock, numbers its uplinks from 1 again. So equal numbers under
// different credentials are no conflict.
import t, { type Test } from 'tap';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { traceEventLine } from '../../../proto/trace/writer.js';

const HEADER = '{"trace":"lockgate","version":1,"locks":{}}';
const MAC = 'A4:C1:38:F0:E1:D2';

interface UplinkLine {
  readonly minute: number;
  readonly battery?: number;
  readonly credential?: number;
  readonly source?: 'lock' | 'phone';
  readonly boot?: number;
  readonly sequence?: number;
  readonly reason?: string;
  readonly lockState?: string;
}

function timeOf(minute: number): string {
  return new Date(Date.UTC(2026, 10, 20, 6, minute)).toISOString();
}

/** A ping as writer.ts writes it. */
function ping({
  minute,
  battery = 81,
  credential,
  source = 'lock',
  boot = 1,
  sequence = 1,
  ...options
}: UplinkLine): string {
  const at = timeOf(minute);
  const { reason = source === 'phone' ? 'PHONE' : 'REASON_THEFT', lockState = 'locked' } = options;
  const credentialMember = credential === undefined ? {} : { credential };
  const position = source === 'phone' ? { latitude: 52.1, longitude: 4.9, uncertainty: 8 } : {};
  const body = {
    ...{ ping_type: 'cellular', reason, lock_state: lockState, battery_percent: battery, firmware_version: '2.4.1' },
    ...{ ebike_voltage: null, tether_state: 'detached', ...position, boot, sequence, date: at },
    power: { mode: 'MID', ride_tracking: false, airplane: false, recovery: false },
  };
  return JSON.stringify({ at, mac: MAC, event: 'ping', source, ...credentialMember, ping: body });
}

function connect(minute: number): string {
  return JSON.stringify({ at: timeOf(minute), mac: MAC, event: 'connect', source: 'lock' });
}

/** Checks the lines after a header, which are read as bytes or as text. */
function findingsOf(lines: readonly string[], reading: 'bytes' | 'text' = 'bytes'): TraceFinding[] {
  const reader = new TraceReader();
  const header = reader.read(HEADER);
  if (!header.ok || reader.header === null) throw new Error('no header');
  const check = new TraceCheck(POWER_MODEL, reader.header);
  for (const line of lines) check.judge(readEvent(reader, line, reading), reader.line);
  return check.findings();
}

function readEvent(reader: TraceReader, line: string, reading: 'bytes' | 'text'): TraceEvent {
  const bytes = Buffer.from(line);
  const read = reading === 'bytes' ? reader.readBytes(bytes, 0, bytes.length) : reader.read(line);
  if (!read.ok) throw new Error(read.error.message);
  // Null only for the header and for empty lines.
  return read.value as TraceEvent;
}

/** The numbers of the lines with a sequence-conflict. The header is line 1, so the first of `lines` is line 2. */
function conflicts(t: Test, lines: readonly string[]): number[] {
  const conflictLines = (reading: 'bytes' | 'text') =>
    findingsOf(lines, reading)
      .filter(({ rule }) => rule === 'sequence-conflict')
      .map(({ line }) => line);
  t.same(conflictLines('bytes'), conflictLines('text'), 'both ways of reading a line agree');
  return conflictLines('bytes');
}

// In these two tests another battery level makes the content of a second ping with the same number differ.
t.test('the same number under a new secret of the lock is no conflict', async (t) => {
  const first = ping({ minute: 1, battery: 81 });
  t.same(conflicts(t, [connect(0), first, ping({ minute: 2, battery: 80, credential: 2 })]), []);
  t.same(
    conflicts(t, [connect(0), first, ping({ minute: 2, battery: 80 })]),
    [4],
    'under the same secret it is a conflict',
  );
  t.same(
    conflicts(t, [connect(0), first, ping({ minute: 2, battery: 80, credential: 1 })]),
    [4],
    'an omitted credential means credential 1',
  );
});

t.test('the same number of two phones is no conflict', async (t) => {
  const phone = (minute: number, credential?: number) =>
    ping({ minute, battery: 80 - minute, source: 'phone', ...(credential !== undefined && { credential }) });
  t.same(conflicts(t, [phone(1, 1), phone(2, 2)]), []);
  t.same(conflicts(t, [phone(1, 1), phone(2, 1)]), [3]);
  t.same(conflicts(t, [phone(1), phone(2)]), [3], 'without the member, all phones have one credential');
});

t.test('uplinks are ordered by credential before boot and sequence', async (t) => {
  const statePing = (minute: number, credential: number, boot: number, lockState: string) =>
    ping({ minute, credential, boot, lockState, reason: 'REASON_STATE_PING' });
  // Boot 1 of the second credential comes first, then boot 9 of the first credential, late.
  const lines = [connect(0), statePing(2, 2, 1, 'unlocked'), statePing(3, 1, 9, 'locked')];
  const rules = findingsOf(lines).map(({ rule }) => rule);
  t.notOk(rules.includes('boot-back'), 'another credential counts its boots from 1 again');
  t.ok(
    findingsOf([connect(0), ping({ minute: 1, credential: 1, boot: 9 }), ping({ minute: 9, credential: 1, boot: 1 })])
      .map(({ rule }) => rule)
      .includes('boot-back'),
  );
});

t.test('an omitted sequence is the next one of its credential', async (t) => {
  const pingWithoutSequence = (credential?: number) =>
    JSON.stringify({
      at: timeOf(5),
      mac: MAC,
      event: 'ping',
      ...(credential !== undefined && { credential }),
      ping: { ping_type: 'close_connection', lock_state: 'locked', battery_percent: 80 },
    });
  const reader = new TraceReader();
  reader.read(HEADER);
  const numbers = [
    pingWithoutSequence(),
    pingWithoutSequence(),
    pingWithoutSequence(2),
    pingWithoutSequence(2),
    pingWithoutSequence(1),
  ].map((line) => {
    const event = readEvent(reader, line, 'bytes');
    return event.event === 'ping' ? [event.credential, event.uplink.sequence] : [];
  });
  t.same(numbers, [
    [undefined, 1],
    [undefined, 2],
    [2, 1],
    [2, 2],
    [1, 3],
  ]);
});

t.test('a written credential is read back, and a wrong one is an error', async (t) => {
  const reader = new TraceReader();
  reader.read(HEADER);
  for (const credential of [1, 2, 65_535]) {
    const line = ping({ minute: 1, credential });
    const event = readEvent(reader, line, 'bytes');
    t.equal(traceEventLine(event), line);
    t.same(readEvent(reader, line, 'text'), event);
  }
  const inPing = ping({ minute: 1 }).replace('"boot":1', '"credential":3,"boot":1');
  t.match(readEvent(reader, inPing, 'bytes'), { credential: 3 }, 'the member may be in the ping, as `raw` may');
  const ack = { at: timeOf(2), mac: MAC, event: 'ack', source: 'lock', credential: 2, ack: { id: 7, result: 'ok' } };
  const read = readEvent(reader, JSON.stringify(ack), 'bytes');
  t.match(read, { event: 'ack', credential: 2 });
  t.match(JSON.parse(traceEventLine(read)), { credential: 2 });
  for (const invalid of [0, -1, 1.5, 65_536, '1', null]) {
    const freshReader = new TraceReader();
    freshReader.read(HEADER);
    const line = ping({ minute: 1, credential: 7 }).replace(
      '"credential":7',
      `"credential":${JSON.stringify(invalid)}`,
    );
    const bytes = Buffer.from(line);
    t.match(freshReader.readBytes(bytes, 0, bytes.length), {
      ok: false,
      error: { message: /^credential is .*1 to 65535/ },
    });
  }
});
