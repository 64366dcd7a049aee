/**
 * A program of the bench that plays open pages of the console without a browser: each has a session, follows the
 * stream of locks, and makes the calls of the first screen and of a lock's screen in turn. It takes one argument, an
 * {@link OpenConsolesRequest} as JSON, and prints `{}`. Each line of stdin is a command:
 *
 * - `open`: opens all streams and starts the calls; answers `{}` when each stream has sent all locks.
 * - `close`: ends them; answers {@link OpenConsolesFigures}.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { pageHeaders } from '../../helpers/console/dashboard.js';
import type { ConsoleSession } from './logins.js';
import { MarkerSearch } from './marker-search.js';
import { delay } from './page-figures.js';

export interface OpenConsolesRequest {
  readonly sessions: readonly ConsoleSession[];
  /** A lock of the merchant, whose screen is opened now and then. */
  readonly mac: string;
}

export interface OpenConsolesFigures {
  /** Answers of calls, by status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Bytes of all streams. */
  readonly streamed_bytes: number;
}

/** How often a page makes a call. The first screen does so every ten seconds, but a reader also opens locks. */
const READ_EVERY: Milliseconds = Seconds(1);
/** A stream begins with a snapshot of all locks, in several events of which the last has this member. */
const END_OF_SNAPSHOT = '"last":true';
const LOCK_PAGES = ['history', 'pings?limit=1000', 'findings?limit=1000'];

/** What a page calls on its first screen and on a lock's. */
function pathsOf(console: ConsoleSession['console'], mac: string): readonly string[] {
  return console === 'merchant'
    ? ['/v1/webhooks?limit=1000', `/v1/locks/${mac}`, ...LOCK_PAGES.map((page) => `/v1/locks/${mac}/${page}`)]
    : ['/webhooks', '/status', `/devices/${mac}`, ...LOCK_PAGES.map((page) => `/devices/${mac}/${page}`)];
}

/** The pages, and the program's commands. */
class OpenConsoles {
  readonly #request: OpenConsolesRequest;
  #answers: Record<string, number> = {};
  #streamedBytes = 0;
  #streams: IncomingMessage[] = [];
  #isOpen = false;
  /** Resolves when all pages have ended their calls. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(request: OpenConsolesRequest) {
    this.#request = request;
  }

  async open(): Promise<void> {
    const { sessions } = this.#request;
    [this.#answers, this.#streamedBytes, this.#isOpen] = [{}, 0, true];
    await Promise.all(sessions.map((session) => this.#follow(session)));
    this.#reading = Promise.all(sessions.map((session, index) => this.#read(session, index)));
  }

  async close(): Promise<OpenConsolesFigures> {
    this.#isOpen = false;
    for (const stream of this.#streams.splice(0)) stream.destroy();
    await this.#reading;
    return { answers: this.#answers, streamed_bytes: this.#streamedBytes };
  }

  /** Opens the stream of a page; resolves when it has sent all locks. */
  async #follow(session: ConsoleSession): Promise<void> {
    const stream = await get(session, session.console === 'merchant' ? '/v1/stream' : '/stream?only=locks');
    if (stream.statusCode !== 200) throw new Error(`the stream of the ${session.console}: ${stream.statusCode}`);
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

  /** Makes the page's calls one after another until the pages are closed. */
  async #read(session: ConsoleSession, index: number): Promise<void> {
    const paths = pathsOf(session.console, this.#request.mac);
    // The pages do not read at the same time.
    await delay((READ_EVERY * index) / this.#request.sessions.length);
    for (let next = index; this.#isOpen; next += 1) {
      const answer = await get(session, paths[next % paths.length] ?? '');
      await new Promise<void>((resolve) =>
        answer
          .on('error', () => resolve())
          .on('close', resolve)
          .resume(),
      );
      const status = String(answer.statusCode);
      this.#answers[status] = (this.#answers[status] ?? 0) + 1;
      await delay(READ_EVERY);
    }
  }
}

function get({ port, cookie }: ConsoleSession, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Without an agent each call has its own connection, as those of different readers do.
    const target = { host: '127.0.0.1', port, path, agent: false as const, headers: pageHeaders(port, cookie) };
    httpRequest(target, resolve).on('error', reject).end();
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
