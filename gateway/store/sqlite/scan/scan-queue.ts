/**
 * The scans that wait for a thread (scan-worker.ts). Merchants take turns, so that the scans of one do not hold up
 * those of another. There are several threads, because a scan of an old part of the log mostly waits for the disk, and
 * another thread works meanwhile.
 */

import { type RequestedScan, ScanWorker } from './scan-worker.js';
import type { Scanner, ScanRequest, ScanResult } from './scanner.js';

/** Maximum number of threads. Each has its own connection, and takes some 30 MB once it runs. */
const MAX_THREADS = 3;

interface WaitingScan extends RequestedScan {
  readonly signal: AbortSignal | undefined;
}

export class ScanQueue {
  readonly #newWorker: () => ScanWorker;
  /** The scans that wait, by merchant, in the order of the merchants' turns. */
  readonly #waiting = new Map<number, WaitingScan[]>();
  readonly #workers: ScanWorker[] = [];

  /** @param file the store's file @param here scans in this thread, if another one can't start or has ended */
  constructor(file: string, here: Pick<Scanner, 'scan'>) {
    this.#newWorker = () => new ScanWorker(file, here, () => this.#sendNext());
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

  /** Resolves when the threads have closed the file. Waiting scans are rejected. */
  async close(): Promise<void> {
    for (const scans of this.#waiting.values())
      for (const { reject } of scans) reject(new Error('the store is closed'));
    this.#waiting.clear();
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  /** Sends waiting scans while a thread has room for them. */
  #sendNext(): void {
    while (this.#waiting.size > 0) {
      const worker = this.#findWorker();
      if (worker === undefined) return;
      const next = this.#takeNext();
      if (next === undefined) return;
      if (next.signal?.aborted) next.reject(next.signal.reason);
      else worker.send(next);
    }
  }

  /** An idle thread if there is one, or a new one; else the least busy one that has room. */
  #findWorker(): ScanWorker | undefined {
    const [least] = [...this.#workers].sort((a, b) => a.load - b.load);
    if (least !== undefined && (least.load === 0 || this.#workers.length === MAX_THREADS))
      return least.hasRoom ? least : undefined;
    const worker = this.#newWorker();
    this.#workers.push(worker);
    return worker;
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
}
