/**
 * A run with outages of the gateway: simulated locks continue, faster than real time, while the gateway is stopped for
 * minutes of simulated time. Then the gateway starts again, and the locks send their stored uplinks (messages). The run
 * compares the diaries, in which the locks and the merchant record what they sent and received. Only two things are
 * read from the gateway: the findings of its judge, which checks the locks' messages, and the presence of each lock.
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { Fleet, fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import type { Lock } from '../../../firmware-sim/lock/lock.js';
import type { World, WorldChange, WorldEvent } from '../../../firmware-sim/world/world.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { afterThisTurn, Days, Hours, type Milliseconds, RunClock, systemClock } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { checkDeliveries, type Finding } from './delivery-check.js';
import { DiaryMerchant } from './diary-merchant.js';
import type { SabotageName } from './sabotage.js';
import { UplinkDiary } from './uplink-diary.js';

/** The test that gets the run's comments. */
type Test = Teardown & { comment(line: string): void };

/** An outage of the gateway. Times are by the run's clock. */
export interface Outage {
  /** The time from the start of the run to the outage. */
  readonly afterMs: Milliseconds;
  readonly durationMs: Milliseconds;
  /** The signal that stops or kills the gateway. */
  readonly signal: 'SIGTERM' | 'SIGKILL';
}

/** The size of a run, its outages, and what happens to its locks. */
export interface OutageRunOptions {
  readonly seed: number;
  readonly locks: number;
  /** How many times faster than real time the run's clock is. */
  readonly speed: number;
  /** In the order of their times. */
  readonly outages: readonly Outage[];
  /** The time from the start of the run after which nothing more happens to any lock, so that the run ends. */
  readonly calmAfterMs: Milliseconds;
  /** The simulated surroundings of each lock: what happens to it. */
  readonly worldOf: (index: number, startMs: number, seed: number) => World;
  readonly sabotage?: SabotageName;
}

/** What a run showed. */
export interface OutageRunResult {
  /** What was lost, repeated or out of order, from the diaries. */
  readonly findings: readonly Finding[];
  readonly diary: UplinkDiary;
  /** The number of received webhooks. */
  readonly arrivals: number;
  /** For each outage, the number of uplinks that waited in the locks when the gateway started again. */
  readonly unackedAtRestart: readonly number[];
  /** The number of the judge's findings, by rule. */
  readonly rules: ReadonlyMap<string, { readonly count: number; readonly message: string }>;
  /** Locks that the gateway shows as online at the end although they are asleep, or the reverse. */
  readonly disagreements: readonly string[];
  readonly errorLines: readonly string[];
}

/** Enough for a lock's longest pause between attempts to connect, 6 min of simulated time. */
const PHASE_SECONDS = 60;
/** A gateway stops within this time (quality.md §2). */
const STOP_SECONDS = 10;
/** After this time without a webhook no further webhook is expected. */
const STALL_SECONDS = 3;
/** How long to wait between two comparisons of the locks with the gateway. */
const POLL_INTERVAL_MS = 100;
/** How often the locks and the gateway are compared again, until they agree. */
const MAX_POLLS = 60;

/**
 * The surroundings of a lock that become calm: at a certain time all faults end, and nothing happens after that. The
 * last event is that the lock is opened and closed, so that a lock that has just left a silent state (airplane, low
 * battery) sends a ping with its new state.
 */
class CalmingWorld implements World {
  readonly #inner: World;
  readonly #calmMs: number;
  #remainingChanges: readonly WorldChange[] = [
    { type: 'coverage', covered: true },
    { type: 'sky', open: true },
    { type: 'settings', change: { airplane: false } },
    { type: 'battery', percent: 80 },
    { type: 'motion', moving: false },
    { type: 'lock-state', lockState: 'unlocked' },
    { type: 'lock-state', lockState: 'locked' },
  ];

  constructor(inner: World, calmMs: number) {
    this.#inner = inner;
    this.#calmMs = calmMs;
  }

  get initialState(): World['initialState'] {
    return this.#inner.initialState;
  }

  nextAtMs(): number {
    const atMs = this.#inner.nextAtMs();
    if (atMs < this.#calmMs) return atMs;
    return this.#remainingChanges.length > 0 ? this.#calmMs : Number.POSITIVE_INFINITY;
  }

  takeEvent(): WorldEvent | undefined {
    if (this.#inner.nextAtMs() < this.#calmMs) return this.#inner.takeEvent();
    const [change, ...remaining] = this.#remainingChanges;
    this.#remainingChanges = remaining;
    return change && { atMs: this.#calmMs, change };
  }

  fixAt(atMs: number): ReturnType<World['fixAt']> {
    return this.#inner.fixAt(atMs);
  }

  trueFixAt(atMs: number): ReturnType<World['trueFixAt']> {
    return this.#inner.trueFixAt(atMs);
  }

  cellPositionAt(atMs: number): ReturnType<World['cellPositionAt']> {
    return this.#inner.cellPositionAt(atMs);
  }
}

interface RunParts {
  readonly changeSignal: ChangeSignal;
  readonly gateway: GatewayChild;
  readonly merchant: DiaryMerchant;
}

/** One run with all its outages. */
export class OutageRun {
  readonly #options: OutageRunOptions;
  readonly #test: Test;
  readonly #changeSignal: ChangeSignal;
  readonly #diary: UplinkDiary;
  readonly #gateway: GatewayChild;
  readonly #merchant: DiaryMerchant;
  #clock!: RunClock;
  #startMs = 0;
  #fleet!: Fleet;

  private constructor(test: Test, options: OutageRunOptions, parts: RunParts) {
    this.#test = test;
    this.#options = options;
    this.#changeSignal = parts.changeSignal;
    this.#gateway = parts.gateway;
    this.#merchant = parts.merchant;
    // A lock writes its diary before it acts, so waiting code checks its condition only after the action.
    this.#diary = new UplinkDiary(() => afterThisTurn(() => this.#changeSignal.notify()));
  }

  /** Runs to the end. @throws Error if a gateway does not start or a phase does not end */
  static async run(test: Test, options: OutageRunOptions): Promise<OutageRunResult> {
    const chance = new SeededChance(options.seed);
    const changeSignal = new ChangeSignal();
    const merchant = await DiaryMerchant.start({
      chance,
      webhookFailureShare: 0,
      maxAnswerMs: 0,
      onLine: () => changeSignal.notify(),
    });
    test.teardown(() => merchant.close());
    const gateway = await GatewayChild.create(test, { speed: options.speed, sabotage: options.sabotage });
    const run = new OutageRun(test, options, { changeSignal, gateway, merchant });
    await run.#setUp();
    const unackedAtRestart: number[] = [];
    for (const outage of options.outages) unackedAtRestart.push(await run.#runOutage(outage));
    return { ...(await run.#conclude()), unackedAtRestart };
  }

  async #setUp(): Promise<void> {
    const { locks, seed, speed, calmAfterMs, worldOf } = this.#options;
    const gateway = this.#gateway;
    await setRunClockToNine(gateway.options.data);
    await gateway.start();
    await gateway.post('/merchants', { name: 'Amber' });
    this.#merchant.verifyWith(await gateway.addWebhook(this.#merchant.url));
    const macs = fleetMacs(seed, locks);
    const { devices } = await gateway.post<{ devices: { secret: string }[] }>('/devices/import', {
      devices: macs.map((mac) => ({ mac: formatMac(mac) })),
    });
    const secrets = new Map(macs.map((mac, index): [Mac, string] => [mac, devices[index]?.secret ?? '']));
    const { run_clock } = await gateway.get<{ run_clock: string }>('/status');
    this.#startMs = Date.parse(run_clock);
    this.#clock = new RunClock(this.#startMs, speed);
    this.#fleet = new Fleet({
      seed,
      clock: this.#clock,
      macs,
      pace: 'lively',
      openLink: mqttLinks({ host: '127.0.0.1', port: gateway.mqttPort }, (mac) => secrets.get(mac) ?? ''),
      diary: this.#diary.observe,
      startEvery: 0,
      worldOf: (_mac, index) => new CalmingWorld(worldOf(index, this.#startMs, seed), this.#startMs + calmAfterMs),
    });
    this.#test.teardown(() => this.#fleet.stop());
    this.#fleet.start();
  }

  /** Resolves at this time after the start of the run, by the run's clock. */
  #waitUntilRunTime(afterMs: Milliseconds): Promise<void> {
    const remaining = this.#startMs + afterMs - this.#clock.now();
    return new Promise((resolve) => void this.#clock.after(remaining, resolve));
  }

  /** Stops the gateway and starts it again. Returns how many uplinks wait in the locks at its start. */
  async #runOutage({ afterMs, durationMs, signal }: Outage): Promise<number> {
    await this.#waitUntilRunTime(afterMs);
    if (signal === 'SIGKILL') await this.#gateway.kill();
    else await this.#gateway.stop(STOP_SECONDS);
    const stoppedAfterMs = this.#clock.now() - this.#startMs;
    await this.#waitUntilRunTime(stoppedAfterMs + durationMs);
    const { unacked } = this.#diary;
    await this.#gateway.start();
    this.#test.comment(
      `${signal}: ${this.#diary.created} made, ${unacked} unacknowledged when the gateway started again`,
    );
    return unacked;
  }

  async #conclude(): Promise<Omit<OutageRunResult, 'unackedAtRestart'>> {
    await this.#waitUntilRunTime(this.#options.calmAfterMs);
    await this.#changeSignal.waitUntil(
      () => this.#diary.unacked === 0 && this.#fleet.locks.every(isSettled),
      PHASE_SECONDS,
      () => `locks without unacknowledged uplinks: ${this.#diary.unacked} uplinks are unacknowledged`,
    );
    const disagreements = await this.#comparePresence();
    await this.#fleet.stop();
    const expected = (): number => this.#diary.created - this.#diary.discarded - this.#diary.unacked;
    await this.#changeSignal.waitUntilOrStalled(
      () => this.#merchant.accepted >= expected(),
      () => this.#merchant.arrivals.length,
      STALL_SECONDS,
    );
    await this.#gateway.stop(STOP_SECONDS);
    const { arrivals } = this.#merchant;
    return {
      // At least one uplink must have been acknowledged, so that the check checks something.
      findings: checkDeliveries(this.#diary.toDeliver(), arrivals, 1),
      diary: this.#diary,
      arrivals: arrivals.length,
      rules: this.#rules(),
      disagreements,
      errorLines: this.#gateway.errorLines,
    };
  }

  /**
   * Compares whether the gateway and each lock say that the lock is connected. Repeats this until all agree, since the
   * gateway notices a disconnect late; returns the remaining differences.
   */
  async #comparePresence(): Promise<string[]> {
    for (let polls = 0; ; polls += 1) {
      const { devices } = await this.#gateway.get<{ devices: { mac: string; presence: string }[] }>('/devices');
      const presences = new Map(devices.map(({ mac, presence }) => [mac, presence]));
      const differences = this.#fleet.locks.flatMap(({ mac, state }) => {
        const ownPresence = state.link === 'up' ? 'online' : 'asleep';
        const gatewayPresence = presences.get(formatMac(mac));
        return ownPresence === gatewayPresence
          ? []
          : [`${formatMac(mac)} is ${ownPresence} according to itself, and the gateway says ${gatewayPresence}`];
      });
      if (differences.length === 0 || polls >= MAX_POLLS) return differences;
      await realDelay(POLL_INTERVAL_MS);
    }
  }

  /** Reads the judge's findings from the file of the stopped gateway. */
  #rules(): OutageRunResult['rules'] {
    const db = new Database(path.join(this.#gateway.options.data, 'lockgate.sqlite'), { readonly: true });
    const rows = db
      .prepare('SELECT rule, count(*) AS count, max(message) AS message FROM finding GROUP BY rule')
      .all() as {
      rule: string;
      count: number;
      message: string;
    }[];
    db.close();
    return new Map(rows.map(({ rule, count, message }) => [rule, { count, message }]));
  }
}

/** Whether the lock is asleep, or connected in a state that holds the connection open; not in between. */
function isSettled({ state }: Lock): boolean {
  const holdsConnection = state.stateName === 'RECOVERY' || state.stateName === 'HIGH';
  return holdsConnection ? state.link === 'up' : state.link === 'down' && state.waiting.length === 0;
}

/**
 * Sets the start of the run to nine in the morning of the day after tomorrow, by the clock in the store. Nine is inside
 * the window of HIGH mode; a time later than the wall-clock time makes the run's clock continue at each start.
 */
async function setRunClockToNine(data: string): Promise<void> {
  const store = await openStore(sqliteUrl(data));
  const today = Math.floor(systemClock.now() / Days(1)) * Days(1);
  await store.writeMetadata('run-clock-ms', String(today + Days(2) + Hours(9)));
  await store.close();
}
