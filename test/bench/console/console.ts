/**
 * The bench's row `console` (console.md): both pages in Debian's Chromium, at 10,000 locks of which a fifth moves:
 * frames a second while the map is dragged and the list scrolled, the time until the first view, the memory after ten
 * minutes, and how soon a theft is seen. The gateway, the locks and the browser are separate processes.
 */
import { GatewayClient } from '../../../cli/client.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { whyNoBrowser } from '../../clients/browser.js';
import { registerLocks } from '../load/lock-logins.js';
import { type Resources, withResources } from '../resources.js';
import type { BenchOptions, BenchRow } from '../row.js';
import { startServe } from '../serve-setup.js';
import { consoleRow, consoleRowWithoutBrowser } from './console-row.js';
import { type CrowdRequest, crowdLockName } from './crowd.js';
import { addDashboardUser, logInMerchant, logInOperator } from './logins.js';
import { type ConsoleSize, measurePages } from './page-run.js';

const SIZE: ConsoleSize = {
  ...{ locks: 10_000, moving: 2_000, thefts: 20, rounds: 5, views: 5 },
  span: Seconds(6),
  heapAfter: Minutes(10),
};
const QUICK_SIZE: ConsoleSize = { ...SIZE, thefts: 5, rounds: 2, views: 3, span: Seconds(4), heapAfter: Seconds(30) };
/** Each moving lock sends a position every ten seconds, as a stolen one does; a ridden one sends a third of that. */
const PINGS_PER_SECOND = 200;

/** The row `console`. */
export function benchConsole({ quick }: BenchOptions): Promise<BenchRow> {
  const missing = whyNoBrowser();
  if (missing !== null) return Promise.resolve(consoleRowWithoutBrowser(missing));
  return withResources((resources) => measure(resources, quick ? QUICK_SIZE : SIZE));
}

async function measure(resources: Resources, size: ConsoleSize): Promise<BenchRow> {
  const { locks, moving, thefts } = size;
  const data = resources.makeFolder();
  await registerLocks(data, locks, { nameOf: crowdLockName });
  const { port, httpPort } = await startServe(resources, data);
  const client = new GatewayClient({ data });
  // A lock for each theft on both pages.
  const request: CrowdRequest = { port, locks, moving, thefts: 2 * thefts };
  /** The program that plays the locks. */
  const crowd = resources.startScript('console/crowd.js', request);
  await crowd.readAnswer();
  await crowd.ask('place');
  console.error(`  ${locks.toLocaleString('en')} locks have reported where they are`);
  await addDashboardUser(client, httpPort);
  await crowd.ask(`move ${PINGS_PER_SECOND}`);
  const sessions = [await logInMerchant(httpPort), await logInOperator(client)];
  const pages = await measurePages(sessions, size, crowd);
  return consoleRow(size, PINGS_PER_SECOND, pages);
}
