/** Reads the store's figures in a thread (figures-thread.ts). */
import { Worker } from 'node:worker_threads';
import type { StoreFigures } from '../../contract/store-figures.js';

/** The thread's answer to a question. */
export type FiguresAnswer = { readonly figures: StoreFigures } | { readonly error: string };
/** Its first message, once it has opened the store. */
export const OPENED = 'opened';

export class FiguresThread {
  readonly #file: string;
  #thread: Worker | undefined;
  #isClosed = false;
  /** The answer that is being computed. */
  #asked: Promise<StoreFigures> | undefined;
  /** The answer after it. */
  #next: Promise<StoreFigures> | undefined;

  /** `file` is the store's, whose tables exist. */
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
    if (this.#asked === undefined) return this.#startAnswer();
    // The current answer may lack what was written since it started, so all callers meanwhile share the next one.
    this.#next = this.#asked.catch(() => undefined).then(() => this.#startAnswer());
    return this.#next;
  }

  #startAnswer(): Promise<StoreFigures> {
    this.#next = undefined;
    if (this.#isClosed) return Promise.reject(new Error('the store is closed'));
    this.#asked = this.#ask().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    // Keeps the process alive until then.
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

  /** The thread; started again where it ended by itself. */
  #started(): Worker {
    if (this.#thread === undefined) {
      const thread = new Worker(new URL('./figures-thread.js', import.meta.url), { workerData: this.#file });
      thread.once('exit', () => {
        this.#thread = undefined;
      });
      // Reported to the callers; without this listener it would end the process.
      thread.on('error', () => undefined);
      thread.unref();
      this.#thread = thread;
    }
    return this.#thread;
  }
}
