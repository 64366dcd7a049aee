/**
 * The thread that writes the log, over a connection of its own: while it waits for the disk, the event loop takes and
 * judges what comes next. It handles requests in order, and answers when the result is on the disk. Writes that wait
 * when it starts a transaction go into it together, so that one fsync serves them all.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { failureKind } from '../../contract/errors.js';
import type { MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import { openDurable } from '../durable-file.js';
import type { LogAnswer, LogError, LogOutcome, LogRequest, LogThreadData, LogWrite } from './log-thread-message.js';
import { LogWriter } from './log-writer.js';
import { WalCheckpointer } from './wal-checkpointer.js';

/** With so many uplinks a transaction is full, and what else waits is left for the next. */
const UPLINKS_TOGETHER = 2000;

const port = parentPort as MessagePort;

type WriteRequest = Extract<LogRequest, { type: 'write' }>;

function answer(given: LogAnswer): void {
  const uplinks = given.outcomes.map((outcome) => (outcome.error === undefined ? outcome.uplinks : undefined));
  port.postMessage(
    given,
    uplinks.filter((each) => each !== undefined),
  );
}

function sendable(error: unknown): LogError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : undefined, message: String(message ?? error) };
}

function uplinksOf({ writes }: WriteRequest): number {
  return writes.reduce((sum, write) => sum + (write.type === 'append' ? write.commit.count : 0), 0);
}

function done(write: LogWrite, merchants: Iterator<MerchantOutcome>): LogOutcome {
  if (write.type === 'merchant') return { merchant: merchants.next().value as MerchantOutcome };
  return { uplinks: write.type === 'append' ? write.commit.uplinks : undefined };
}

/** Makes the writes durable together; where one of them fails, each by itself. */
function carryOut(writer: LogWriter, writes: readonly LogWrite[]): LogOutcome[] {
  try {
    const merchants = writer.write(writes).values();
    return writes.map((write) => done(write, merchants));
  } catch (error) {
    // A full disk is full for all. After an I/O error nobody knows what is on the disk, so nothing is tried again.
    if (writes.length > 1 && failureKind(error) === 'other') return writes.flatMap((each) => carryOut(writer, [each]));
    return writes.map(() => ({ error: sendable(error) }));
  }
}

class LogThread {
  readonly #db;
  readonly #writer: LogWriter;
  readonly #checkpointer: WalCheckpointer;

  constructor({ file, runSize }: LogThreadData) {
    this.#db = openDurable(file);
    this.#writer = new LogWriter(this.#db, runSize);
    this.#checkpointer = new WalCheckpointer(this.#db, file);
    port.on('message', (request: LogRequest) => this.#take(request));
    answer({ outcomes: [{}], mark: this.#writer.memtable.mark });
  }

  #take(request: LogRequest): void {
    if (request.type === 'write') this.#takeWrites(request);
    else this.#other(request);
  }

  /** Takes the write requests that wait behind it along. */
  #takeWrites(request: WriteRequest): void {
    const requests = [request];
    let next: LogRequest | undefined;
    for (let uplinks = uplinksOf(request); uplinks < UPLINKS_TOGETHER; uplinks += uplinksOf(next)) {
      next = (receiveMessageOnPort(port) as { message: LogRequest } | undefined)?.message;
      if (next?.type !== 'write') break;
      requests.push(next);
    }
    this.#write(requests);
    if (next !== undefined && next.type !== 'write') this.#other(next);
  }

  #write(requests: readonly WriteRequest[]): void {
    const writes = requests.flatMap((request) => request.writes);
    const outcomes = this.#orFailure(writes.length, () => carryOut(this.#writer, writes));
    const last = requests.at(-1);
    for (const request of requests) {
      // The mark includes all of them, so it goes with the last.
      const mark = request === last ? this.#writer.memtable.mark : undefined;
      answer({ outcomes: outcomes.splice(0, request.writes.length), mark });
    }
    this.#checkpointer.checkpointIfLong();
  }

  #other(request: Exclude<LogRequest, WriteRequest>): void {
    if (request.type === 'settle' || request.type === 'age') {
      const outcomes = this.#orFailure(1, () => {
        if (request.type === 'age') return [{ aged: this.#writer.deleteOld(request.piece) }];
        this.#writer.flushIndexes();
        return [{}];
      });
      answer({ outcomes, mark: this.#writer.memtable.mark });
      this.#checkpointer.checkpointIfLong();
    } else
      void (request.type === 'rest' ? this.#checkpointer.idle() : this.#close()).then(() => answer({ outcomes: [{}] }));
  }

  /** The outcomes of the work; a failure for each where an earlier one leaves the file uncertain. */
  #orFailure(count: number, work: () => LogOutcome[]): LogOutcome[] {
    try {
      this.#checkpointer.check();
      return work();
    } catch (error) {
      return Array.from({ length: count }, () => ({ error: sendable(error) }));
    }
  }

  async #close(): Promise<void> {
    await this.#checkpointer.close();
    this.#db.close();
    // With no port to listen on, the thread ends.
    port.unref();
  }
}

try {
  new LogThread(workerData as LogThreadData);
} catch (error) {
  answer({ outcomes: [{ error: sendable(error) }] });
}
