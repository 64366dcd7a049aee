/**
 * A program of the bench's row `reads` that plays merchants' programs which read their own data. It takes one argument,
 * a {@link ReadersRequest} as JSON, and prints `{}` when it is ready. Each line of stdin starts or ends the reading:
 *
 * - `start`: each reader makes every call in turn, one after the other, beginning at another call; answers `{}`.
 * - `end`: the readers stop after their present call; answers {@link ReadFigures}.
 */
import { Agent, request as httpRequest } from 'node:http';
import { createInterface } from 'node:readline';
import { type Milliseconds, systemClock } from '../../../proto/clock.js';
import { basicAuthorization } from '../../helpers/http/merchant-call.js';
import { SeededChance } from '../../helpers/pair/seeded-chance.js';
import { eventCursor, READ_CALLS, type ReadCall, type ReadSubject, WAITING_CALL } from './read-calls.js';

export interface ReadersRequest {
  readonly port: number;
  /** An API key with all scopes. */
  readonly key: string;
  readonly readers: number;
  /** How long a reader pauses between two calls, ms. */
  readonly pauseMs: number;
  readonly subject: ReadSubject;
}

export interface ReadFigures {
  /** By call: the times from the request to the end of the answer, ms. */
  readonly times_ms: Readonly<Record<string, readonly number[]>>;
  /** The number of answers with a status other than 200, by call and status. */
  readonly refused: Readonly<Record<string, number>>;
  readonly bytes: number;
  readonly ms: number;
}

interface Answer {
  readonly status: number;
  /** The end of the body, which has the `next_cursor` of a list. */
  readonly tail: string;
  readonly bytes: number;
}

const TAIL_CHARS = 400;

class Readers {
  readonly #request: ReadersRequest;
  /** The connections from a `start` to its `end`. Each `start` opens new ones, since the gateway closes idle ones. */
  #agent = new Agent();
  readonly #chance = new SeededChance(19);
  readonly #timesMs = new Map<string, number[]>();
  #newestCursor: string;
  #refused: Record<string, number> = {};
  #bytes = 0;
  #startedAtMs = 0;
  #isReading = false;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(request: ReadersRequest) {
    this.#request = request;
    const endOfHistory = 1;
    this.#newestCursor = eventCursor(request.subject, endOfHistory);
  }

  start(): void {
    this.#agent = new Agent({ keepAlive: true, maxSockets: this.#request.readers });
    this.#timesMs.clear();
    this.#refused = {};
    this.#bytes = 0;
    this.#startedAtMs = performance.now();
    this.#isReading = true;
    this.#reading = Promise.all(Array.from({ length: this.#request.readers }, (_, reader) => this.#read(reader)));
  }

  async end(): Promise<ReadFigures> {
    this.#isReading = false;
    await this.#reading;
    this.#agent.destroy();
    const times_ms = Object.fromEntries(READ_CALLS.map(({ name }) => [name, this.#timesMs.get(name) ?? []]));
    return { times_ms, refused: this.#refused, bytes: this.#bytes, ms: performance.now() - this.#startedAtMs };
  }

  async #read(reader: number): Promise<void> {
    const { pauseMs, readers } = this.#request;
    // The readers do not start together.
    await pause((pauseMs * reader) / readers);
    for (let next = reader; this.#isReading; next += 1) {
      await this.#make(READ_CALLS[next % READ_CALLS.length] as ReadCall);
      await pause(pauseMs);
    }
  }

  async #make({ name, path }: ReadCall): Promise<void> {
    const startedAtMs = performance.now();
    const { status, tail, bytes } = await this.#get(
      path(this.#request.subject, this.#chance.next(), this.#newestCursor),
    );
    const tookMs = performance.now() - startedAtMs;
    this.#bytes += bytes;
    if (status !== 200) {
      const label = `${name}: ${status}`;
      this.#refused[label] = (this.#refused[label] ?? 0) + 1;
      return;
    }
    const times = this.#timesMs.get(name) ?? [];
    times.push(tookMs);
    this.#timesMs.set(name, times);
    if (name === WAITING_CALL) this.#newestCursor = /"next_cursor":"([^"]+)"/.exec(tail)?.[1] ?? this.#newestCursor;
  }

  #get(path: string): Promise<Answer> {
    const { port, key } = this.#request;
    const headers = { authorization: basicAuthorization(key) };
    return new Promise((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port, path, agent: this.#agent, headers }, (answer) => {
        let bytes = 0;
        let last: Buffer = Buffer.alloc(0);
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          last = chunk.length < TAIL_CHARS ? Buffer.concat([last, chunk]) : chunk;
        });
        answer.on('error', reject);
        answer.on('end', () => {
          // The cursor is ASCII, and any cut is valid latin1.
          resolve({ status: answer.statusCode ?? 0, tail: last.toString('latin1').slice(-TAIL_CHARS), bytes });
        });
      });
      request.on('error', reject).end();
    });
  }
}

async function pause(milliseconds: Milliseconds): Promise<void> {
  await new Promise<void>((resolve) => systemClock.after(milliseconds, resolve));
}

async function main(argument: string): Promise<void> {
  const readers = new Readers(JSON.parse(argument) as ReadersRequest);
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'start') readers.start();
    console.log(JSON.stringify(line === 'start' ? {} : await readers.end()));
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
