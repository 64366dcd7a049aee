/**
 * Runs a healthy fleet of every kind of lock, with commands, and judges its trace while the run makes it. The judge
 * checks the locks' messages against the specification. A violation is a mistake of the judge or the simulator, and so
 * is a warning that nothing in the simulated world explains (world-truth.ts).
 */
import type { Bug } from '../../../firmware-sim/faults/bug.js';
import type { FaultName } from '../../../firmware-sim/faults/faults.js';
import { parseMix } from '../../../firmware-sim/fleet/mix.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Minutes } from '../../../proto/clock.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { RuleName } from '../../../proto/power/rules.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { OwedCheck, type OwedFinding } from '../../../proto/trace/owed/owed-check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import type { Command } from '../../../proto/wire/ping.js';
import { eachLine } from './each-line.js';
import { RUN_STARTS_MS } from './judged-run.js';
import { WorldTruth } from './world-truth.js';

/** The percentages of locks that start with these settings: every mode and switch, and some combinations. */
const MIX = parseMix(
  'mid=30,mid+ride=20,high=15,high+ride=10,recovery=8,recovery+ride=5,low-battery=6,high+low-battery=2,airplane=4',
);

const UTC = { utcOffsetMinutes: 0 };
/** Every command except airplane mode: a lock in that mode receives no command that could switch it off. */
const COMMANDS: readonly Command[] = [
  { type: 'unlock' },
  { type: 'lock' },
  { type: 'siren', seconds: 5 },
  { type: 'locate-gps' },
  { type: 'locate-cell' },
  { type: 'reset' },
  { type: 'set-power', mode: 'HIGH' },
  { type: 'set-power', mode: 'MID', recovery: false },
  { type: 'set-power', rideTracking: true },
  { type: 'set-power', rideTracking: false },
  { type: 'set-power', recovery: true },
  { type: 'set-power', recovery: false },
  // High windows, in minutes of the day: the default one, one over midnight, one hour at another UTC offset, all day.
  { type: 'set-power', mode: 'HIGH', highWindow: { ...UTC, fromMinute: 420, toMinute: 1140 } },
  { type: 'set-power', mode: 'HIGH', highWindow: { ...UTC, fromMinute: 1320, toMinute: 300 } },
  { type: 'set-power', highWindow: { fromMinute: 600, toMinute: 660, utcOffsetMinutes: -330 } },
  { type: 'set-power', mode: 'HIGH', highWindow: { ...UTC, fromMinute: 0, toMinute: 0 } },
];

/** How often the judge gets a tick, so that expired deadlines are found in time. */
const TICK_INTERVAL_MS = Minutes(1);

/** The size of a run, and what is wrong with its locks or its network. */
export interface HealthyRunOptions {
  readonly seed: string | number;
  readonly locks: number;
  readonly days: number;
  /** How much happens to the locks. */
  readonly pace: 'everyday' | 'lively';
  /** The mean number of commands per lock and day. */
  readonly commandsPerDay: number;
  /** A bug that all locks have; none by default. */
  readonly bug?: Bug;
  /** Faults of the network; none by default. */
  readonly faults?: readonly FaultName[];
}

/** The result of a run. */
export interface HealthyRun {
  readonly uplinkCount: number;
  readonly connections: number;
  readonly commands: number;
  /** The number of acknowledgements. */
  readonly acks: number;
  readonly violations: readonly TimedFinding[];
  /** Warnings that no event of the world explains. */
  readonly unexplained: readonly TimedFinding[];
  /** The number of warnings that an event of the world explains, by rule and reason. */
  readonly explained: ReadonlyMap<string, number>;
  /** The pings that the events of the world require and that the locks did not send, found by the `owed` check. */
  readonly owed: readonly OwedFinding[];
  /** The number of GPS positions that were compared with the world. */
  readonly comparedPositions: number;
}

/** A finding with its time. */
export interface TimedFinding {
  readonly at: string;
  readonly mac: string;
  readonly rule: RuleName;
  readonly message: string;
}

/** The rules of the violations and of the unexplained warnings, each once, in alphabetical order. */
export function rulesUnexplained({ violations, unexplained }: HealthyRun): RuleName[] {
  return [...new Set([...violations, ...unexplained].map(({ rule }) => rule))].sort();
}

/** Runs the fleet to the end and returns the result. */
export function healthyRun({ seed, locks, days, pace, commandsPerDay, bug, faults }: HealthyRunOptions): HealthyRun {
  const judge = new StreamJudge();
  const trace = new VirtualTrace(
    {
      seed,
      locks,
      days,
      pace,
      mix: MIX,
      startMs: RUN_STARTS_MS,
      note: '',
      hasWorldEvents: true,
      ...(faults && { faults }),
      ...(bug && { bugs: [{ bug, locks: null }] }),
      ...(commandsPerDay > 0 && { commandSchedule: { perDay: commandsPerDay, commands: COMMANDS } }),
    },
    eachLine((line) => judge.read(line)),
  );
  while (trace.nowMs < trace.endMs) {
    trace.advance(trace.nowMs + TICK_INTERVAL_MS);
    judge.tick(trace.nowMs);
  }
  const { uplinks: uplinkCount, connections } = trace;
  return { uplinkCount, connections, ...judge.result() };
}

/**
 * Reads and judges lines as `trace check` does. Passes each event's time as line number, so that findings have times.
 */
class StreamJudge {
  readonly #reader = new TraceReader();
  #check: TraceCheck | undefined;
  #truth: WorldTruth | undefined;
  #owed: OwedCheck | undefined;
  #comparedPositions = 0;
  #macs = new Map<string, Mac>();
  #commands = 0;
  #acks = 0;

  /** Reads the next line of the trace. @throws Error if it can't be read */
  read(line: string): void {
    const event = this.#reader.read(line);
    if (!event.ok) throw new Error(`line ${event.error.line}: ${event.error.message}`);
    const { header } = this.#reader;
    // The header, which is the first line but for blank ones, is no event.
    if (event.value === null) {
      if (header === null || this.#check !== undefined) return;
      this.#check = new TraceCheck(POWER_MODEL, header);
      this.#truth = new WorldTruth(header, RUN_STARTS_MS);
      const onPosition = (): void => {
        this.#comparedPositions += 1;
      };
      // The trace itself has the events of the world; there is no other file with them to name.
      this.#owed = new OwedCheck({ model: POWER_MODEL, header, truthName: null, onPosition });
      this.#macs = new Map([...header.locks.keys()].map((mac) => [formatMac(mac), mac]));
      return;
    }
    if (event.value.event === 'world') {
      this.#truth?.add(event.value);
      const accepted = this.#owed?.world(event.value, this.#reader.line);
      if (accepted !== undefined && !accepted.ok) throw new Error(accepted.error.message);
    }
    this.#owed?.event(event.value, this.#reader.line);
    if (event.value.event === 'command') this.#commands += 1;
    if (event.value.event === 'ack') this.#acks += 1;
    // The second argument is meant for the line's number.
    this.#check?.judge(event.value, event.value.atMs);
  }

  /** Tells the judge the time, so that it finds what is overdue. */
  tick(atMs: number): void {
    this.#check?.judge({ event: 'tick', atMs }, atMs);
  }

  result(): Pick<
    HealthyRun,
    'commands' | 'acks' | 'violations' | 'unexplained' | 'explained' | 'owed' | 'comparedPositions'
  > {
    const violations: TimedFinding[] = [];
    const unexplained: TimedFinding[] = [];
    const explained = new Map<string, number>();
    for (const { line: atMs, mac, rule, severity, message } of this.#check?.findings() ?? []) {
      const finding = { at: new Date(atMs).toISOString(), mac, rule, message };
      const explanation = this.#truth?.explain(this.#macs.get(mac) as Mac, rule, atMs) ?? null;
      if (severity === 'violation') violations.push(finding);
      else if (explanation === null) unexplained.push(finding);
      else explained.set(`${rule}: ${explanation}`, (explained.get(`${rule}: ${explanation}`) ?? 0) + 1);
    }
    const owed = this.#owed?.findings() ?? [];
    const counts = { commands: this.#commands, acks: this.#acks, comparedPositions: this.#comparedPositions };
    return { ...counts, violations, unexplained, explained, owed };
  }
}
