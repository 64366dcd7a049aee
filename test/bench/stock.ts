/**
 * Stores with very many pings in them, made once in a run and then used by each row that wants one: filling them takes
 * longer than measuring.
 */
import { cpSync } from 'node:fs';
import { systemClock } from '../../proto/clock.js';
import type { FillRequest } from './beside/fill-store.js';
import { provisionCrowd } from './load/crowd-accounts.js';
import { LOCKS } from './rows/ingest.js';
import { Stage } from './stage.js';

/** Data folders that know the crowd, by how many pings they have. */
export interface Stock {
  readonly some: { readonly pings: number; readonly data: string };
  readonly many: { readonly pings: number; readonly data: string };
}

const SOME = 1_000_000;
const MANY = 10_000_000;
/** In a quick run a thirtieth of it. */
const QUICK_SHARE = 30;

let made: Promise<Stock> | undefined;

/** One and ten million pings; made at the first call, gone at the end of the run. */
export function stock(quick: boolean): Promise<Stock> {
  made ??= make(quick ? QUICK_SHARE : 1);
  return made;
}

async function make(share: number): Promise<Stock> {
  const stage = new Stage();
  const [some, many] = [stage.folder(), stage.folder()];
  const [fewer, more] = [Math.round(SOME / share), Math.round(MANY / share)];
  await provisionCrowd(many, LOCKS);
  const fill = await filler(stage, { data: many, locks: LOCKS, receivedAtMs: systemClock.now() });
  await fill(fewer);
  cpSync(many, some, { recursive: true });
  await fill(more - fewer);
  return { some: { pings: fewer, data: some }, many: { pings: more, data: many } };
}

/** Appends so many pings at each call, and says how long it took. */
export async function filler(stage: Stage, request: FillRequest): Promise<(pings: number) => Promise<void>> {
  const program = stage.script('beside/fill-store.js', request);
  return async (pings) => {
    const beganAt = performance.now();
    await program.answer(String(pings));
    const seconds = (performance.now() - beganAt) / 1000;
    console.error(`  stored ${pings.toLocaleString('en')} pings in ${seconds.toFixed(0)} s`);
  };
}
