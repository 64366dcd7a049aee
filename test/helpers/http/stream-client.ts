/** Reads a stream of server-sent events (HTML standard, section 9.2), as a browser does, and stores all events. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { monotonicMs } from '../../../proto/clock.js';
import type { Teardown } from '../store/temp-folder.js';

/** One event. */
export interface StreamEvent {
  readonly name: string;
  /** The id that a client would send when it connects again, as of this event. */
  readonly lastId: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** When it arrived, ms of a monotonic clock. */
  readonly atMs: number;
}

/** One stream, from its opening on. */
export class StreamClient {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly events: StreamEvent[] = [];
  /** The number of comments, which a server sends to keep the connection open. */
  comments = 0;
  /** The last id that the stream has sent; empty if there was none. */
  lastId = '';
  /** Whether the stream has ended. */
  hasEnded = false;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;
  readonly #answer: IncomingMessage;
  readonly #request: ClientRequest;
  #text = '';
  #onEvent = (): void => undefined;

  private constructor(request: ClientRequest, answer: IncomingMessage) {
    this.#request = request;
    this.#answer = answer;
    this.status = answer.statusCode ?? 0;
    this.headers = answer.headers;
    answer.setEncoding('utf8');
    answer.on('data', (text: string) => this.#read(text));
    this.ended = new Promise((resolve) => {
      for (const name of ['end', 'error', 'close'])
        answer.on(name, () => {
          this.hasEnded = true;
          resolve();
        });
    });
  }

  /** Connects; disconnects after the test. */
  static async open(
    test: Teardown,
    port: number,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<StreamClient> {
    const client = await new Promise<StreamClient>((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) =>
        resolve(new StreamClient(request, answer)),
      );
      request.on('error', reject);
      request.end();
    });
    test.teardown(() => client.close());
    return client;
  }

  close(): void {
    this.#request.destroy();
  }

  /** Stops reading, as a slow client does, until {@link resume}. */
  pause(): void {
    this.#answer.pause();
  }

  resume(): void {
    this.#answer.resume();
  }

  /** All events with this name. */
  named(name: string): StreamEvent[] {
    return this.events.filter((event) => event.name === name);
  }

  /**
   * Resolves with the first event, from the index `from` on, for which `matches` returns true.
   *
   * @throws Error if the stream ends before
   */
  async until(matches: (event: StreamEvent) => boolean, from = 0): Promise<StreamEvent> {
    for (;;) {
      const found = this.events.slice(from).find(matches);
      if (found !== undefined) return found;
      const next = new Promise<'event'>((resolve) => {
        this.#onEvent = () => resolve('event');
      });
      const outcome = await Promise.race([next, this.ended.then(() => 'ended' as const)]);
      if (outcome === 'ended' && this.events.slice(from).find(matches) === undefined)
        throw new Error(`the stream ended after ${this.events.map(({ name }) => name).join(', ') || 'nothing'}`);
    }
  }

  /** Reads the complete blocks of lines; an empty line ends a block. */
  #read(text: string): void {
    this.#text += text;
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      this.#readBlock(this.#text.slice(0, end).split('\n'));
      this.#text = this.#text.slice(end + 2);
    }
    this.#onEvent();
  }

  #readBlock(lines: readonly string[]): void {
    // A line is `name: value`. A comment has an empty name.
    const fields = new Map(lines.map((line) => [line.split(':', 1)[0] ?? '', line.replace(/^[^:]*: ?/, '')] as const));
    if (fields.has('')) this.comments += 1;
    const id = fields.get('id');
    if (id !== undefined) this.lastId = id;
    const data = fields.get('data');
    if (data === undefined) return;
    const name = fields.get('event') ?? 'message';
    this.events.push({ name, lastId: this.lastId, data: JSON.parse(data), atMs: monotonicMs() });
  }
}
