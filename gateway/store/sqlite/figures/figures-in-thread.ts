/** Has the store's figures read by a thread (figures-thread.ts). */
import { Worker } from 'node:worker_threads';
import type { StoreFigures } from '../../contract/store-figures.js';

/** What the thread says to each question. */
export type FiguresAnswer = { readonly figures: StoreFigures } | { readonly error: string };
/** What it says before, once. */
export const OPENED = 'opened';

export class FiguresThread {
  readonly #file: string;
  #thread: Worker | undefined;
  #isClosed = false;
  /** The question that is being answered. */
  #asked: Promise<StoreFigures> | undefined;
  /** The one that follows it. */
  #next: Promise<StoreFigures> | undefined;

  /** `file` is the store's, whose tables are there. */
  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Resolves when the thread has every descriptor that it needs, or could not be started: then the next question tries
   * again. Without this it starts at the first question.
   */
  async open(): Promise<void> {
    const thread = this.#started();
    thread.ref();
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        thread.off('message', settle).off('error', settle).off('exit', settle);
        resolve();
      };
      thread.on('message', settle).on('error', settle).on('exit', settle);
    });
    thread.unref();
  }

  /** As of now. Rejects where the store can't be read, or is closed. */
  read(): Promise<StoreFigures> {
    if (this.#next !== undefined) return this.#next;
    if (this.#asked === undefined) return this.#begin();
    // The answer that is being made may not have what was written since: all who ask meanwhile share the next one.
    this.#next = this.#asked.catch(() => undefined).then(() => this.#begin());
    return this.#next;
  }

  #begin(): Promise<StoreFigures> {
    this.#next = undefined;
    if (this.#isClosed) return Promise.reject(new Error('the store is closed'));
    this.#asked = this.#ask().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  /** Resolves when the thread has let go of the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    // The process goes on until it has.
    thread.ref();
    thread.postMessage('close');
    await ended;
  }

  #ask(): Promise<StoreFigures> {
    const thread = this.#started();
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        thread.off('message', answered).off('error', failed).off('exit', ended);
      };
      const answered = (answer: FiguresAnswer | typeof OPENED): void => {
        if (answer === OPENED) return;
        settle();
        if ('figures' in answer) resolve(answer.figures);
        else reject(new Error(answer.error));
      };
      const failed = (error: Error): void => {
        settle();
        reject(error);
      };
      const ended = (): void => failed(new Error('the thread that reads figures has ended'));
      thread.on('message', answered).on('error', failed).on('exit', ended);
      thread.postMessage('read');
    });
  }

  /** One that ended by itself is replaced. */
  #started(): Worker {
    if (this.#thread === undefined) {
      const thread = new Worker(new URL('./figures-thread.js', import.meta.url), { workerData: this.#file });
      thread.once('exit', () => {
        this.#thread = undefined;
      });
      // Whoever asks hears of it too; without a listener it would end the process.
      thread.on('error', () => undefined);
      thread.unref();
      this.#thread = thread;
    }
    return this.#thread;
  }
}
