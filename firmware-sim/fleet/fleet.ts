/** Many simulated locks from one seed: who they are, where they live, and how they start and stop. */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';
import { actWith, type Bug, type BugOrder, linkWith, shareBugs } from '../faults/bugs.js';
import type { OpenLink } from '../link/link.js';
import type { Diary } from '../lock/diary.js';
import type { Flash } from '../lock/flash.js';
import { Lock } from '../lock/lock.js';
import { Prng } from '../prng.js';
import { OPENINGS, OWN_WAY } from '../world/opening.js';
import { EVERYDAY, LIVELY } from '../world/pace.js';
import { type Begins, PlannedWorld } from '../world/planned-world.js';
import { AMSTERDAM, type City } from '../world/routes/city.js';
import type { WaypointPath } from '../world/routes/waypoint-route.js';
import type { World } from '../world/world.js';
import { dealMix, type MixPart } from './mix.js';

export interface FleetOptions {
  readonly seed: string | number;
  readonly clock: Clock;
  readonly openLink: OpenLink;
  /** Who they are: from `fleetMacs`, or the devices that a merchant has. */
  readonly macs: readonly Mac[];
  /** `everyday`: commuters. `lively`: for a demo, every trigger within the first half hour, and no long waits after. */
  readonly pace: 'everyday' | 'lively';
  /** Where they live; Amsterdam where it is left out. */
  readonly city?: City;
  /**
   * The way that they all ride, there and back, in its city: a minute after the beginning, and then as the pace has it;
   * with ride tracking, unless the mix says otherwise. Generated ways where it is left out.
   */
  readonly path?: WaypointPath;
  /** What they keep without power; gone with the process where it is left out. */
  readonly flash?: Flash;
  readonly diary?: Diary;
  /** What each lock is found with at its beginning; by chance where it is left out. With it no opening is played. */
  readonly mix?: readonly MixPart[];
  /** What is wrong with each lock; nothing where it is left out. */
  readonly bugs?: readonly BugOrder[];
  /** What happens to each lock, in place of a life that is made up from the seed. */
  readonly worldOf?: (mac: Mac, index: number) => World;
  /** How often they booted before, where no flash knows: more than in any run before against the same gateway. */
  readonly bootsBefore?: number;
  /** Between one lock's start and the next; by the clock of the run. */
  readonly startEvery?: Milliseconds;
}

const FIRMWARE_VERSION = '2.4.1';
/** More locks than one process can simulate live. */
const MOST_LOCKS = 1_000_000;
/** The maker's part of a MAC: the second bit of the first byte says that it is given out locally (IEEE 802). */
const MAC_PREFIX = 'A6C138';
/** Among how many MACs the one with the wanted minute is looked for. */
const MACS_TRIED = 100_000;

/**
 * The MACs of a fleet: the same for the same seed and count. Where `periodMinute` (of the UTC day) is given, the first
 * lock's Period Ping falls within the 20 minutes after it, so that a demo that begins then shows one.
 *
 * @throws LockgateError `bad-count` for a count that is not within 1…1,000,000
 */
export function fleetMacs(seed: string | number, count: number, periodMinute?: number): Mac[] {
  if (!Number.isInteger(count) || count < 1 || count > MOST_LOCKS)
    throw new LockgateError('bad-count', `a fleet has 1 to ${MOST_LOCKS} locks, not ${count}`);
  const prng = new Prng(seed).fork('macs');
  const macs = new Set<Mac>();
  if (periodMinute !== undefined) macs.add(macNear(prng.fork('period'), periodMinute));
  // A number drawn twice is drawn again: the count is far below the 2²⁴ that there are.
  while (macs.size < count) macs.add(drawMac(prng));
  return [...macs];
}

function macNear(prng: Prng, minute: number): Mac {
  for (let tried = 0; tried < MACS_TRIED; tried++) {
    const mac = drawMac(prng);
    const after = (periodMinuteOf(mac) - minute + 1440) % 1440;
    if (after >= 2 && after <= 20) return mac;
  }
  throw new Error('no MAC has a period minute near the one that is wanted');
}

/** A MAC that is given out locally, by chance. */
export function drawMac(prng: Prng): Mac {
  const mac = macFromWire(`${MAC_PREFIX}${prng.whole(0, 0xffffff).toString(16).padStart(6, '0').toUpperCase()}`);
  if (mac === undefined) throw new Error('a drawn MAC is always one');
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
    const { macs } = options;
    const startEvery = options.startEvery ?? Seconds(10);
    const begins = options.mix && dealMix(options.mix, macs.length);
    const bugs = options.bugs && shareBugs(options.bugs, macs.length);
    this.#clock = options.clock;
    this.#startEvery = startEvery;
    this.locks = macs.map((mac, index) => {
      return lockOf(options, mac, index, { startEvery, begins: begins?.[index]?.begins, bugs: bugs?.[index] ?? [] });
    });
  }

  /** Starts one lock after another. */
  start(): void {
    this.locks.forEach((lock, index) => {
      if (index === 0) lock.start();
      else this.#timers.push(this.#clock.after(index * this.#startEvery, () => lock.start()));
    });
  }

  /** Takes the power from all of them at once. Done within two seconds, each connection closed in good order. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.locks.map((lock) => lock.stop()));
  }
}

interface LockParts {
  readonly startEvery: Milliseconds;
  readonly begins: Begins | undefined;
  readonly bugs: readonly Bug[];
}

function lockOf(options: FleetOptions, mac: Mac, index: number, parts: LockParts): Lock {
  const { clock, openLink, flash, diary, bootsBefore } = options;
  const prng = new Prng(options.seed).fork(mac);
  return new Lock({
    mac,
    firmwareVersion: FIRMWARE_VERSION,
    clock,
    world: options.worldOf?.(mac, index) ?? worldOf(options, index, prng.fork('world'), parts),
    openLink: linkWith(parts.bugs, openLink),
    chance: prng.fork('lock').uint32(),
    act: actWith(parts.bugs, stepInPlace),
    ...(flash && { flash }),
    ...(diary && { diary }),
    ...(bootsBefore !== undefined && { bootsBefore }),
  });
}

function worldOf(options: FleetOptions, index: number, prng: Prng, { startEvery, begins }: LockParts): World {
  const isLively = options.pace === 'lively';
  const { path } = options;
  const part = isLively && begins === undefined ? OPENINGS[index % OPENINGS.length] : undefined;
  const opening = path === undefined ? part : { ...OWN_WAY, power: begins?.power ?? OWN_WAY.power };
  return new PlannedWorld({
    prng,
    city: path?.city ?? options.city ?? AMSTERDAM,
    ...(path && { path }),
    startMs: options.clock.now() + index * startEvery,
    pace: isLively ? LIVELY : EVERYDAY,
    ...(opening && { opening }),
    ...(begins && { begins }),
  });
}
