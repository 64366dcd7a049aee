// Runs `lockgate trace replay`, which sends a trace's uplinks (recorded messages of locks) to a gateway again, in the
// test's own process. Also makes the traces of its tests, from events such as `connect` and `ping`.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { runReplay } from '../../../cli/commands/trace/replay/replay.js';
import type { ReplayReport } from '../../../cli/commands/trace/replay/report.js';
import type { Gateway } from '../../../gateway/gateway.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import { LockgateError } from '../../../proto/errors.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { testUplink } from '../gateway/test-gateway.js';
import { root } from '../house/our-files.js';

/** The folder of the hand-written traces. */
export const traces = path.join(root, 'test/traces');
/** The start of the traces that these tests write. */
export const START_MS = Date.UTC(2025, 10, 20, 6);
/** The most uplinks that {@link stored} reads. */
export const MAX_READ_ROWS = 1000;

/** The command's flags that a test sets, and the port of the gateway's operators' interface. */
type Flags = Omit<Partial<Parameters<typeof runReplay>[1]>, 'gateway' | 'token'> & { readonly operatorPort?: number };

/** The report of a replay, or its error as `code: message`. */
export interface ReplayResult {
  readonly error: string;
  readonly report: ReplayReport;
}

/** The report of a replay that failed. */
export const NO_REPORT: ReplayReport = {
  file: '',
  mqtt: '',
  locks: 0,
  connections: 0,
  uplinks: { sent: 0, acknowledged: 0 },
  same: false,
  differences: [],
  notes: [],
};

/** An interruption that never happens. */
export const NEVER_INTERRUPTED = {
  signal: new AbortController().signal,
  exitCode: 130,
  happened: new Promise<void>(() => undefined),
};

/** Replays at full speed, in this process. `operatorPort` is by default the gateway's. */
export async function replay(
  gateway: Gateway,
  file: string,
  { operatorPort, ...flags }: Flags = {},
): Promise<ReplayResult> {
  const port = operatorPort ?? gateway.operatorPort;
  const connection = { gateway: `http://127.0.0.1:${port}`, token: gateway.operatorToken };
  try {
    const report = await runReplay(file, { ...connection, speed: 'max', ...flags }, NEVER_INTERRUPTED);
    if (report === null) throw new Error('the replay was interrupted');
    return { error: '', report };
  } catch (thrown) {
    if (!(thrown instanceof LockgateError)) throw thrown;
    return { error: `${thrown.code}: ${thrown.message}`, report: NO_REPORT };
  }
}

/**
 * Returns a function that writes a trace of these events to a file in the folder, and returns the file. An event may
 * come with its uplink's bytes, which are otherwise encoded from the event.
 */
export function traceWriter(folder: string) {
  return (name: string, events: readonly (TraceEvent | [TraceEvent, Uint8Array])[]): string => {
    const file = path.join(folder, name);
    const lines = events.map((event) => (Array.isArray(event) ? traceEventLine(...event) : traceEventLine(event)));
    writeFileSync(file, `${[traceHeaderLine({ note: '', locks: new Map() }), ...lines].join('\n')}\n`);
    return file;
  };
}

/** The lock connects, some seconds after the trace's start. */
export const connect = (mac: Mac, second: number): TraceEvent => {
  return { event: 'connect', atMs: START_MS + second * 1000, mac, source: 'lock' };
};

/** The lock's connection ends. `takeover`: by a second connection of the lock. */
export const close = (mac: Mac, second: number, cause: 'closed' | 'dropped' | 'takeover' = 'closed'): TraceEvent => {
  return { event: 'disconnect', atMs: START_MS + second * 1000, mac, source: 'lock', cause };
};

/** A reset ping, about which no rule has a finding. */
export const RESET: Ping = { ...(testUplink(1).body as Ping), reason: 'REASON_RESET' } as Ping;

/** An uplink that the lock makes `sequence` seconds after the trace's start. */
export function uplink(sequence: number, members: Partial<Uplink> = {}): Uplink {
  return testUplink(sequence, { timeMs: START_MS + sequence * 1000, body: RESET, ...members });
}

/** The gateway receives a ping, by default when the lock makes it. */
export function ping(mac: Mac, sequence: number, members: Partial<Uplink> = {}, second = sequence): TraceEvent {
  const atMs = START_MS + second * 1000;
  return { event: 'ping', atMs, mac, source: 'lock', uplink: uplink(sequence, members) as Uplink<Ping> };
}

/** A lock that connects, sends three pings and disconnects. */
export function shortSession(mac: Mac): TraceEvent[] {
  return [connect(mac, 0), ping(mac, 1), ping(mac, 2), ping(mac, 3), close(mac, 4)];
}

/** The stored uplinks of a lock, in the order of their keys. */
export async function stored(gateway: Gateway, mac: Mac): Promise<StoredUplink[]> {
  const device = await gateway.store.findDevice(mac);
  if (device === null) return [];
  return (await gateway.store.readUplinks(device.device.id, MAX_READ_ROWS)).reverse();
}
