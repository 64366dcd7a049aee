/**
 * A program of the bench that plays open pages of the console without a browser. Each has a session, follows the stream
 * of locks, and makes the calls that its screen makes again and again, as often as the screen does: most pages show
 * *Now*, some a busy lock. It takes one argument, an {@link OpenConsolesRequest} as JSON, and prints `{}`. Each line of
 * stdin is a command:
 *
 * - `open`: opens all streams and starts the calls; answers `{}` when each stream has sent all locks.
 * - `close`: ends them; answers {@link OpenConsolesFigures}.
 */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { Days, type Milliseconds, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { pageHeaders } from '../../helpers/console/dashboard.js';
import type { ConsoleSession } from './logins.js';
import { MarkerSearch } from './marker-search.js';
import { delay } from './page-figures.js';

export interface OpenConsolesRequest {
  readonly sessions: readonly ConsoleSession[];
  /** A busy lock of the merchant, whose screen some pages show. */
  readonly mac: string;
}

export interface OpenConsolesFigures {
  /** Answers of calls, by status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Bytes of all streams. */
  readonly streamed_bytes: number;
}

/** How often each page asks for its session (gateway/console/page/app/use-session.ts). */
const SESSION_EVERY: Milliseconds = Minutes(1);
/** How often *Now* loads what it shows. */
const NOW_EVERY: Milliseconds = Seconds(10);
/** How often a busy lock's screen loads what has come since (gateway/console/page/screens/lock-screen.tsx). */
const LOCK_EVERY: Milliseconds = Seconds(5);
/** Of so many loads of a lock's screen, one is of all of the past: it does that once a minute (past-loader.ts). */
const LOADS_PER_WHOLE = 12;
/** Of so many, one is of the lock itself: where nothing but pings comes, the screen does that every 30 s. */
const LOADS_PER_DETAIL = 6;
/** How many pings the screen loads then: twice as many as came, of a lock that sends ten a second, and some more. */
const NEW_PINGS = 112;
/** How many findings, and commands: as many as it loads while none is new. */
const NEW_ITEMS = 12;
/** How many webhook URLs' deliveries a merchant's page loads for a lock. */
const MAX_URLS = 6;
/** One page in so many shows a lock. */
const PAGES_PER_LOCK_PAGE = 5;
/** A stream begins with a snapshot of all locks, in several events of which the last has this member. */
const END_OF_SNAPSHOT = '"last":true';

/** A merchant's list of webhook URLs. */
const MERCHANT_WEBHOOKS = '/v1/webhooks?limit=1000';

/** What *Now* calls. */
const NOW_PATHS: Readonly<Record<ConsoleSession['console'], readonly string[]>> = {
  merchant: [MERCHANT_WEBHOOKS, '/v1/findings?limit=20'],
  operator: ['/webhooks', '/status', '/findings?limit=20'],
};

/** A load of a lock's screen. */
interface LockLoad {
  readonly mac: string;
  /** The number of the load, of all such pages of merchants or of all of operators. */
  readonly number: number;
  /** The merchant's webhook URLs. */
  readonly urlIds: readonly number[];
}

/** What a lock's screen calls: what has come since, and now and then all of the past, and the lock itself. */
function lockPaths(console: ConsoleSession['console'], { mac, number, urlIds }: LockLoad): readonly string[] {
  const nowMs = systemClock.now();
  const isWhole = number % LOADS_PER_WHOLE === 0;
  const isDetailed = number % LOADS_PER_DETAIL === 0;
  const from = new Date(nowMs - Days(2)).toISOString();
  const since = isWhole ? from : new Date(nowMs - LOCK_EVERY).toISOString();
  const [pings, findings] = isWhole ? [1000, 1000] : [NEW_PINGS, NEW_ITEMS];
  if (console === 'merchant') {
    const deliveries = urlIds.map((id) => `/v1/webhooks/${id}/deliveries?mac_addr=${mac}&from=${since}&limit=300`);
    return [
      ...(isDetailed ? [`/v1/locks/${mac}`] : []),
      ...(isWhole ? [`/v1/locks/${mac}/history?from=${from}`] : []),
      `/v1/locks/${mac}/pings?from=${from}&limit=${pings}`,
      `/v1/locks/${mac}/findings?limit=${findings}`,
      `/v1/commands?mac_addr=${mac}&limit=${NEW_ITEMS}`,
      ...deliveries,
    ];
  }
  return [
    ...(isDetailed ? [`/devices/${mac}`] : []),
    ...(isWhole ? [`/devices/${mac}/history?since=${from}`, '/webhooks'] : []),
    `/devices/${mac}/pings?since=${from}&limit=${pings}`,
    `/devices/${mac}/findings?limit=${findings}`,
    `/commands?mac=${mac}&limit=${NEW_ITEMS}`,
    `/deliveries?mac=${mac}&since=${since}&limit=500`,
  ];
}

/** A page: its session, and its connections, which stay open between calls as a browser's do. */
type Page = ConsoleSession & { readonly agent: Agent };

/** Pages that show the same screen, and load it one after another, evenly over the time in which each does so once. */
class PagesOfAScreen {
  readonly #pages: readonly Page[];
  readonly #every: Milliseconds;
  readonly #load: (page: Page) => Promise<unknown>;
  /** Not the first one again each time that the pages are opened, since they are open for less than a turn of all. */
  #turn = 0;

  constructor(pages: readonly Page[], every: Milliseconds, load: (page: Page) => Promise<unknown>) {
    [this.#pages, this.#every, this.#load] = [pages, every, load];
  }

  /** Loads while the pages are open. */
  async loadWhile(isOpen: () => boolean): Promise<void> {
    const loads: Promise<unknown>[] = [];
    while (isOpen()) {
      const page = this.#pages[this.#turn % this.#pages.length];
      if (page) loads.push(this.#load(page));
      this.#turn += 1;
      await delay(this.#every / this.#pages.length);
    }
    await Promise.all(loads);
  }
}

/** The pages, and the program's commands. */
class OpenConsoles {
  readonly #pages: readonly Page[];
  #answers: Record<string, number> = {};
  #streamedBytes = 0;
  #streams: IncomingMessage[] = [];
  #isOpen = false;
  readonly #screens: readonly PagesOfAScreen[];
  readonly #mac: string;
  readonly #lockLoads = { merchant: 0, operator: 0 };
  /** Resolves when all pages have ended their calls. */
  #loading: Promise<unknown> = Promise.resolve();

  constructor({ sessions, mac }: OpenConsolesRequest) {
    this.#mac = mac;
    this.#pages = sessions.map((session) => ({ ...session, agent: new Agent({ keepAlive: true }) }));
    // Sessions of merchants and operators alternate.
    const showsLock = (_: unknown, index: number): boolean => Math.floor(index / 2) % PAGES_PER_LOCK_PAGE === 0;
    const showsNow = (_: unknown, index: number): boolean => !showsLock(_, index);
    this.#screens = [
      new PagesOfAScreen(this.#pages.filter(showsNow), NOW_EVERY, (page) => this.#call(page, NOW_PATHS[page.console])),
      new PagesOfAScreen(this.#pages.filter(showsLock), LOCK_EVERY, (page) => this.#loadLock(page)),
      new PagesOfAScreen(this.#pages, SESSION_EVERY, (page) => this.#call(page, ['/console/session'])),
    ];
  }

  async open(): Promise<void> {
    [this.#answers, this.#streamedBytes, this.#isOpen] = [{}, 0, true];
    await Promise.all(this.#pages.map((page) => this.#follow(page)));
    this.#loading = Promise.all(this.#screens.map((screen) => screen.loadWhile(() => this.#isOpen)));
  }

  async close(): Promise<OpenConsolesFigures> {
    this.#isOpen = false;
    for (const stream of this.#streams.splice(0)) stream.destroy();
    await this.#loading;
    return { answers: this.#answers, streamed_bytes: this.#streamedBytes };
  }

  /** Opens the stream of a page; resolves when it has sent all locks. */
  async #follow(page: Page): Promise<void> {
    const stream = await get(page, page.console === 'merchant' ? '/v1/stream' : '/stream?only=locks');
    if (stream.statusCode !== 200) throw new Error(`the stream of the ${page.console}: ${stream.statusCode}`);
    this.#streams.push(stream);
    // `close` cuts the stream off, which Node.js reports as an error too.
    stream.on('error', () => undefined);
    await new Promise<void>((resolve) => {
      const search = new MarkerSearch(END_OF_SNAPSHOT);
      stream.on('close', resolve).on('data', (chunk: Buffer) => {
        this.#streamedBytes += chunk.length;
        // Resolving again has no effect.
        if (search.take(chunk)) resolve();
      });
    });
  }

  async #loadLock(page: Page): Promise<void> {
    const number = this.#lockLoads[page.console];
    this.#lockLoads[page.console] += 1;
    // A merchant's page does this once a minute, but the bench has other URLs in each round.
    const [webhooks] = page.console === 'merchant' ? await this.#call(page, [MERCHANT_WEBHOOKS]) : [];
    const { data = [] } = JSON.parse(webhooks || '{}') as { readonly data?: readonly { readonly id: number }[] };
    const urlIds = data.slice(0, MAX_URLS).map(({ id }) => id);
    await this.#call(page, lockPaths(page.console, { mac: this.#mac, number, urlIds }));
  }

  /** Makes the calls of a screen at the same time, as the page does. Returns the answers. */
  #call(page: Page, paths: readonly string[]): Promise<string[]> {
    return Promise.all(
      paths.map(async (path) => {
        const answer = await get(page, path);
        const chunks: Buffer[] = [];
        await new Promise<void>((resolve) =>
          answer
            .on('error', () => resolve())
            .on('close', resolve)
            .on('data', (chunk: Buffer) => chunks.push(chunk)),
        );
        const status = String(answer.statusCode);
        this.#answers[status] = (this.#answers[status] ?? 0) + 1;
        return Buffer.concat(chunks).toString('utf8');
      }),
    );
  }
}

/** Makes a call. As browsers do, it repeats one for which it took a connection that the gateway was just closing. */
function get(page: Page, path: string): Promise<IncomingMessage> {
  const { port, cookie, agent } = page;
  return new Promise((resolve, reject) => {
    const target = { host: '127.0.0.1', port, path, agent, headers: pageHeaders(port, cookie) };
    const request = httpRequest(target, resolve);
    request.on('error', (error) => {
      if (request.reusedSocket) get(page, path).then(resolve, reject);
      else reject(error);
    });
    request.end();
  });
}

async function main(argument: string): Promise<void> {
  const consoles = new OpenConsoles(JSON.parse(argument) as OpenConsolesRequest);
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'open') await consoles.open();
    console.log(JSON.stringify(line === 'open' ? {} : await consoles.close()));
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
