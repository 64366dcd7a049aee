/**
 * Plans a replay of a trace before anything is sent, so that an unreadable file or an uplink (a message of a lock) that
 * can't be encoded is found before any lock connects. Pure, except for reading the file.
 *
 * The plan also has the rules' findings about the trace, twice: as `trace check` makes them, and without the trace's
 * header and commands, which a gateway does not know.
 */

import { LockgateError } from '../../../../proto/errors.js';
import type { DisconnectCause } from '../../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { TraceCheck } from '../../../../proto/trace/check.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import type { TraceAck, TraceEvent, TraceHeader, TracePing } from '../../../../proto/trace/trace.js';
import { decodeUplink, encodeUplink } from '../../../../proto/wire/codec.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Uplink } from '../../../../proto/wire/ping.js';
import { isDatable } from '../../../../proto/wire/ping-json.js';
import { readTraceFile } from '../trace-file.js';

/** The maximum number of steps of one file. A plan is in memory, with some 300 bytes per step. */
const MAX_STEPS = 1_000_000;

/** The highest boot number that an uplink can carry. */
const MAX_BOOT = 2 ** 32 - 1;

/** The event of the trace that a step replays. */
interface StepOrigin {
  readonly line: number;
  readonly atMs: number;
  readonly mac: Mac;
}

/** Sends an uplink. */
export interface SendStep extends StepOrigin {
  readonly do: 'send';
  readonly boot: number;
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/**
 * Ends a connection: `close` sends DISCONNECT, `drop` destroys the socket, `leave` lets the lock's next one replace it.
 */
export type EndStep = StepOrigin & { readonly do: 'close' | 'drop' | 'leave' };

export type ReplayStep = SendStep | EndStep | (StepOrigin & { readonly do: 'connect' });

/** What a replay sends, and the findings it expects. */
export interface ReplayPlan {
  readonly file: string;
  /** In the trace's order. */
  readonly steps: readonly ReplayStep[];
  /** The locks that have steps. */
  readonly macs: ReadonlySet<Mac>;
  /** The result of `trace check`, without events of phones. */
  readonly checked: TraceCheck;
  /** The result of the same rules for the bytes that will be sent, without the trace's header and commands. */
  readonly checkedWithoutHeader: TraceCheck;
  /** Events that are not replayed. */
  readonly leftOut: { readonly phoneEvents: number; readonly commands: number };
  /** The number of connections added for uplinks that the trace has outside a connection. */
  readonly addedConnections: number;
  /** The number of connects without a disconnect in the trace; the replay closes these connections at its end. */
  readonly unclosedConnections: number;
}

/**
 * Reads a trace and plans its replay.
 *
 * @throws LockgateError `input-…` for a file that can't be read, has an uplink that can't be encoded, or is too long
 */
export async function readReplayPlan(file: string): Promise<ReplayPlan> {
  let planner: Planner | undefined;
  await readTraceFile(file, {
    header: (header) => {
      planner = new Planner(file, header);
    },
    event: (event, line, raw) => planner?.add(event, line, raw),
  });
  // The header has been read: a file without one is refused above.
  return (planner as Planner).plan();
}

class Planner {
  readonly #file: string;
  readonly #checked: TraceCheck;
  readonly #checkedWithoutHeader = new TraceCheck(POWER_MODEL, { note: '', locks: new Map() });
  readonly #steps: ReplayStep[] = [];
  readonly #macs = new Set<Mac>();
  /** The locks that are connected after the events added so far. */
  readonly #connected = new Set<Mac>();
  /** Locks that were connected before the first event, according to the header. */
  readonly #connectedBefore = new Set<Mac>();
  /** Locks whose connection was added for an uplink. */
  readonly #connectedByUplink = new Set<Mac>();
  #phoneEvents = 0;
  #commands = 0;
  #addedConnections = 0;

  constructor(file: string, header: TraceHeader) {
    this.#file = file;
    this.#checked = new TraceCheck(POWER_MODEL, header);
    for (const [mac, { connected }] of header.locks) if (connected) this.#connectedBefore.add(mac);
  }

  plan(): ReplayPlan {
    return {
      file: this.#file,
      steps: this.#steps,
      macs: this.#macs,
      checked: this.#checked,
      checkedWithoutHeader: this.#checkedWithoutHeader,
      leftOut: { phoneEvents: this.#phoneEvents, commands: this.#commands },
      addedConnections: this.#addedConnections,
      unclosedConnections: [...this.#connected].filter((mac) => !this.#connectedByUplink.has(mac)).length,
    };
  }

  /** Plans the steps of a line's event. @param raw the bytes of its uplink; null if the line does not have them */
  add(event: TraceEvent, line: number, raw: Uint8Array | null): void {
    if ('source' in event && event.source === 'phone') {
      this.#phoneEvents += 1;
      return;
    }
    this.#checked.judge(event, line);
    switch (event.event) {
      case 'connect':
        this.#connectedByUplink.delete(event.mac);
        this.#connect(event.mac, event.atMs, line);
        break;
      case 'disconnect':
        this.#disconnect(event.mac, event.cause, event.atMs, line);
        break;
      case 'ping':
      case 'ack':
        this.#send(event, line, raw);
        break;
      case 'gateway':
        // No connection survives a stop or a start of the gateway; after a crash the trace has only the start.
        for (const mac of [...this.#connected]) this.#disconnect(mac, 'gateway', event.atMs, line);
        break;
      case 'command':
        this.#commands += 1;
        break;
      case 'tick':
      case 'world':
        break;
    }
  }

  #connect(mac: Mac, atMs: number, line: number): void {
    this.#connected.add(mac);
    this.#connectedBefore.delete(mac);
    this.#checkedWithoutHeader.judge({ event: 'connect', atMs, mac, source: 'lock' }, line);
    this.#addStep({ do: 'connect', mac, atMs, line });
  }

  #disconnect(mac: Mac, cause: DisconnectCause, atMs: number, line: number): void {
    if (!this.#connected.delete(mac)) return;
    this.#checkedWithoutHeader.judge({ event: 'disconnect', atMs, mac, source: 'lock', cause }, line);
    this.#addStep({ do: STEP_BY_CAUSE[cause], mac, atMs, line });
  }

  #send(event: TracePing | TraceAck, line: number, raw: Uint8Array | null): void {
    const { atMs, mac } = event;
    if (!this.#connected.has(mac)) {
      if (!this.#connectedBefore.has(mac)) this.#addedConnections += 1;
      this.#connectedByUplink.add(mac);
      this.#connect(mac, atMs, line);
    }
    const bytes = raw ?? this.#encode(event.uplink, line);
    const { boot, sequence } = event.uplink;
    // Encoding rounds values, and the gateway judges the rounded values.
    const sent = decodeUplink(bytes);
    // The cast: the decoded uplink is of the same type as the event's.
    if (sent.ok) this.#checkedWithoutHeader.judge({ ...event, uplink: sent.value } as TracePing | TraceAck, line);
    this.#addStep({ do: 'send', mac, atMs, line, boot, sequence, bytes });
  }

  #encode(uplink: Uplink, line: number): Uint8Array {
    try {
      return encodeUplink(uplink);
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      throw new LockgateError('input-trace', `${this.#file}:${line}: the uplink can’t be sent: ${error.message}`);
    }
  }

  #addStep(step: ReplayStep): void {
    if (this.#steps.length >= MAX_STEPS) {
      const limit = MAX_STEPS.toLocaleString('en-US');
      throw new LockgateError('input-trace', `${this.#file} has more than ${limit} events to replay: split it`);
    }
    this.#steps.push(step);
    this.#macs.add(step.mac);
  }
}

/** A replay can't make a gateway end a connection, so the lock ends it in a way that causes no finding. */
const STEP_BY_CAUSE: Readonly<Record<DisconnectCause, EndStep['do']>> = {
  closed: 'close',
  dropped: 'drop',
  keepalive: 'drop',
  takeover: 'leave',
  gateway: 'close',
};

/** The changes of `--as-now`: milliseconds added to all times, and a number added to all boots of a lock. */
export interface PlanShift {
  readonly shiftMs: number;
  readonly bootShifts: ReadonlyMap<Mac, number>;
}

/**
 * The same plan with shifted times and boots. A time outside the years 1970–9999, which comes from a broken clock, is
 * not shifted, nor is a time that would leave these years. The uplinks are encoded again, so unknown fields are lost.
 *
 * @throws LockgateError `input-as-now` if a boot would exceed what an uplink can carry
 */
export function shiftPlan(plan: ReplayPlan, { shiftMs, bootShifts }: PlanShift): ReplayPlan {
  const steps = plan.steps.map((step) => {
    if (step.do !== 'send') return step;
    const decoded = decodeUplink(step.bytes);
    if (!decoded.ok) return step;
    const boot = step.boot + (bootShifts.get(step.mac) ?? 0);
    if (boot > MAX_BOOT) {
      const position = `${plan.file}:${step.line}`;
      throw new LockgateError('input-as-now', `${position}: no boot number is left above the gateway’s highest`);
    }
    const { timeMs } = decoded.value;
    const shiftedMs = isDatable(timeMs) && isDatable(timeMs + shiftMs) ? timeMs + shiftMs : timeMs;
    return { ...step, boot, bytes: encodeUplink({ ...decoded.value, boot, timeMs: shiftedMs }) };
  });
  return { ...plan, steps };
}

/** The lowest boot of each lock of the plan. */
export function lowestBoots(plan: ReplayPlan): Map<Mac, number> {
  const lowestByMac = new Map<Mac, number>();
  for (const step of plan.steps) {
    if (step.do === 'send') lowestByMac.set(step.mac, Math.min(step.boot, lowestByMac.get(step.mac) ?? step.boot));
  }
  return lowestByMac;
}

/** Identifies a finding by line, lock and rule. */
export function findingId({ line, mac, rule }: TraceFinding): string {
  return `${line} ${mac} ${rule}`;
}
