/**
 * Scans in a separate thread (scan-thread.ts). Merchants take turns, so that the scans of one do not hold up those of
 * another. Without the thread, or if it can't start, the caller's thread scans.
 */
import { Worker } from 'node:worker_threads';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type { ScannedUplinks } from '../../contract/merchants/uplink-scan.js';
import type { LogPlace } from './log-scanner.js';
import { type PackedLog, unpackLog } from './packed-log.js';
import type { Scanner, ScanRequest, ScanResult } from './scanner.js';

/** A message to the thread. `number` names the scan in its answer. */
export type ScanMessage = { readonly number: number; readonly request: ScanRequest } | 'close';
/** The thread's answer: what the scan found, or SQLite's error. */
export type ScanAnswer =
  | { readonly number: number; readonly scanned: ScannedUplinks }
  | { readonly number: number; readonly packed: PackedLog; readonly examined: number; readonly end: LogPlace }
  | { readonly number: number; readonly error: string; readonly code: string | undefined };

/** How many scans the thread has at a time: one that it makes, and one more, so that it need not wait for the next. */
const MAX_SENT = 2;

interface WaitingScan {
  readonly request: ScanRequest;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: ScanResult) => void;
  readonly reject: (error: unknown) => void;
}

export class ScanQueue {
  readonly #file: string;
  readonly #here: Pick<Scanner, 'scan'>;
  /** The scans that wait, by merchant, in the order of the merchants' turns. */
  readonly #waiting = new Map<number, WaitingScan[]>();
  /** The scans that the thread has, by their numbers. */
  readonly #sent = new Map<number, WaitingScan>();
  #lastNumber = 0;
  #thread: Worker | undefined;
  #isClosed = false;

  /** @param file the store's file @param here scans in this thread, if the other one can't start or has ended */
  constructor(file: string, here: Pick<Scanner, 'scan'>) {
    this.#file = file;
    this.#here = here;
  }

  /** Scans when the merchant has its turn. @throws the signal's reason if it is aborted before that */
  scan<R extends ScanRequest>(merchantId: number, request: R, signal: AbortSignal | undefined): Promise<ScanResult<R>> {
    return new Promise((resolve, reject) => {
      const scans = this.#waiting.get(merchantId) ?? [];
      this.#waiting.set(merchantId, scans);
      scans.push({ request, signal, resolve: resolve as WaitingScan['resolve'], reject });
      this.#sendNext();
    });
  }

  /** Resolves when the thread has closed the file. Waiting scans are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    for (const scans of this.#waiting.values())
      for (const { reject } of scans) reject(new Error('the store is closed'));
    this.#waiting.clear();
    if (thread === undefined) return;
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    // Keeps the process alive until the thread exits.
    thread.ref();
    thread.postMessage('close' satisfies ScanMessage);
    await exited;
  }

  /** Sends waiting scans while the thread has room for them. */
  #sendNext(): void {
    while (this.#sent.size < MAX_SENT) {
      const next = this.#takeNext();
      if (next === undefined) return;
      if (next.signal?.aborted) {
        next.reject(next.signal.reason);
        continue;
      }
      this.#lastNumber += 1;
      this.#sent.set(this.#lastNumber, next);
      const thread = this.#startedThread();
      // The process does not end while a scan is made, but may end while the thread waits for one.
      thread.ref();
      thread.postMessage({ number: this.#lastNumber, request: next.request } satisfies ScanMessage);
    }
  }

  /** Removes and returns the first scan of the merchant whose turn it is, who then comes last. */
  #takeNext(): WaitingScan | undefined {
    for (const [merchantId, scans] of this.#waiting) {
      const next = scans.shift();
      this.#waiting.delete(merchantId);
      if (scans.length > 0) this.#waiting.set(merchantId, scans);
      return next;
    }
    return undefined;
  }

  #onAnswer(answer: ScanAnswer): void {
    const scan = this.#sent.get(answer.number);
    this.#sent.delete(answer.number);
    if (this.#sent.size === 0) this.#thread?.unref();
    if ('scanned' in answer) scan?.resolve(withBuffers(answer.scanned));
    else if ('packed' in answer) {
      const { packed, examined, end } = answer;
      scan?.resolve({ entries: unpackLog(packed), examined, end });
    } else scan?.reject(Object.assign(new Error(answer.error), { code: answer.code }));
    this.#sendNext();
  }

  /** Returns the thread; starts it if it is not running. */
  #startedThread(): Worker {
    if (this.#thread === undefined) {
      const thread = new Worker(new URL('./scan-thread.js', import.meta.url), { workerData: this.#file });
      thread.on('message', (answer: ScanAnswer) => this.#onAnswer(answer));
      // The scans that the thread had are made here instead; without this listener the error would end the process.
      thread.on('error', () => undefined);
      thread.once('exit', () => this.#onExit());
      thread.unref();
      this.#thread = thread;
    }
    return this.#thread;
  }

  #onExit(): void {
    this.#thread = undefined;
    const unanswered = [...this.#sent.values()];
    this.#sent.clear();
    for (const { request, resolve, reject } of unanswered) {
      try {
        if (this.#isClosed) throw new Error('the store is closed');
        resolve(this.#here.scan(request));
      } catch (error) {
        reject(error);
      }
    }
    this.#sendNext();
  }
}

/** A message between threads turns buffers into plain arrays of bytes; this undoes it without a copy. */
function withBuffers(scanned: ScannedUplinks): ScannedUplinks {
  const buffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pings = scanned.pings.map((ping): StoredUplink => {
    return { ...ping, digest: buffer(ping.digest), bytes: buffer(ping.bytes) };
  });
  return { ...scanned, pings };
}
