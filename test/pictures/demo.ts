/**
 * Runs `lockgate demo` as a separate process with a seed, in a folder of its own, and waits for one of its locks to be
 * stolen. Only main.ts beside it uses this.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Minutes, Seconds, systemClock } from '../../proto/clock.js';
import { root } from '../helpers/house/our-files.js';

const SEED = 'pictures';
const LOCKS = 30;
/** The demo runs at least this long, so that its timelines have something to show. */
const MIN_RUN = Seconds(60);
/** How long is waited for the demo's start, and then for a theft, before an error. */
const MAX_WAIT = Minutes(6);
const POLL_EVERY = Seconds(1);
/** A stolen lock is chosen only once it has sent this many theft pings, so that its track can be seen. */
const MIN_THEFT_PINGS = 12;

/** Of what the demo prints, so much is kept: its start, and its first pings and webhooks. */
const MAX_PRINTED_CHARS = 20_000;

/** What the pictures need of a running demo. */
export interface RunningDemo {
  /** The dashboard's one-time link. */
  readonly dashboard: string;
  /** The address of the operators' page, without a link's token. */
  readonly console: string;
  /**
   * Waits until a lock is being stolen and has been followed for a while. Returns its MAC.
   *
   * @throws Error if none is within the time limit
   */
  readonly waitForStolen: () => Promise<string>;
  /** What the demo has printed first. */
  readonly printed: string;
}

/** The members of a lock in `GET /v1/locks` that are read here. */
interface ListedLock {
  readonly mac_addr: string;
  readonly trouble: string;
}

/**
 * @param data the demo's data folder
 * @param onStarted takes a function that ends the demo
 * @throws Error if the demo does not start in time
 */
export async function startDemo(data: string, onStarted: (close: () => Promise<void>) => void): Promise<RunningDemo> {
  const flags = ['demo', '--data', data, '--seed', SEED, '--locks', String(LOCKS)];
  const child = spawn(process.execPath, [join(root, 'dist/program/main.js'), ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  onStarted(async () => {
    child.kill('SIGINT');
    await closed;
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (printed.length < MAX_PRINTED_CHARS) printed += text;
  });
  await until('the demo is up', async () => printed.includes('Ctrl-C stops') || null);
  const [, dashboard = ''] = /dashboard {2}(\S+)/.exec(printed) ?? [];
  const [, operators = ''] = /operators {2}(\S+)/.exec(printed) ?? [];
  const [, key = ''] = /API key {4}(\S+)/.exec(printed) ?? [];
  const get = async (path: string): Promise<unknown> => {
    const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
    return await (await fetch(new URL(path, dashboard), { headers: { authorization } })).json();
  };
  await new Promise<void>((resolve) => void systemClock.after(MIN_RUN, resolve));
  const waitForStolen = (): Promise<string> => until('a lock is stolen', async () => await findStolen(get));
  return { dashboard, console: operators, waitForStolen, printed };
}

/** The MAC of a lock that is being stolen and has sent enough theft pings for a track; null if there is none. */
async function findStolen(get: (path: string) => Promise<unknown>): Promise<string | null> {
  const { data } = (await get('/v1/locks?limit=1000')) as { readonly data: readonly ListedLock[] };
  for (const { mac_addr } of data.filter(({ trouble }) => trouble === 'theft')) {
    const pings = await get(`/v1/locks/${mac_addr}/pings?reason=REASON_THEFT&limit=100`);
    if ((pings as { readonly data: readonly unknown[] }).data.length >= MIN_THEFT_PINGS) return mac_addr;
  }
  return null;
}

/** Polls until there is an answer. @throws Error after a time limit */
async function until<Answer>(what: string, ask: () => Promise<Answer | null>): Promise<Answer> {
  for (let waitedMs = 0; waitedMs < MAX_WAIT; waitedMs += POLL_EVERY) {
    const answer = await ask();
    if (answer !== null) return answer;
    await new Promise<void>((resolve) => void systemClock.after(POLL_EVERY, resolve));
  }
  throw new Error(`waited ${MAX_WAIT / Seconds(1)} s in vain until ${what}`);
}
