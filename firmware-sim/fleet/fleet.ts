/**
 * Many simulated locks from one seed: their MACs, their worlds (what happens to each lock), and how they start and
 * stop. virtual-run.ts uses it without a gateway, the live runs of the CLI with one.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';
import type { Bug } from '../faults/bug.js';
import { assignBugs, type BugAssignment, linkWithBugs, stepWithBugs } from '../faults/bugs.js';
import type { OpenLink } from '../link/link.js';
import type { Diary } from '../lock/diary.js';
import type { Flash } from '../lock/flash.js';
import { Lock } from '../lock/lock.js';
import { Prng } from '../prng.js';
import { DEMO_SCRIPTS, OWN_ROUTE_SCRIPT } from '../world/demo-script.js';
import { EVERYDAY, LIVELY } from '../world/pace.js';
import { PlannedWorld } from '../world/planned-world.js';
import { AMSTERDAM, type City } from '../world/routes/city.js';
import type { WaypointPath } from '../world/routes/waypoint-route.js';
import type { World } from '../world/world.js';
import { assignMix, type MixPart } from './mix.js';

/** Which locks the fleet has, and what happens to them. */
export interface FleetOptions {
  readonly seed: string | number;
  readonly clock: Clock;
  readonly openLink: OpenLink;
  /** The locks' MACs: from `fleetMacs`, or of devices that a merchant has registered. */
  readonly macs: readonly Mac[];
  /** `everyday`: commuters. `lively`: a demo with every trigger in the first half hour, and short waits after that. */
  readonly pace: 'everyday' | 'lively';
  /** The city of the riders; Amsterdam by default. */
  readonly city?: City;
  /**
   * The path that all riders take there and back, in its own city: first a minute after the start, then at the times of
   * the pace. Ride tracking is on, unless the mix says otherwise. By default routes are generated.
   */
  readonly path?: WaypointPath;
  /** The locks' persistent memory. By default its content is lost with the process. */
  readonly flash?: Flash;
  /** Called with what happens to each lock and what the lock does. */
  readonly diary?: Diary;
  /** Initial settings; by default drawn from the seed. With a mix no demo script is played. */
  readonly mix?: readonly MixPart[];
  /** The firmware bugs of the locks; none by default. */
  readonly bugs?: readonly BugAssignment[];
  /** Makes the world of each lock: what happens to it. By default a world is generated from the seed. */
  readonly worldOf?: (mac: Mac, index: number) => World;
  /**
   * The boots that locks without a flash count as made before this run. Must be more than in any earlier run against
   * the same gateway, which would otherwise take their uplinks for those of that run.
   */
  readonly bootsBefore?: number;
  /** The time between the starts of two locks, by the run's clock; 10 s by default. */
  readonly startEvery?: Milliseconds;
}

/** The firmware version that simulated locks report; any would do. */
const FIRMWARE_VERSION = '2.4.1';
/** Maximum size of a fleet. One process can't simulate that many locks live. */
const MAX_LOCKS = 1_000_000;
/** The vendor's part of a MAC: the second bit of the first byte marks it as locally administered (IEEE 802). */
const MAC_PREFIX = 'A6C138';
/** Maximum number of MACs drawn to find one with the wanted minute. */
const MAX_MACS_TRIED = 100_000;
/** With `periodMinute`, the first lock's Period Ping (its daily ping) comes between these minutes after it. */
const PERIOD_AFTER_MINUTES = { min: 2, max: 20 } as const;
const MINUTES_OF_DAY = 24 * 60;
const DEFAULT_START_EVERY_MS: Milliseconds = Seconds(10);

/**
 * The MACs of a fleet, the same for the same seed and count. With `periodMinute` (of the UTC day), the first lock makes
 * its Period Ping (its daily ping) 2 to 20 minutes after that minute, so that a demo which starts then shows one.
 *
 * @throws LockgateError `bad-count` for a count outside 1…1,000,000
 */
export function fleetMacs(seed: string | number, count: number, periodMinute?: number): Mac[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_LOCKS)
    throw new LockgateError('bad-count', `a fleet has 1 to ${MAX_LOCKS} locks, not ${count}`);
  const prng = new Prng(seed).fork('macs');
  const macs = new Set<Mac>();
  if (periodMinute !== undefined) macs.add(macWithPeriodAfter(prng.fork('period'), periodMinute));
  // A MAC drawn twice is drawn again. This ends, since the count is far below the 2²⁴ possible MACs.
  while (macs.size < count) macs.add(drawMac(prng));
  return [...macs];
}

/**
 * Draws a MAC whose Period Ping is soon after this minute of the UTC day: a lock's MAC determines its period minute.
 */
function macWithPeriodAfter(prng: Prng, minute: number): Mac {
  for (let tried = 0; tried < MAX_MACS_TRIED; tried++) {
    const mac = drawMac(prng);
    const waitMinutes = (periodMinuteOf(mac) - minute + MINUTES_OF_DAY) % MINUTES_OF_DAY;
    if (waitMinutes >= PERIOD_AFTER_MINUTES.min && waitMinutes <= PERIOD_AFTER_MINUTES.max) return mac;
  }
  throw new Error('no MAC was found with a period minute near the wanted one');
}

/** A random MAC, locally administered. */
export function drawMac(prng: Prng): Mac {
  const mac = macFromWire(`${MAC_PREFIX}${prng.integer(0, 0xffffff).toString(16).padStart(6, '0').toUpperCase()}`);
  if (mac === undefined) throw new Error('the drawn MAC is invalid');
  return mac;
}

/** A fleet of simulated locks. */
export class Fleet {
  readonly locks: readonly Lock[];
  readonly #clock: Clock;
  readonly #startEvery: Milliseconds;
  readonly #timers: Timer[] = [];

  /** @throws LockgateError `bad-flash` where a lock's flash can't be read. */
  constructor(options: FleetOptions) {
    this.#clock = options.clock;
    this.#startEvery = options.startEvery ?? DEFAULT_START_EVERY_MS;
    const maker = new LockMaker(options);
    this.locks = options.macs.map((_, index) => maker.make(index));
  }

  /** Starts one lock after another. */
  start(): void {
    this.locks.forEach((lock, index) => {
      if (index === 0) lock.start();
      else this.#timers.push(this.#clock.after(index * this.#startEvery, () => lock.start()));
    });
  }

  /** Switches all locks off at once, within a second or two. Each connection is closed properly. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.locks.map((lock) => lock.stop()));
  }
}

/** The clock and the link of a lock that is simulated by itself. */
export interface OwnSurroundings {
  readonly clock: Clock;
  readonly openLink: OpenLink;
}

/** Makes the locks of a fleet, one at a time. A lock does not depend on which others were made before it. */
export class LockMaker {
  readonly #options: FleetOptions;
  readonly #startEvery: Milliseconds;
  readonly #initial: readonly MixPart[] | undefined;
  readonly #bugs: readonly (readonly Bug[])[] | undefined;

  constructor(options: FleetOptions) {
    const { macs, mix, bugs } = options;
    this.#options = options;
    this.#startEvery = options.startEvery ?? DEFAULT_START_EVERY_MS;
    this.#initial = mix && assignMix(mix, macs.length);
    this.#bugs = bugs && assignBugs(bugs, macs.length);
  }

  /**
   * Makes the lock with this index.
   *
   * @param own a clock and a link in place of those of the fleet
   * @throws LockgateError `bad-flash` if its flash can't be read
   */
  make(index: number, own: OwnSurroundings = this.#options): Lock {
    const { macs, seed, flash, diary, bootsBefore } = this.#options;
    const mac = macs[index];
    if (mac === undefined) throw new Error(`the fleet has no lock ${index}`);
    const bugs = this.#bugs?.[index] ?? [];
    const prng = new Prng(seed).fork(mac);
    return new Lock({
      mac,
      firmwareVersion: FIRMWARE_VERSION,
      clock: own.clock,
      world: this.#options.worldOf?.(mac, index) ?? this.#worldOf(index, prng.fork('world'), own.clock.now()),
      openLink: linkWithBugs(bugs, own.openLink),
      jitterSeed: prng.fork('lock').uint32(),
      stepFunction: stepWithBugs(bugs, stepInPlace),
      flash,
      diary,
      bootsBefore,
    });
  }

  /** The generated world of a lock. */
  #worldOf(index: number, prng: Prng, nowMs: number): World {
    const initial = this.#initial?.[index]?.initial;
    const { path, city, pace } = this.#options;
    const isLively = pace === 'lively';
    const demo = isLively && initial === undefined ? DEMO_SCRIPTS[index % DEMO_SCRIPTS.length] : undefined;
    const script = path === undefined ? demo : { ...OWN_ROUTE_SCRIPT, power: initial?.power ?? OWN_ROUTE_SCRIPT.power };
    return new PlannedWorld({
      prng,
      city: path?.city ?? city ?? AMSTERDAM,
      path,
      startMs: nowMs + index * this.#startEvery,
      pace: isLively ? LIVELY : EVERYDAY,
      script,
      initial,
    });
  }
}
