/**
 * What a lock says when a story happens to it: a simulated lock lives through it without waiting, so that the pings,
 * their order and the times between them are the power model's, and not somebody's idea of them.
 */
import { Days, Hours, type Milliseconds, Minutes } from '../../proto/clock.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import { isPingUplink, type PingUplink, type Source, type TetherState } from '../../proto/wire/ping.js';
import { MemoryGateway } from '../link/memory-link.js';
import { Lock } from '../lock/lock.js';
import { QueueClock } from '../lock/queue-clock.js';
import { AMSTERDAM, type City } from './routes/city.js';
import type { Story } from './story.js';
import { StoryWorld } from './story-world.js';

/** The lock that it happens to, as it was last heard of. */
export interface StoryLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly batteryPercent: number;
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  /** Where it stands; null where nobody knows, which puts it in the middle of Amsterdam. */
  readonly place: { readonly latitudeDegrees: number; readonly longitudeDegrees: number } | null;
}

/** A ping of a story. */
export interface StoryPing {
  /** When it arrives, after the first of them. */
  readonly afterMs: Milliseconds;
  readonly source: Source;
  readonly uplink: PingUplink;
}

/** When and under which names a story is told. */
export interface Telling {
  /** When its first ping arrives, ms since the epoch. */
  readonly startMs: number;
  readonly boot: number;
  /** Of the first ping; the others follow as the lock counts them. */
  readonly firstSequence: number;
}

/** The lock has power for so long before the story begins, and what it says in that time belongs to no story. */
const LEAD: Milliseconds = Minutes(1);
/** Any day will do: the times are moved to those of the telling. */
const DAY_MS = Days(20_000);
/** Within the high window; the later one where the lock's period ping would fall into the story. */
const HOURS = [8, 14] as const;
const LONGEST_STORY: Milliseconds = Minutes(30);
/** Nearer to a pole or to the date line a bicycle's way would leave the map. */
const FARTHEST_LATITUDE = 85;
const FARTHEST_LONGITUDE = 179;

/** The pings of a story, in the order in which they arrive: at least one. */
export function runStory(story: Story, lock: StoryLock, telling: Telling): StoryPing[] {
  const zeroMs = zeroOf(story, lock.mac);
  const clock = new QueueClock(zeroMs - LEAD);
  const heard: { atMs: number; source: Source; uplink: PingUplink }[] = [];
  const hear = (source: Source, uplink: PingUplink): void => {
    if (uplink.timeMs >= zeroMs) heard.push({ atMs: clock.now(), source, uplink });
  };
  const gateway = new MemoryGateway(
    { uplink: (_mac, uplink) => void (isPingUplink(uplink) && hear('lock', uplink)) },
    clock,
  );
  const { mac, firmwareVersion } = lock;
  const world = worldOf(story, lock, zeroMs);
  new Lock({ mac, firmwareVersion, clock, world, openLink: gateway.open, chance: 1 }).start();
  for (const [index, event] of story.events.entries()) {
    if (event.type === 'world') continue;
    clock.after(LEAD + event.afterMs, () => {
      const id = index + 1;
      if (event.type === 'phone') hear('phone', phonePing(lock, world, clock.now(), event.lockState));
      else gateway.send(mac, { id, expiresMs: clock.now() + Hours(1), command: event.command });
    });
  }
  clock.run(zeroMs + story.endsAfterMs);
  return retold(heard, telling);
}

function zeroOf({ atPeriodMinute = false }: Story, mac: Mac): number {
  const periodMs = Minutes(periodMinuteOf(mac));
  if (atPeriodMinute) return DAY_MS + periodMs;
  const [early, late] = [Hours(HOURS[0]), Hours(HOURS[1])];
  const isInTheWay = periodMs > early - LONGEST_STORY && periodMs < early + LONGEST_STORY;
  return DAY_MS + (isInTheWay ? late : early);
}

function worldOf(story: Story, lock: StoryLock, zeroMs: number): StoryWorld {
  const { ebikeVolts, tetherState } = lock;
  const beginning = {
    lockState: 'locked',
    batteryPercent: story.batteryPercent ?? lock.batteryPercent,
    power: story.power,
    ebikeVolts,
    tetherState,
    covered: true,
    skyOpen: true,
  } as const;
  const events = story.events.flatMap((event) =>
    event.type === 'world' ? [{ atMs: zeroMs + event.afterMs, change: event.change }] : [],
  );
  return new StoryWorld(beginning, events, middleOf(lock));
}

function middleOf({ place }: StoryLock): City {
  if (place === null) return AMSTERDAM;
  const isOnMap =
    Math.abs(place.latitudeDegrees) < FARTHEST_LATITUDE && Math.abs(place.longitudeDegrees) < FARTHEST_LONGITUDE;
  return isOnMap ? { ...AMSTERDAM, ...place } : AMSTERDAM;
}

/** What a phone says of the lock: its own position, and what it knows of the lock. Its numbers are its own. */
function phonePing(lock: StoryLock, world: StoryWorld, nowMs: number, lockState: 'locked' | 'unlocked'): PingUplink {
  const { batteryPercent, firmwareVersion, ebikeVolts, tetherState } = lock;
  const known = { batteryPercent, firmwareVersion, ebikeVolts, tetherState };
  const { position } = world.fixAt(nowMs);
  return {
    boot: 1,
    sequence: 1,
    timeMs: nowMs,
    power: world.beginning.power,
    kept: 0,
    dropped: 0,
    body: { kind: 'cellular', reason: 'PHONE', lockState, ...known, position },
  };
}

/** Moved to the telling's time, and named by its numbers: each sender counts from the first. */
function retold(
  heard: readonly { atMs: number; source: Source; uplink: PingUplink }[],
  { startMs, boot, firstSequence }: Telling,
): StoryPing[] {
  const firstMs = heard[0]?.atMs ?? 0;
  const firstOf = (wanted: Source): number => heard.find(({ source }) => source === wanted)?.uplink.sequence ?? 0;
  return heard.map(({ atMs, source, uplink }) => {
    const sequence = firstSequence + uplink.sequence - firstOf(source);
    const timeMs = startMs + uplink.timeMs - firstMs;
    return { afterMs: atMs - firstMs, source, uplink: { ...uplink, boot, sequence, timeMs } };
  });
}
