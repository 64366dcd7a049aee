/** What a lock sent, in the order in which it may arrive: late, out of order, and some of it again (protocol.md §3). */
import type { Prng } from '../../../firmware-sim/prng.js';
import type { InitialBelief } from '../../../proto/power/judge/belief.js';
import type { Command, Uplink } from '../../../proto/wire/ping.js';
import type { Alteration } from './scenario.js';
import { pairWalk } from './walk.js';

/** A life as the other side gets to know it. */
export interface Sent {
  readonly initial: InitialBelief;
  readonly uplinks: readonly Uplink[];
  readonly commands: readonly { readonly id: number; readonly command: Command }[];
}

/** What a lock sends in a random walk, and what it is told. */
export function sentOnWalk(seed: number, days: number, alteration: Alteration = {}): Sent {
  const commands: { id: number; command: Command }[] = [];
  const run = pairWalk(seed, days, {
    ...alteration,
    witness: (_atMs, what) => {
      if (what.type === 'command') commands.push(what.downlink);
    },
  });
  return { initial: run.initial, uplinks: run.judge.uplinks(), commands };
}

/** In any order, each once. */
export function shuffled<T>(random: Prng, items: readonly T[]): T[] {
  return displaced(random, items, items.length);
}

/** In an order in which none is more than some `places` from where it stood. */
export function displaced<T>(random: Prng, items: readonly T[], places: number): T[] {
  return items
    .map((item, index) => ({ item, place: index + random.between(0, places) }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}

/** A share of them once more, each somewhere after it came first. */
export function withRepeats<T>(random: Prng, items: readonly T[], share: number): T[] {
  const arrivals = items.map((item, index) => ({ item, place: index }));
  for (const [index, item] of items.entries()) {
    if (random.chance(share)) arrivals.push({ item, place: random.between(index, items.length) });
  }
  return arrivals.sort((one, other) => one.place - other.place).map(({ item }) => item);
}

/** Another content under the name of some of them: what a firmware sends that counts wrong. */
export function withConflicts(random: Prng, uplinks: readonly Uplink[], share: number): Uplink[] {
  return uplinks.flatMap((uplink) => {
    if (!random.chance(share)) return [uplink];
    const { body } = uplink;
    const other =
      body.kind === 'ack' ? { ...body, detail: 'other' } : { ...body, batteryPercent: random.integer(0, 100) };
    const power = random.chance(0.5) ? { ...uplink.power, recovery: !uplink.power.recovery } : uplink.power;
    const timeMs = uplink.timeMs + random.integer(0, 5000);
    return [uplink, { ...uplink, timeMs, power, body: other }];
  });
}
