/**
 * Checks what the locks of a scenario did (their records, lock-record.ts) against the expectations of the scenario.
 * Pure: reads records and returns verdicts.
 */
import { Seconds } from '../../proto/clock.js';
import { placeOf } from '../world/routes/city.js';
import type {
  CarriedValues,
  Comparison,
  ExpectedPing,
  PingPattern,
  RepeatedPing,
  ScenarioExpectation,
} from './expectation.js';
import { type LockRecord, pingText, type RecordedPing } from './lock-record.js';
import { momentText, type Scenario } from './scenario.js';

/** The result of one expectation. */
export interface ScenarioVerdict {
  readonly expectation: ScenarioExpectation;
  readonly isMet: boolean;
  /** What was seen instead, as a sentence; empty if the expectation is met. */
  readonly seen: string;
}

/** A ping up to this distance from a place is near the place. */
const NEAR_METERS = 150;
/** Maximum number of pings that a sentence shows. */
const MAX_SHOWN_PINGS = 6;
/** How many of them are before the moment that the sentence is about. */
const SHOWN_PINGS_BEFORE = 2;

/** Checks all expectations, in order. */
export function checkScenario(scenario: Scenario, records: ReadonlyMap<string, LockRecord>): ScenarioVerdict[] {
  const check = new ExpectationCheck(scenario, records);
  return scenario.expectations.map((expectation) => check.judge(expectation));
}

class ExpectationCheck {
  readonly #scenario: Scenario;
  readonly #records: ReadonlyMap<string, LockRecord>;
  /** By lock, the ping that the previous expectation found; undefined if it found none. */
  readonly #previousPing = new Map<string, RecordedPing | undefined>();

  constructor(scenario: Scenario, records: ReadonlyMap<string, LockRecord>) {
    this.#scenario = scenario;
    this.#records = records;
  }

  judge(expectation: ScenarioExpectation): ScenarioVerdict {
    const record = this.#records.get(expectation.lock);
    if (record === undefined) throw new Error(`the lock ${expectation.lock} has no record`);
    const seen = this.#deviation(expectation, record);
    return { expectation, isMet: seen === undefined, seen: seen ?? '' };
  }

  /** What was seen instead; undefined if the expectation is met. The other `…Deviation` methods return the same. */
  #deviation(expectation: ScenarioExpectation, record: LockRecord): string | undefined {
    switch (expectation.kind) {
      case 'ping':
        return this.#pingDeviation(expectation, record);
      case 'never': {
        const [first] = this.#matching(record, expectation, expectation.pattern, expectation.carried);
        return first && `it came at ${this.#pingAt(first)}`;
      }
      case 'exactly':
        return this.#sequenceDeviation(expectation.sequence, this.#between(record, expectation));
      case 'command':
        return this.#commandDeviation(expectation, record);
      default:
        return this.#linkDeviation(expectation, record);
    }
  }

  /**
   * How the lock's pings differ from an expected ping, as a sentence; undefined if they don't. A following expectation
   * `next` continues from the ping that was found, and fails if none was.
   */
  #pingDeviation(expected: ExpectedPing, record: LockRecord): string | undefined {
    const { lock, isNext, within } = expected;
    const before = this.#previousPing.get(lock);
    this.#previousPing.set(lock, undefined);
    if (isNext && before === undefined) return 'the ping before it was not found';
    const afterMs = isNext && before !== undefined ? before.madeMs : expected.afterMs;
    const span = { afterMs, untilMs: expected.untilMs };
    // The next ping may have the same moment, so pings are counted by index.
    const from = isNext && before !== undefined ? record.pings.indexOf(before) + 1 : 0;
    const laterPings = { pings: record.pings.slice(from) };
    const matching = this.#matching(laterPings, span, expected.pattern, expected.carried);
    const [first] = matching;
    const around = (): string => this.#pingsAround(record, afterMs);
    if (first === undefined && expected.atLeast > 0) return `none came; ${around()}`;
    if (matching.length < expected.atLeast || matching.length > expected.atMost)
      return `${matching.length} came; ${around()}`;
    if (first === undefined) return undefined;
    if (within !== null && first.madeMs > afterMs + within)
      return `the first came at ${this.#moment(first.madeMs)}, ${inSeconds(first.madeMs - afterMs)} after; ${around()}`;
    const wrongInterval = expected.every && this.#wrongInterval(matching, expected.every);
    if (wrongInterval) return wrongInterval;
    const earlyPing = this.#earlyArrival(matching, expected.arrivesAfterMs);
    if (earlyPing !== undefined) return earlyPing;
    this.#previousPing.set(lock, first);
    return undefined;
  }

  /** A sentence about the first wrong interval between pings; undefined if there is none. */
  #wrongInterval(
    pings: readonly RecordedPing[],
    { span, tolerance, duration }: NonNullable<ExpectedPing['every']>,
  ): string | undefined {
    const firstMs = pings[0]?.madeMs ?? 0;
    let lastMs = firstMs;
    for (const { madeMs } of pings.slice(1)) {
      if (lastMs >= firstMs + duration) break;
      const intervalMs = madeMs - lastMs;
      const afterLast = `after the one at ${this.#moment(lastMs)}`;
      if (intervalMs < span - tolerance || intervalMs > span + tolerance)
        return `${afterLast} the next came at ${this.#moment(madeMs)}, ${inSeconds(intervalMs)} later`;
      lastMs = madeMs;
    }
    return lastMs + span + tolerance >= firstMs + duration
      ? undefined
      : `after the one at ${this.#moment(lastMs)} no more came`;
  }

  /** A sentence about the first ping that was acknowledged too early or never; undefined if there is none. */
  #earlyArrival(pings: readonly RecordedPing[], arrivesAfterMs: number | null): string | undefined {
    if (arrivesAfterMs === null) return undefined;
    const earlyPing = pings.find(({ acknowledgedMs }) => acknowledgedMs === null || acknowledgedMs < arrivesAfterMs);
    if (earlyPing === undefined) return undefined;
    const when =
      earlyPing.acknowledgedMs === null ? 'never arrived' : `arrived at ${this.#moment(earlyPing.acknowledgedMs)}`;
    return `the one of ${this.#moment(earlyPing.madeMs)} ${when}`;
  }

  #sequenceDeviation(sequence: readonly RepeatedPing[], pings: readonly RecordedPing[]): string | undefined {
    let index = 0;
    for (const expectedPing of sequence) {
      let times = 0;
      const maximum = expectedPing.times === 'repeated' ? Number.POSITIVE_INFINITY : expectedPing.times;
      while (times < maximum && index < pings.length && matches(pings[index] as RecordedPing, expectedPing)) {
        index += 1;
        times += 1;
      }
      if (times > 0 && (expectedPing.times === 'repeated' || times === maximum)) continue;
      const expectedText = `${expectedPing.reason}${expectedPing.kind === null ? '' : ` ${expectedPing.kind}`}`;
      return `in place of ${expectedText} ${this.#pingsFrom(pings, index)}`;
    }
    return index === pings.length ? undefined : `besides ${this.#pingsFrom(pings, index)}`;
  }

  #pingsFrom(pings: readonly RecordedPing[], index: number): string {
    const shown = pings.slice(index, index + MAX_SHOWN_PINGS).map((ping) => this.#pingAt(ping));
    return shown.length === 0 ? 'nothing more came' : `came ${shown.join(', ')}`;
  }

  #commandDeviation(
    expected: Extract<ScenarioExpectation, { kind: 'command' }>,
    record: LockRecord,
  ): string | undefined {
    const latestMs = expected.within === null ? expected.untilMs : expected.afterMs + expected.within;
    const commandsOfType = record.commands.filter(({ type }) => type === expected.type);
    const isMet = commandsOfType.some(({ receivedMs, result }) => {
      return receivedMs >= expected.afterMs && receivedMs <= latestMs && result === expected.result;
    });
    if (isMet) return undefined;
    const list = commandsOfType.map(
      ({ receivedMs, result }) => `${this.#moment(receivedMs)} (${result ?? 'not finished'})`,
    );
    return list.length === 0
      ? 'none reached the lock'
      : `it reached the lock at ${list.slice(0, MAX_SHOWN_PINGS).join(', ')}`;
  }

  #linkDeviation(
    { kind, afterMs, untilMs, tolerance }: Extract<ScenarioExpectation, { kind: 'connected' | 'silent' }>,
    record: LockRecord,
  ): string | undefined {
    if (kind === 'connected') {
      const isConnected = record.connections.some(
        ({ fromMs, toMs }) => fromMs <= afterMs + tolerance && toMs >= untilMs - tolerance,
      );
      return isConnected ? undefined : `its connections: ${this.#connections(record) || 'none'}`;
    }
    const open = record.connections.find(({ fromMs, toMs }) => fromMs < untilMs && toMs > afterMs + tolerance);
    if (open !== undefined) return `connected ${this.#connection(open)}`;
    // A phone nearby may send pings for a lock that is silent itself.
    const sentPing = record.pings.find(({ madeMs, source }) => {
      return source === 'lock' && madeMs > afterMs + tolerance && madeMs < untilMs;
    });
    return sentPing && `it made ${this.#pingAt(sentPing)}`;
  }

  #connections({ connections }: LockRecord): string {
    return connections
      .slice(0, MAX_SHOWN_PINGS)
      .map((connection) => this.#connection(connection))
      .join(', ');
  }

  #connection({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }): string {
    return `from ${this.#moment(fromMs)} ${Number.isFinite(toMs) ? `to ${this.#moment(toMs)}` : 'on'}`;
  }

  /** The pings that were made in a span. */
  #between(
    { pings }: Pick<LockRecord, 'pings'>,
    { afterMs, untilMs }: { afterMs: number; untilMs: number },
  ): RecordedPing[] {
    return pings.filter(({ madeMs }) => madeMs >= afterMs && madeMs < untilMs);
  }

  /** The pings of a span that have the reason, the type and the values. */
  #matching(
    record: Pick<LockRecord, 'pings'>,
    span: { readonly afterMs: number; readonly untilMs: number },
    pattern: PingPattern,
    carried: CarriedValues,
  ): RecordedPing[] {
    return this.#between(record, span).filter((ping) => matches(ping, pattern) && this.#carries(ping, carried));
  }

  /** Whether a ping has the expected values. */
  #carries({ uplink }: RecordedPing, { words, numbers, near }: CarriedValues): boolean {
    const members = membersOf(uplink);
    if (!words.every(([member, value]) => members[member] === value)) return false;
    if (!numbers.every(([member, comparison]) => isSatisfied(members[member], comparison))) return false;
    if (near === null) return true;
    const { body } = uplink;
    if (body.kind === 'close_connection' || body.position === null) return false;
    const { latitudeDegrees, longitudeDegrees } = body.position;
    const place = placeOf(this.#scenario.city, latitudeDegrees, longitudeDegrees);
    const [east, north] = [place.eastMeters - near.eastMeters, place.northMeters - near.northMeters];
    return east * east + north * north <= NEAR_METERS * NEAR_METERS;
  }

  /** The pings around a moment, to show the user what came instead. */
  #pingsAround({ pings }: LockRecord, atMs: number): string {
    if (pings.length === 0) return 'the lock made no ping at all';
    const next = pings.findIndex(({ madeMs }) => madeMs >= atMs);
    const from = Math.max(0, (next === -1 ? pings.length : next) - SHOWN_PINGS_BEFORE);
    const shown = pings.slice(from, from + MAX_SHOWN_PINGS).map((ping) => this.#pingAt(ping));
    return `seen: ${shown.join(', ')}${from + MAX_SHOWN_PINGS < pings.length ? ', …' : ''}`;
  }

  #pingAt(ping: RecordedPing): string {
    return `${this.#moment(ping.madeMs)} ${pingText(ping)}`;
  }

  #moment(atMs: number): string {
    return momentText(this.#scenario, atMs);
  }
}

function matches({ uplink: { body } }: RecordedPing, { reason, kind }: PingPattern): boolean {
  return body.reason === reason && (kind === null || body.kind === kind);
}

/** A ping's values, by the names of the JSON members. */
function membersOf({ body, power }: RecordedPing['uplink']): Readonly<Record<string, unknown>> {
  const { mode, rideTracking, airplane, recovery } = power;
  const settings = { mode, ride_tracking: rideTracking, airplane, recovery };
  const common = { ...settings, lock_state: body.lockState, battery_percent: body.batteryPercent };
  if (body.kind === 'close_connection') return common;
  const withState = { ...common, tether_state: body.tetherState, ebike_voltage: body.ebikeVolts };
  return body.kind === 'gps' ? { ...withState, speed: body.speedMetersPerSecond } : withState;
}

function isSatisfied(value: unknown, { relation, value: bound }: Comparison): boolean {
  if (relation === '=') return value === bound;
  if (typeof value !== 'number' || bound === null) return false;
  if (relation === '<') return value < bound;
  if (relation === '<=') return value <= bound;
  return relation === '>' ? value > bound : value >= bound;
}

function inSeconds(span: number): string {
  return `${(span / Seconds(1)).toLocaleString('en-US', { maximumFractionDigits: 3 })} s`;
}
