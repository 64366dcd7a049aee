/**
 * Two stores with millions of pings, which several measurements of the bench share. They are filled once per run,
 * because filling them takes longer than measuring.
 */
import { cpSync } from 'node:fs';
import { systemClock } from '../../proto/clock.js';
import { registerLocks } from './load/lock-logins.js';
import type { FillRequest } from './peers/fill-store.js';
import { Resources } from './resources.js';
import { BENCH_LOCKS } from './rows/ingest.js';

/** Two data folders in which the bench's locks are registered, with their numbers of pings. */
export interface LargeStores {
  readonly smallerFolder: { readonly pings: number; readonly data: string };
  readonly largerFolder: { readonly pings: number; readonly data: string };
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

/** Fills the larger store, and copies it when it is as large as the smaller one must be. */
async function fillStores(divisor: number): Promise<LargeStores> {
  const resources = new Resources();
  const smallerFolder = resources.makeFolder();
  const largerFolder = resources.makeFolder();
  const smallerPings = Math.round(SMALLER_PINGS / divisor);
  const largerPings = Math.round(LARGER_PINGS / divisor);
  await registerLocks(largerFolder, BENCH_LOCKS);
  const appendPings = await startFillingStore(resources, {
    data: largerFolder,
    locks: BENCH_LOCKS,
    receivedAtMs: systemClock.now(),
  });
  await appendPings(smallerPings);
  // The program closes the store after each request, so its files are complete.
  cpSync(largerFolder, smallerFolder, { recursive: true });
  await appendPings(largerPings - smallerPings);
  return {
    smallerFolder: { pings: smallerPings, data: smallerFolder },
    largerFolder: { pings: largerPings, data: largerFolder },
  };
}

/** Returns a function that appends pings to the store and prints how long this took. */
export async function startFillingStore(
  resources: Resources,
  request: FillRequest,
): Promise<(pings: number) => Promise<void>> {
  const program = resources.startScript('peers/fill-store.js', request);
  return async (pings) => {
    const startedAtMs = performance.now();
    await program.ask(String(pings));
    const seconds = (performance.now() - startedAtMs) / 1000;
    console.error(`  stored ${pings.toLocaleString('en')} pings in ${seconds.toFixed(0)} s`);
  };
}
