/** The log's writer in a thread of its own, as the store sees it: requests go there, answers come back in order. */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import type { LogKeeper } from './log-keeper.js';
import type { LogAnswer, LogError, LogRequest, LogThreadData } from './log-thread-message.js';
import type { PackedCommit } from './packed-commit.js';
import type { DeliveryProgress } from './store.js';
import type { UplinkTail } from './uplink-tail.js';
import { loadTail } from './uplink-writer.js';

interface Asked {
  resolve(): void;
  reject(error: Error): void;
}

export class ThreadLog implements LogKeeper {
  readonly tail: UplinkTail;
  readonly #thread: Worker;
  /** Requests without an answer, oldest first. Whoever writes has limits of its own for what may wait. */
  readonly #asked: Asked[] = [];
  readonly #ended: Promise<void>;
  #broken: Error | undefined;

  private constructor(data: LogThreadData, tail: UplinkTail) {
    this.tail = tail;
    this.#thread = new Worker(new URL('./log-thread.js', import.meta.url), { workerData: data });
    this.#thread.on('message', (answer: LogAnswer) => this.#answered(answer));
    this.#thread.on('error', (error) => this.#break(error));
    this.#ended = new Promise((resolve) => {
      this.#thread.on('exit', () => {
        this.#break(new Error('it ended'));
        resolve();
      });
    });
  }

  /**
   * Starts the thread on a store's file, whose tables are there. `reader` is a connection to it.
   *
   * @throws what opening it throws there
   */
  static async open(data: LogThreadData, reader: Database): Promise<ThreadLog> {
    const log = new ThreadLog(data, loadTail(reader));
    try {
      await new Promise<void>((resolve, reject) => log.#asked.push({ resolve, reject }));
    } catch (error) {
      await log.#thread.terminate();
      throw error;
    }
    return log;
  }

  append(commit: PackedCommit): Promise<void> {
    return this.#ask({ type: 'append', commit }, [commit.uplinks]);
  }

  recordProgress(progress: readonly DeliveryProgress[]): Promise<void> {
    return this.#ask({ type: 'progress', progress });
  }

  settle(): Promise<void> {
    return this.#ask({ type: 'settle' });
  }

  rest(): Promise<void> {
    return this.#ask({ type: 'rest' });
  }

  async close(): Promise<void> {
    await this.#ask({ type: 'close' });
    await this.#ended;
  }

  #ask(request: LogRequest, given: readonly ArrayBuffer[] = []): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken);
      this.#thread.postMessage(request, given);
      this.#asked.push({ resolve, reject });
    });
  }

  #answered(answer: LogAnswer): void {
    const asked = this.#asked.shift();
    if (answer.error !== undefined) {
      asked?.reject(thrown(answer.error));
      return;
    }
    if (answer.uplinks !== undefined) this.tail.addPacked(new Float64Array(answer.uplinks));
    this.tail.follow(answer.mark);
    asked?.resolve();
  }

  /** A thread that ends by itself leaves nobody who knows what is on the disk: for the store, an I/O error. */
  #break(cause: Error): void {
    this.#broken ??= Object.assign(new Error(`the thread that writes it failed: ${cause.message}`), { code: 'EIO' });
    for (const { reject } of this.#asked.splice(0)) reject(this.#broken);
  }
}

function thrown({ code, message }: LogError): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}
