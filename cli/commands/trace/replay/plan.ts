/**
 * Plans a replay of a trace before anything is sent, so that a file that can't be read, or an uplink that can't be
 * encoded, is found before any lock connects. Pure, except for reading the file.
 *
 * The plan also has the rules' findings about the trace, twice, because a gateway knows neither the trace's header nor
 * its commands: once with them, as `trace check` does it, and once from the bytes that will be sent only.
 */

import { LockgateError } from '../../../../proto/errors.js';
import type { DisconnectCause } from '../../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { TraceCheck, type TraceFinding } from '../../../../proto/trace/check.js';
import type { TraceAck, TraceEvent, TraceHeader, TracePing } from '../../../../proto/trace/trace.js';
import { decodeUplink, encodeUplink } from '../../../../proto/wire/codec.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Uplink } from '../../../../proto/wire/ping.js';
import { isDatable } from '../../../../proto/wire/ping-json.js';
import { readTraceFile } from '../trace-file.js';

/** The most steps of one file: a plan is held in memory, at some 300 bytes a step. */
const STEPS_MOST = 1_000_000;

/** The greatest boot number that the wire can carry. */
const BOOT_MOST = 2 ** 32 - 1;

interface OfLine {
  readonly line: number;
  readonly atMs: number;
  readonly mac: Mac;
}

export interface SendStep extends OfLine {
  readonly do: 'send';
  readonly boot: number;
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** `close` sends DISCONNECT, `drop` destroys the socket, `leave` lets the next connection take over. */
export type EndStep = OfLine & { readonly do: 'close' | 'drop' | 'leave' };

export type ReplayStep = SendStep | EndStep | (OfLine & { readonly do: 'connect' });

export interface ReplayPlan {
  readonly file: string;
  /** In the trace's order. */
  readonly steps: readonly ReplayStep[];
  /** The locks that have steps. */
  readonly macs: ReadonlySet<Mac>;
  /** The result of `trace check`, phones left out. */
  readonly checked: TraceCheck;
  /** The result of the same rules from the bytes only, without header and commands. */
  readonly bare: TraceCheck;
  /** Events that are not replayed. */
  readonly leftOut: { readonly phoneEvents: number; readonly commands: number };
  /** Connections made for uplinks that the trace has outside of one. */
  readonly ownConnections: number;
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
  return (planner as Planner).plan();
}

class Planner {
  readonly #file: string;
  readonly #checked: TraceCheck;
  readonly #bare = new TraceCheck(POWER_MODEL, { note: '', locks: new Map() });
  readonly #steps: ReplayStep[] = [];
  readonly #macs = new Set<Mac>();
  /** The locks that are connected at this point of the trace. */
  readonly #connected = new Set<Mac>();
  /** Locks that are connected before the first event, by the header. */
  readonly #connectedBefore = new Set<Mac>();
  #phoneEvents = 0;
  #commands = 0;
  #ownConnections = 0;

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
      bare: this.#bare,
      leftOut: { phoneEvents: this.#phoneEvents, commands: this.#commands },
      ownConnections: this.#ownConnections,
    };
  }

  add(event: TraceEvent, line: number, raw: Uint8Array | null): void {
    if ('source' in event && event.source === 'phone') {
      this.#phoneEvents += 1;
      return;
    }
    this.#checked.judge(event, line);
    switch (event.event) {
      case 'connect':
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
        // No connection survives the gateway: a start without a stop before it follows a crash.
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
    this.#bare.judge({ event: 'connect', atMs, mac, source: 'lock' }, line);
    this.#step({ do: 'connect', mac, atMs, line });
  }

  #disconnect(mac: Mac, cause: DisconnectCause, atMs: number, line: number): void {
    if (!this.#connected.delete(mac)) return;
    this.#bare.judge({ event: 'disconnect', atMs, mac, source: 'lock', cause }, line);
    this.#step({ do: END_BY_CAUSE[cause], mac, atMs, line });
  }

  #send(event: TracePing | TraceAck, line: number, raw: Uint8Array | null): void {
    const { atMs, mac } = event;
    if (!this.#connected.has(mac)) {
      if (!this.#connectedBefore.has(mac)) this.#ownConnections += 1;
      this.#connect(mac, atMs, line);
    }
    const bytes = raw ?? this.#encode(event.uplink, line);
    const { boot, sequence } = event.uplink;
    // The wire rounds values, and the gateway judges the rounded ones.
    const sent = decodeUplink(bytes);
    if (sent.ok) this.#bare.judge({ ...event, uplink: sent.value } as TracePing | TraceAck, line);
    this.#step({ do: 'send', mac, atMs, line, boot, sequence, bytes });
  }

  #encode(uplink: Uplink, line: number): Uint8Array {
    try {
      return encodeUplink(uplink);
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      throw new LockgateError('input-trace', `${this.#file}:${line}: the uplink can’t be sent: ${error.message}`);
    }
  }

  #step(step: ReplayStep): void {
    if (this.#steps.length >= STEPS_MOST) {
      const most = STEPS_MOST.toLocaleString('en-US');
      throw new LockgateError('input-trace', `${this.#file} has more than ${most} events to replay: split it`);
    }
    this.#steps.push(step);
    this.#macs.add(step.mac);
  }
}

/** We can't make a gateway end a connection: this is done in the way that leaves no finding. */
const END_BY_CAUSE: Readonly<Record<DisconnectCause, EndStep['do']>> = {
  closed: 'close',
  dropped: 'drop',
  keepalive: 'drop',
  takeover: 'leave',
  gateway: 'close',
};

/** The changes of `--as-now`: a shift of all times, and one of each lock's boots. */
export interface Renaming {
  readonly shiftMs: number;
  readonly bootShifts: ReadonlyMap<Mac, number>;
}

/**
 * The same plan with other times and boots. A time outside the years 1970–9999, or that would leave them, stays, as
 * broken clocks do. Fields that this build does not know are lost, since the uplinks are encoded again.
 *
 * @throws LockgateError `input-as-now` where a boot would no longer fit the wire
 */
export function renamed(plan: ReplayPlan, { shiftMs, bootShifts }: Renaming): ReplayPlan {
  const steps = plan.steps.map((step) => {
    if (step.do !== 'send') return step;
    const decoded = decodeUplink(step.bytes);
    if (!decoded.ok) return step;
    const boot = step.boot + (bootShifts.get(step.mac) ?? 0);
    if (boot > BOOT_MOST) {
      const where = `${plan.file}:${step.line}`;
      throw new LockgateError('input-as-now', `${where}: no boot is left above those that the gateway has of the lock`);
    }
    const { timeMs } = decoded.value;
    const moved = isDatable(timeMs) && isDatable(timeMs + shiftMs) ? timeMs + shiftMs : timeMs;
    return { ...step, boot, bytes: encodeUplink({ ...decoded.value, boot, timeMs: moved }) };
  });
  return { ...plan, steps };
}

/** The lowest boot of each lock of the plan. */
export function lowestBoots(plan: ReplayPlan): Map<Mac, number> {
  const lowest = new Map<Mac, number>();
  for (const step of plan.steps) {
    if (step.do === 'send') lowest.set(step.mac, Math.min(step.boot, lowest.get(step.mac) ?? step.boot));
  }
  return lowest;
}

/** Identifies a finding: its line and its rule. */
export function placeOf({ line, mac, rule }: TraceFinding): string {
  return `${line} ${mac} ${rule}`;
}
