/** Reads the store's figures in a separate thread (figures-thread.ts). */
import { Worker } from 'node:worker_threads';
import type { StoreFigures } from '../../contract/store-figures.js';

/** The thread's answer to a request. */
export type FiguresAnswer = { readonly figures: StoreFigures } | { readonly error: string };
/** The thread's first message, after it has opened the store. */
export const OPENED = 'opened';

/** The thread, which starts at the first request. */
export class FiguresThread {
  readonly #file: string;
  #thread: Worker | undefined;
  #isClosed = false;
  /** The answer that is being computed. */
  #current: Promise<StoreFigures> | undefined;
  /** The answer after the current one. */
  #next: Promise<StoreFigures> | undefined;

  /** `file` is the store's file, whose tables must exist. */
  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Starts the thread early. Resolves when the thread has opened all its files, or could not start; the next request
   * then tries again. Without this call the thread starts at the first request.
   */
  async open(): Promise<void> {
    const thread = this.#startedThread();
    // The process must not end while the caller waits.
    thread.ref();
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        thread.off('message', finish).off('error', finish).off('exit', finish);
        resolve();
      };
      thread.on('message', finish).on('error', finish).on('exit', finish);
    });
    thread.unref();
  }

  /** Returns the current figures. Rejects if the store can't be read, or is closed. */
  read(): Promise<StoreFigures> {
    if (this.#next !== undefined) return this.#next;
    if (this.#current === undefined) return this.#startAnswer();
    // The current answer may lack recent writes, so all callers in the meantime share the next answer.
    this.#next = this.#current.catch(() => undefined).then(() => this.#startAnswer());
    return this.#next;
  }

  /** Requests figures that include all writes up to now. */
  #startAnswer(): Promise<StoreFigures> {
    this.#next = undefined;
    if (this.#isClosed) return Promise.reject(new Error('the store is closed'));
    this.#current = this.#request().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    // Keeps the process alive until the thread exits.
    thread.ref();
    thread.postMessage('close');
    await exited;
  }

  /** Sends a request to the thread. Resolves with its answer. */
  #request(): Promise<StoreFigures> {
    const thread = this.#startedThread();
    return new Promise((resolve, reject) => {
      const removeListeners = (): void => {
        thread.off('message', answered).off('error', failed).off('exit', exited);
      };
      const answered = (answer: FiguresAnswer | typeof OPENED): void => {
        if (answer === OPENED) return;
        removeListeners();
        if ('figures' in answer) resolve(answer.figures);
        else reject(new Error(answer.error));
      };
      const failed = (error: Error): void => {
        removeListeners();
        reject(error);
      };
      const exited = (): void => failed(new Error('the thread that reads figures exited'));
      thread.on('message', answered).on('error', failed).on('exit', exited);
      thread.postMessage('read');
    });
  }

  /** Returns the thread; starts it if it is not running. */
  #startedThread(): Worker {
    if (this.#thread === undefined) {
      const thread = new Worker(new URL('./figures-thread.js', import.meta.url), { workerData: this.#file });
      thread.once('exit', () => {
        this.#thread = undefined;
      });
      // Requests report the error to their callers; without this listener the error would end the process.
      thread.on('error', () => undefined);
      thread.unref();
      this.#thread = thread;
    }
    return this.#thread;
  }
}
