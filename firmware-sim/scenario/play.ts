/**
 * Plays a scenario: creates its simulated locks and their worlds (what happens to each lock), schedules the events, and
 * records the locks' diaries (what each lock did). This file knows no gateway. The caller provides the links and the
 * actors: virtual-scenario.ts within the process, cli/commands/sim/scenario/live.ts with a gateway.
 */
import { type Clock, type Milliseconds, Minutes, type Timer } from '../../proto/clock.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, LockState, PingUplink } from '../../proto/wire/ping.js';
import { assignBugs, type BugAssignment, linkWithBugs, stepWithBugs } from '../faults/bugs.js';
import { drawMac } from '../fleet/fleet.js';
import type { OpenLink } from '../link/link.js';
import type { DiaryEntry } from '../lock/diary.js';
import { Lock } from '../lock/lock.js';
import { Prng } from '../prng.js';
import { DirectedWorld } from '../world/directed-world.js';
import { LockRecord } from './lock-record.js';
import type { Scenario, ScenarioEvent, ScenarioLock } from './scenario.js';

/** Sends commands and acts for phones. Both may take time; the locks' diaries show the result. */
export interface Actors {
  /** Sends a command to a lock. */
  command(mac: Mac, command: Command): void;
  /** Sends a phone's ping for a lock, and calls `acknowledged` once it is acknowledged. */
  phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void;
}

/** The scenario to play, and how its locks reach a gateway. */
export interface ScenarioPlayOptions {
  readonly scenario: Scenario;
  readonly seed: string;
  readonly clock: Clock;
  /** The start of the run by `clock`, ms since the epoch: the scenario's own start, or another time. */
  readonly startMs: number;
  /** The MACs of the locks, in the scenario's order. */
  readonly macs: readonly Mac[];
  readonly openLink: OpenLink;
  readonly actors: Actors;
  /** How often locks and phones have booted before: more than in any earlier run against the same gateway. */
  readonly bootsBefore?: number;
  readonly bugs?: readonly BugAssignment[];
  /** Called with each entry of the locks' diaries; times are by `clock`. */
  readonly diary?: (mac: Mac, atMs: number, entry: DiaryEntry) => void;
}

/** The firmware version that the locks report; any would do. */
const FIRMWARE_VERSION = '2.4.1';
/** The uncertainty of a phone's position. */
const PHONE_UNCERTAINTY_METERS = 12;
/** Maximum number of MACs drawn to find one with the wanted minute. About one in 1,440 has it. */
const MAX_MACS_TRIED = 100_000;
const MINUTES_OF_DAY = 24 * 60;

/** A lock of the running scenario. */
interface PlayedLock {
  readonly lock: Lock;
  readonly world: DirectedWorld;
  readonly record: LockRecord;
  /** The sequence number of the last ping of the lock's phone. */
  phoneSequence: number;
}

/** The locks and the scheduled events of one run of a scenario. */
export class ScenarioPlay {
  readonly locks: readonly Lock[];
  /** The record of each lock by the lock's name, in the scenario's time. */
  readonly records: ReadonlyMap<string, LockRecord>;
  readonly #options: ScenarioPlayOptions;
  readonly #playedLocks: ReadonlyMap<string, PlayedLock>;
  /** The time by the clock minus the scenario's time, ms. */
  readonly #clockAheadMs: Milliseconds;
  readonly #timers: Timer[] = [];

  constructor(options: ScenarioPlayOptions) {
    const { scenario, macs } = options;
    this.#options = options;
    this.#clockAheadMs = options.startMs - scenario.startMs;
    const bugs = assignBugs(options.bugs ?? [], scenario.locks.length);
    const playedLocks = scenario.locks.map((lock, index): [string, PlayedLock] => {
      const mac = macs[index];
      if (mac === undefined) throw new Error(`the lock ${lock.name} has no MAC`);
      return [lock.name, this.#makePlayedLock(lock, mac, bugs[index] ?? [])];
    });
    this.#playedLocks = new Map(playedLocks);
    this.locks = playedLocks.map(([, { lock }]) => lock);
    this.records = new Map(playedLocks.map(([name, { record }]) => [name, record]));
  }

  /** The end of the scenario by the clock. */
  get endMs(): number {
    return this.#options.scenario.endMs + this.#clockAheadMs;
  }

  /** Creates a simulated lock with its world and its record. */
  #makePlayedLock(lock: ScenarioLock, mac: Mac, bugs: Parameters<typeof stepWithBugs>[0]): PlayedLock {
    const { scenario, clock, openLink, bootsBefore, diary } = this.#options;
    // Seeded by the lock's name, so that what happens to the lock does not depend on its MAC.
    const prng = new Prng(this.#options.seed).fork(lock.name);
    const { city, places, waypointPaths } = scenario;
    const { initialState, place } = lock;
    const world = new DirectedWorld({
      prng: prng.fork('world'),
      city,
      initialState,
      place,
      places,
      files: waypointPaths,
    });
    const record = new LockRecord();
    const simulated = new Lock({
      mac,
      firmwareVersion: FIRMWARE_VERSION,
      clock,
      world,
      openLink: linkWithBugs(bugs, openLink),
      jitterSeed: prng.fork('lock').uint32(),
      stepFunction: stepWithBugs(bugs, stepInPlace),
      diary: (_mac, atMs, entry) => {
        record.addEntry(atMs - this.#clockAheadMs, entry);
        diary?.(mac, atMs, entry);
      },
      ...(bootsBefore !== undefined && { bootsBefore }),
    });
    return { lock: simulated, world, record, phoneSequence: 0 };
  }

  /** Starts the locks and schedules the events. To be called when the clock shows the start of the run. */
  start(): void {
    for (const event of this.#options.scenario.events) this.#scheduleEvent(event);
    for (const { lock } of this.#playedLocks.values()) lock.start();
  }

  #scheduleEvent({ atMs, locks, deviceEvent }: ScenarioEvent): void {
    const dueMs = atMs + this.#clockAheadMs;
    for (const name of locks) {
      const playedLock = this.#playedLocks.get(name);
      if (playedLock === undefined) throw new Error(`there is no lock ${name}`);
      // An event of a phone also changes the world: the lock opens or closes just after the phone's ping.
      if (deviceEvent.type !== 'command') playedLock.world.schedule(deviceEvent, dueMs);
      if (deviceEvent.type === 'command')
        this.#runAt(dueMs, () => this.#options.actors.command(playedLock.lock.mac, deviceEvent.command));
      else if (deviceEvent.type === 'phone')
        this.#runAt(dueMs, () => this.#sendPhonePing(playedLock, deviceEvent.lockState, dueMs));
    }
  }

  #runAt(dueMs: number, act: () => void): void {
    const { clock } = this.#options;
    this.#timers.push(clock.after(dueMs - clock.now(), act));
  }

  /** Sends a phone's ping, with the lock's last known state and the phone's position. */
  #sendPhonePing(playedLock: PlayedLock, lockState: LockState, atMs: number): void {
    const { lock, world, record } = playedLock;
    const { power, batteryPercent, ebikeVolts, tetherState } = lock.state;
    playedLock.phoneSequence += 1;
    const uplink: PingUplink = {
      boot: (this.#options.bootsBefore ?? 0) + 1,
      sequence: playedLock.phoneSequence,
      timeMs: atMs,
      power,
      // A phone buffers no uplinks: none waits to be sent (`kept`), and none was discarded (`dropped`).
      kept: 0,
      dropped: 0,
      body: {
        kind: 'cellular',
        reason: 'PHONE',
        lockState,
        batteryPercent,
        firmwareVersion: FIRMWARE_VERSION,
        ebikeVolts,
        tetherState,
        position: { ...world.fixAt(atMs).position, uncertaintyMeters: PHONE_UNCERTAINTY_METERS },
      },
    };
    record.phoneSent(atMs - this.#clockAheadMs, uplink);
    this.#options.actors.phone(lock.mac, uplink, () => {
      record.phoneAcknowledged(this.#options.clock.now() - this.#clockAheadMs, uplink);
    });
  }

  /** The number of pings that have not been acknowledged. */
  get unacknowledged(): number {
    let count = 0;
    for (const record of this.records.values()) count += record.unacknowledged;
    return count;
  }

  /** Switches all locks off at once; each connection is closed properly. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.locks.map((lock) => lock.stop()));
  }
}

/**
 * The MACs of a scenario's locks, the same for the same seed. Each lock has its daily ping at the minute that the
 * scenario gives, shifted by the difference between the start of the run and the start of the scenario.
 */
export function scenarioMacs(scenario: Scenario, seed: string, startMs: number): Mac[] {
  const shiftMinutes = Math.floor((startMs - scenario.startMs) / Minutes(1));
  // The scenario's name is part of the seed, so that several scenarios can be played against one gateway.
  const prng = new Prng(seed).fork(`macs of ${scenario.name}`);
  const taken = new Set<Mac>();
  return scenario.locks.map(({ dailyPingMinute }) => {
    // The second remainder makes a negative first one positive.
    const minute = (((dailyPingMinute + shiftMinutes) % MINUTES_OF_DAY) + MINUTES_OF_DAY) % MINUTES_OF_DAY;
    const mac = macWithMinute(prng, minute, taken);
    taken.add(mac);
    return mac;
  });
}

/** Draws a MAC that is not taken and whose daily ping is at this minute: a lock's MAC determines the minute. */
function macWithMinute(prng: Prng, minute: number, taken: ReadonlySet<Mac>): Mac {
  for (let tried = 0; tried < MAX_MACS_TRIED; tried++) {
    const mac = drawMac(prng);
    if (periodMinuteOf(mac) === minute && !taken.has(mac)) return mac;
  }
  throw new Error('no MAC was found with the wanted minute of the daily ping');
}
