/**
 * Stores with millions of pings, filled once per run and used by several rows, because filling them takes longer than
 * measuring.
 */
import { cpSync } from 'node:fs';
import { systemClock } from '../../proto/clock.js';
import { provisionCrowd } from './load/crowd-accounts.js';
import type { FillRequest } from './peers/fill-store.js';
import { Resources } from './resources.js';
import { LOCKS } from './rows/ingest.js';

/** Two data folders in which the locks of the load are registered, with their numbers of pings. */
export interface LargeStores {
  readonly smaller: { readonly pings: number; readonly data: string };
  readonly larger: { readonly pings: number; readonly data: string };
}

const SMALLER_PINGS = 1_000_000;
const LARGER_PINGS = 10_000_000;
/** A quick run divides the numbers of pings by this. */
const QUICK_DIVISOR = 30;

let storesPromise: Promise<LargeStores> | undefined;

/** Stores with one and ten million pings, filled at the first call and deleted at the end of the run. */
export function largeStores(quick: boolean): Promise<LargeStores> {
  storesPromise ??= fillStores(quick ? QUICK_DIVISOR : 1);
  return storesPromise;
}

async function fillStores(share: number): Promise<LargeStores> {
  const resources = new Resources();
  const [smaller, larger] = [resources.folder(), resources.folder()];
  const [fewer, more] = [Math.round(SMALLER_PINGS / share), Math.round(LARGER_PINGS / share)];
  await provisionCrowd(larger, LOCKS);
  const fill = await filler(resources, { data: larger, locks: LOCKS, receivedAtMs: systemClock.now() });
  await fill(fewer);
  cpSync(larger, smaller, { recursive: true });
  await fill(more - fewer);
  return { smaller: { pings: fewer, data: smaller }, larger: { pings: more, data: larger } };
}

/** Returns a function that appends pings to the store and prints how long this took. */
export async function filler(resources: Resources, request: FillRequest): Promise<(pings: number) => Promise<void>> {
  const program = resources.script('peers/fill-store.js', request);
  return async (pings) => {
    const beganAt = performance.now();
    await program.answer(String(pings));
    const seconds = (performance.now() - beganAt) / 1000;
    console.error(`  stored ${pings.toLocaleString('en')} pings in ${seconds.toFixed(0)} s`);
  };
}
