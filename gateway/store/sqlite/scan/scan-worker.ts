/**
 * One of the threads that scan (scan-thread.ts), as the gateway's thread sees it. Started by the first scan. If it ends
 * unexpectedly, the caller's thread runs the scans that it had, and the next scan starts another thread.
 */
import { Worker } from 'node:worker_threads';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type { LogPart, LogPlace } from './log-scanner.js';
import { type PackedLog, unpackLog } from './packed-log.js';
import type { Scanner, ScanRequest, ScanResult } from './scanner.js';

/** A message to the thread. `number` names the scan in its answer. */
export type ScanMessage = { readonly number: number; readonly request: ScanRequest } | 'close';
/** The thread's answer: what the scan found, or SQLite's error. */
export type ScanAnswer =
  | { readonly number: number; readonly scanned: Exclude<ScanResult, LogPart> }
  | { readonly number: number; readonly packed: PackedLog; readonly examined: number; readonly end: LogPlace }
  | { readonly number: number; readonly error: string; readonly code: string | undefined };

/** How many scans the thread has at a time: one that it runs, and one more, so that it need not wait for the next. */
const MAX_SENT = 2;

/** A scan and the callbacks of its promise. */
export interface RequestedScan {
  readonly request: ScanRequest;
  readonly resolve: (result: ScanResult) => void;
  readonly reject: (error: unknown) => void;
}

export class ScanWorker {
  readonly #file: string;
  readonly #here: Pick<Scanner, 'scan'>;
  readonly #onRoom: () => void;
  /** The scans that the thread has, by their numbers. */
  readonly #sent = new Map<number, RequestedScan>();
  #lastNumber = 0;
  #thread: Worker | undefined;
  #isClosed = false;

  /**
   * @param file the store's file
   * @param here scans in this thread, if the other one can't start or has ended
   * @param onRoom called after each answer, and when the thread has ended: another scan may be sent then
   */
  constructor(file: string, here: Pick<Scanner, 'scan'>, onRoom: () => void) {
    this.#file = file;
    this.#here = here;
    this.#onRoom = onRoom;
  }

  /** The number of scans that were sent and not answered. */
  get load(): number {
    return this.#sent.size;
  }

  get hasRoom(): boolean {
    return this.#sent.size < MAX_SENT;
  }

  /** Sends a scan to the thread. The thread must have room for it. */
  send(scan: RequestedScan): void {
    this.#lastNumber += 1;
    this.#sent.set(this.#lastNumber, scan);
    const thread = this.#startedThread();
    // The process does not end while a scan runs, but may end while the thread waits for one.
    thread.ref();
    thread.postMessage({ number: this.#lastNumber, request: scan.request } satisfies ScanMessage);
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    // Keeps the process alive until the thread exits.
    thread.ref();
    thread.postMessage('close' satisfies ScanMessage);
    await exited;
  }

  #onAnswer(answer: ScanAnswer): void {
    const scan = this.#sent.get(answer.number);
    this.#sent.delete(answer.number);
    // A thread that is being closed keeps the process alive until it has ended.
    if (this.#sent.size === 0 && !this.#isClosed) this.#thread?.unref();
    if ('scanned' in answer) scan?.resolve(withBuffers(answer.scanned));
    else if ('packed' in answer) {
      const { packed, examined, end } = answer;
      scan?.resolve({ entries: unpackLog(packed), examined, end });
    } else scan?.reject(Object.assign(new Error(answer.error), { code: answer.code }));
    this.#onRoom();
  }

  /** Returns the thread; starts it if it is not running. */
  #startedThread(): Worker {
    if (this.#thread === undefined) {
      const thread = new Worker(new URL('./scan-thread.js', import.meta.url), { workerData: this.#file });
      thread.on('message', (answer: ScanAnswer) => this.#onAnswer(answer));
      // The scans that the thread had are run here instead; without this listener the error would end the process.
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
    this.#onRoom();
  }
}

/** A message between threads turns the buffers of uplinks into plain arrays of bytes; this undoes it without a copy. */
function withBuffers(scanned: Exclude<ScanResult, LogPart>): Exclude<ScanResult, LogPart> {
  if (Array.isArray(scanned)) {
    return (scanned as { uplink?: StoredUplink }[]).map((row) => {
      return row.uplink === undefined ? row : { ...row, uplink: uplinkWithBuffers(row.uplink) };
    }) as typeof scanned;
  }
  return 'pings' in scanned ? { ...scanned, pings: scanned.pings.map(uplinkWithBuffers) } : scanned;
}

function uplinkWithBuffers(uplink: StoredUplink): StoredUplink {
  const buffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { ...uplink, digest: buffer(uplink.digest), bytes: buffer(uplink.bytes) };
}
