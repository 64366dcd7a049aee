/**
 * Runs a story with a simulated lock on a virtual clock, without waiting and without a gateway. A story is a short,
 * fixed sequence of events around one lock (story.ts). The pings, their order and the times between them come from the
 * power model.
 */
import { Days, Hours, type Milliseconds, Minutes } from '../../proto/clock.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import { isPingUplink, type PingUplink, type Source, type TetherState } from '../../proto/wire/ping.js';
import { MemoryGateway } from '../link/memory-link.js';
import { Lock } from '../lock/lock.js';
import { VirtualClock } from '../virtual-clock.js';
import { AMSTERDAM, type City } from '../world/routes/city.js';
import type { Story } from './story.js';
import { StoryWorld } from './story-world.js';

/** The lock of the story, in its last known state. */
export interface StoryLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly batteryPercent: number;
  /** Null without an e-bike. */
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  /** Where the bicycle stands; null if unknown, which means the middle of Amsterdam. */
  readonly place: { readonly latitudeDegrees: number; readonly longitudeDegrees: number } | null;
}

/** A ping of a story. */
export interface StoryPing {
  /** The time from the arrival of the story's first ping to the arrival of this one. */
  readonly afterMs: Milliseconds;
  /** The sender: the lock or a phone. */
  readonly source: Source;
  readonly uplink: PingUplink;
}

/** The time, boot number and sequence number of a story's first ping. */
export interface StoryStart {
  /** When the first ping arrives, ms since the epoch. */
  readonly startMs: number;
  readonly boot: number;
  /** Sequence number of the first ping; the lock numbers the later pings. */
  readonly firstSequence: number;
}

/** How long the lock is switched on before the story starts. Its uplinks of that time are not part of the story. */
const LEAD_TIME_MS: Milliseconds = Minutes(1);
/** The day on which stories are run. Any day would do, since all times are shifted to the given start. */
const STORY_DAY_MS = Days(20_000);
/**
 * Hours of the day at which a story starts, both in the high window, in which a lock in mode HIGH stays connected. The
 * later one is used if the lock's Period Ping, its daily ping, would fall into the story.
 */
const STORY_HOURS = [8, 14] as const;
/** Longer than each story. */
const MAX_STORY_MS: Milliseconds = Minutes(30);
/** Nearer to a pole or to the antimeridian, a bicycle's route would leave the map. */
const MAX_LATITUDE_DEGREES = 85;
const MAX_LONGITUDE_DEGREES = 179;

/** The pings of a story, in the order in which they arrive: at least one. */
export function runStory(story: Story, lock: StoryLock, start: StoryStart): StoryPing[] {
  const storyStartMs = storyStartOf(story, lock.mac);
  const clock = new VirtualClock(storyStartMs - LEAD_TIME_MS);
  const received: { atMs: number; source: Source; uplink: PingUplink }[] = [];
  const receive = (source: Source, uplink: PingUplink): void => {
    if (uplink.timeMs >= storyStartMs) received.push({ atMs: clock.now(), source, uplink });
  };
  const gateway = new MemoryGateway(
    { uplink: (_mac, uplink) => void (isPingUplink(uplink) && receive('lock', uplink)) },
    clock,
  );
  const { mac, firmwareVersion } = lock;
  const world = worldOf(story, lock, storyStartMs);
  let phoneSequence = 0;
  new Lock({ mac, firmwareVersion, clock, world, openLink: gateway.open, jitterSeed: 1 }).start();
  for (const [index, event] of story.events.entries()) {
    if (event.type === 'world') continue;
    clock.after(LEAD_TIME_MS + event.afterMs, () => {
      const id = index + 1;
      if (event.type === 'phone') {
        phoneSequence += 1;
        receive('phone', phonePing(lock, world, clock.now(), phoneSequence, event.lockState));
      } else gateway.send(mac, { id, expiresMs: clock.now() + Hours(1), command: event.command });
    });
  }
  clock.run(storyStartMs + story.endsAfterMs);
  return shiftAndRenumber(received, start);
}

/**
 * When the story starts on the virtual clock, so that the lock's daily ping is sent in it only if the story needs it.
 */
function storyStartOf({ atPeriodMinute = false }: Story, mac: Mac): number {
  const periodMs = Minutes(periodMinuteOf(mac));
  if (atPeriodMinute) return STORY_DAY_MS + periodMs;
  const [earlyMs, lateMs] = [Hours(STORY_HOURS[0]), Hours(STORY_HOURS[1])];
  const isPeriodPingNearEarly = periodMs > earlyMs - MAX_STORY_MS && periodMs < earlyMs + MAX_STORY_MS;
  return STORY_DAY_MS + (isPeriodPingNearEarly ? lateMs : earlyMs);
}

function worldOf(story: Story, lock: StoryLock, storyStartMs: number): StoryWorld {
  const { ebikeVolts, tetherState } = lock;
  const initialState = {
    lockState: 'locked',
    batteryPercent: story.batteryPercent ?? lock.batteryPercent,
    power: story.power,
    ebikeVolts,
    tetherState,
    // The lock reaches the cellular network, and its GPS receiver the satellites.
    covered: true,
    skyOpen: true,
  } as const;
  const events = story.events.flatMap((event) =>
    event.type === 'world' ? [{ atMs: storyStartMs + event.afterMs, change: event.change }] : [],
  );
  return new StoryWorld(initialState, events, cityOf(lock));
}

/** The place where the bicycle starts, as a map with its origin there. */
function cityOf({ place }: StoryLock): City {
  if (place === null) return AMSTERDAM;
  const isOnMap =
    Math.abs(place.latitudeDegrees) < MAX_LATITUDE_DEGREES && Math.abs(place.longitudeDegrees) < MAX_LONGITUDE_DEGREES;
  return isOnMap ? { ...AMSTERDAM, ...place } : AMSTERDAM;
}

/** The ping of a phone: the phone's position, and the last known state of the lock. */
function phonePing(
  lock: StoryLock,
  world: StoryWorld,
  nowMs: number,
  sequence: number,
  lockState: 'locked' | 'unlocked',
): PingUplink {
  const { batteryPercent, firmwareVersion, ebikeVolts, tetherState } = lock;
  const lastKnownState = { batteryPercent, firmwareVersion, ebikeVolts, tetherState };
  const { position } = world.fixAt(nowMs);
  return {
    // Replaced by the boot number of the story's start, as that of the lock's pings.
    boot: 1,
    sequence,
    timeMs: nowMs,
    power: world.initialState.power,
    // A phone buffers no uplinks: none waits to be sent (`kept`), and none was discarded (`dropped`).
    kept: 0,
    dropped: 0,
    body: { kind: 'cellular', reason: 'PHONE', lockState, ...lastKnownState, position },
  };
}

/** Shifts the pings to the given start and renumbers them: each sender counts from its first ping. */
function shiftAndRenumber(
  received: readonly { atMs: number; source: Source; uplink: PingUplink }[],
  { startMs, boot, firstSequence }: StoryStart,
): StoryPing[] {
  const firstMs = received[0]?.atMs ?? 0;
  const firstSequenceFrom = (sender: Source): number =>
    received.find(({ source }) => source === sender)?.uplink.sequence ?? 0;
  return received.map(({ atMs, source, uplink }) => {
    const sequence = firstSequence + uplink.sequence - firstSequenceFrom(source);
    const timeMs = startMs + uplink.timeMs - firstMs;
    return { afterMs: atMs - firstMs, source, uplink: { ...uplink, boot, sequence, timeMs } };
  });
}
