/**
 * Reorders and repeats the uplinks of a random walk, as late data may arrive (protocol.md §3), and adds uplinks with
 * conflicting content. A random walk is some days of a simulated lock with random events (walk.ts).
 */
import type { Prng } from '../../../firmware-sim/prng.js';
import type { InitialBelief } from '../../../proto/power/judge/belief.js';
import type { Command, Uplink } from '../../../proto/wire/ping.js';
import type { Alteration } from './scenario.js';
import { pairWalk } from './walk.js';

/** The uplinks and commands of one lock's walk, and what the judge knows of the lock at its start. */
export interface SentUplinks {
  readonly initial: InitialBelief;
  readonly uplinks: readonly Uplink[];
  readonly commands: readonly { readonly id: number; readonly command: Command }[];
}

/** Runs a random walk with a correct or altered lock; returns the lock's uplinks and the commands sent to the lock. */
export function sentOnWalk(seed: number, days: number, alteration: Alteration = {}): SentUplinks {
  const commands: { id: number; command: Command }[] = [];
  const run = pairWalk(seed, days, {
    ...alteration,
    observe: (_atMs, observed) => {
      if (observed.type === 'command') commands.push(observed.downlink);
    },
  });
  return { initial: run.initial, uplinks: run.judge.uplinks(), commands };
}

/** The items in random order. */
export function shuffled<T>(random: Prng, items: readonly T[]): T[] {
  return displaced(random, items, items.length);
}

/** The items in a random order in which no item has moved by more than `places`. */
export function displaced<T>(random: Prng, items: readonly T[], places: number): T[] {
  return items
    .map((item, index) => ({ item, place: index + random.between(0, places) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** The items, each repeated with this probability at a random later place. */
export function withRepeats<T>(random: Prng, items: readonly T[], probability: number): T[] {
  const arrivals = items.map((item, index) => ({ item, place: index }));
  for (const [index, item] of items.entries()) {
    if (random.chance(probability)) arrivals.push({ item, place: random.between(index, items.length) });
  }
  return arrivals.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

/**
 * The uplinks. With this probability each is followed by one with the same key (boot and sequence) and other content,
 * as a firmware bug may cause.
 */
export function withConflicts(random: Prng, uplinks: readonly Uplink[], probability: number): Uplink[] {
  return uplinks.flatMap((uplink) => {
    if (!random.chance(probability)) return [uplink];
    const { body } = uplink;
    const changedBody =
      body.kind === 'ack' ? { ...body, detail: 'other' } : { ...body, batteryPercent: random.integer(0, 100) };
    const power = random.chance(0.5) ? { ...uplink.power, recovery: !uplink.power.recovery } : uplink.power;
    const timeMs = uplink.timeMs + random.integer(0, 5000);
    return [uplink, { ...uplink, timeMs, power, body: changedBody }];
  });
}
