/**
 * Plays a scenario: makes its locks and their worlds, lets happen what was planned, keeps what the locks wrote down.
 * Where the locks connect to, who sends commands and who speaks for a phone are for whoever plays it: without a gateway
 * (scenario/virtual.ts) or against one.
 */
import { type Clock, type Milliseconds, Minutes, type Timer } from '../../proto/clock.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, LockState, PingUplink } from '../../proto/wire/ping.js';
import { actWith, type BugOrder, linkWith, shareBugs } from '../faults/bugs.js';
import { drawMac } from '../fleet/fleet.js';
import type { OpenLink } from '../link/link.js';
import type { DiaryEntry } from '../lock/diary.js';
import { Lock } from '../lock/lock.js';
import { Prng } from '../prng.js';
import { DirectedWorld } from '../world/directed-world.js';
import { LockRecord } from './record.js';
import type { Scenario, ScenarioEvent, ScenarioLock } from './scenario.js';

/** Who acts upon locks from elsewhere. Both may take their time; what comes of it the locks' diaries tell. */
export interface Actors {
  /** Sends a command. */
  command(mac: Mac, command: Command): void;
  /** Sends what a phone says for a lock, and calls `acknowledged` when the other side has it. */
  phone(mac: Mac, uplink: PingUplink, acknowledged: () => void): void;
}

export interface ScenarioPlayOptions {
  readonly scenario: Scenario;
  readonly seed: string;
  readonly clock: Clock;
  /** When it begins by that clock, ms since the epoch: the scenario's own start, or another one. */
  readonly startMs: number;
  /** Who the locks are, in the scenario's order. */
  readonly macs: readonly Mac[];
  readonly openLink: OpenLink;
  readonly actors: Actors;
  /** How often the locks booted before, and their phones: more than in any run before against the same gateway. */
  readonly bootsBefore?: number;
  readonly bugs?: readonly BugOrder[];
  /** Told of each line of the locks' diaries, by the clock's time. */
  readonly diary?: (mac: Mac, atMs: number, entry: DiaryEntry) => void;
}

const FIRMWARE_VERSION = '2.4.1';
/** A phone knows its place about as well as that. */
const PHONE_UNCERTAINTY_METERS = 12;
/** Among how many MACs one with the wanted minute is looked for: some seventy have it. */
const MACS_TRIED = 100_000;

interface Player {
  readonly lock: Lock;
  readonly world: DirectedWorld;
  readonly record: LockRecord;
  phoneSequence: number;
}

export class ScenarioPlay {
  readonly locks: readonly Lock[];
  /** What each lock wrote down, by its name, in the scenario's time. */
  readonly records: ReadonlyMap<string, LockRecord>;
  readonly #options: ScenarioPlayOptions;
  readonly #players: ReadonlyMap<string, Player>;
  /** What lies between the scenario's time and the clock's. */
  readonly #shift: Milliseconds;
  readonly #timers: Timer[] = [];

  constructor(options: ScenarioPlayOptions) {
    const { scenario, macs } = options;
    this.#options = options;
    this.#shift = options.startMs - scenario.startMs;
    const bugs = shareBugs(options.bugs ?? [], scenario.locks.length);
    const players = scenario.locks.map((lock, index): [string, Player] => {
      const mac = macs[index];
      if (mac === undefined) throw new Error(`the lock ${lock.name} has no MAC`);
      return [lock.name, this.#player(lock, mac, bugs[index] ?? [])];
    });
    this.#players = new Map(players);
    this.locks = players.map(([, { lock }]) => lock);
    this.records = new Map(players.map(([name, { record }]) => [name, record]));
  }

  /** The end of the scenario by the clock. */
  get endMs(): number {
    return this.#options.scenario.endMs + this.#shift;
  }

  #player(lock: ScenarioLock, mac: Mac, bugs: Parameters<typeof actWith>[0]): Player {
    const { scenario, clock, openLink, bootsBefore, diary } = this.#options;
    // By its name, so that a lock lives the same whatever its MAC.
    const prng = new Prng(this.#options.seed).fork(lock.name);
    const { city, places, files } = scenario;
    const { beginning, place } = lock;
    const world = new DirectedWorld({ prng: prng.fork('world'), city, beginning, place, places, files });
    const record = new LockRecord();
    const made = new Lock({
      mac,
      firmwareVersion: FIRMWARE_VERSION,
      clock,
      world,
      openLink: linkWith(bugs, openLink),
      chance: prng.fork('lock').uint32(),
      act: actWith(bugs, stepInPlace),
      diary: (_mac, atMs, entry) => {
        record.note(atMs - this.#shift, entry);
        diary?.(mac, atMs, entry);
      },
      ...(bootsBefore !== undefined && { bootsBefore }),
    });
    return { lock: made, world, record, phoneSequence: 0 };
  }

  /** Gives the locks power and lets things happen from now on; to be called when the clock shows the start. */
  start(): void {
    for (const event of this.#options.scenario.events) this.#plan(event);
    for (const { lock } of this.#players.values()) lock.start();
  }

  #plan({ atMs, locks, happening }: ScenarioEvent): void {
    const dueMs = atMs + this.#shift;
    for (const name of locks) {
      const player = this.#players.get(name);
      if (player === undefined) throw new Error(`there is no lock ${name}`);
      if (happening.type !== 'command') player.world.tell(happening, dueMs);
      if (happening.type === 'command')
        this.#at(dueMs, () => this.#options.actors.command(player.lock.mac, happening.command));
      else if (happening.type === 'phone') this.#at(dueMs, () => this.#speak(player, happening.lockState, dueMs));
    }
  }

  #at(dueMs: number, act: () => void): void {
    const { clock } = this.#options;
    this.#timers.push(clock.after(dueMs - clock.now(), act));
  }

  /** A phone says what it does, with what the lock has told it and its own place. */
  #speak(player: Player, lockState: LockState, atMs: number): void {
    const { lock, world, record } = player;
    const { power, batteryPercent, ebikeVolts, tetherState } = lock.state;
    player.phoneSequence += 1;
    const uplink: PingUplink = {
      boot: (this.#options.bootsBefore ?? 0) + 1,
      sequence: player.phoneSequence,
      timeMs: atMs,
      power,
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
    record.phoneSent(atMs - this.#shift, uplink);
    this.#options.actors.phone(lock.mac, uplink, () => {
      record.phoneAcknowledged(this.#options.clock.now() - this.#shift, uplink);
    });
  }

  /** How many pings nobody has acknowledged. */
  get unacknowledged(): number {
    let count = 0;
    for (const record of this.records.values()) count += record.unacknowledged;
    return count;
  }

  /** Takes the power from all of them at once, each connection closed in good order. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.locks.map((lock) => lock.stop()));
  }
}

/**
 * The MACs of a scenario's locks, the same for the same seed: each with its daily ping at the minute that the scenario
 * says, moved by as much as the run's start is.
 */
export function scenarioMacs(scenario: Scenario, seed: string, startMs: number): Mac[] {
  const shiftMinutes = Math.floor((startMs - scenario.startMs) / Minutes(1));
  // By the scenario's name too, so that several can be played against one gateway.
  const prng = new Prng(seed).fork(`macs of ${scenario.name}`);
  const taken = new Set<Mac>();
  return scenario.locks.map(({ dailyPingMinute }) => {
    const minute = (((dailyPingMinute + shiftMinutes) % 1440) + 1440) % 1440;
    const mac = macWithMinute(prng, minute, taken);
    taken.add(mac);
    return mac;
  });
}

function macWithMinute(prng: Prng, minute: number, taken: ReadonlySet<Mac>): Mac {
  for (let tried = 0; tried < MACS_TRIED; tried++) {
    const mac = drawMac(prng);
    if (periodMinuteOf(mac) === minute && !taken.has(mac)) return mac;
  }
  throw new Error('no MAC has the minute of the daily ping that is wanted');
}
