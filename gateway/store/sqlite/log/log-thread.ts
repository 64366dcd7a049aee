/**
 * The main module of the log thread, a worker that writes the log on a separate connection: while it waits for the
 * disk, the event loop receives and judges the next uplinks. The thread handles requests in order, and answers when the
 * result is on the disk. Writes that are waiting when a transaction starts share that transaction and its fsync.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { failureKind } from '../../contract/errors.js';
import type { MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import { openDurable } from '../durable-file.js';
import type { LogAnswer, LogError, LogOutcome, LogRequest, LogThreadData, LogWrite } from './log-thread-message.js';
import { LogWriter } from './log-writer.js';
import { WalCheckpointer } from './wal-checkpointer.js';

/** A transaction that has at least this many uplinks takes no further writes. */
const FULL_TRANSACTION_UPLINKS = 2000;

const port = parentPort as MessagePort;

type WriteRequest = Extract<LogRequest, { type: 'write' }>;

/** Sends an answer, and transfers the memory of its uplinks: their bytes are not copied. */
function sendAnswer(answer: LogAnswer): void {
  const uplinks = answer.outcomes.map((outcome) => (outcome.error === undefined ? outcome.uplinks : undefined));
  port.postMessage(
    answer,
    uplinks.filter((each) => each !== undefined),
  );
}

function toLogError(error: unknown): LogError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : undefined, message: String(message ?? error) };
}

/** The number of uplinks in a request. */
function countUplinks({ writes }: WriteRequest): number {
  return writes.reduce((sum, write) => sum + (write.type === 'append' ? write.commit.count : 0), 0);
}

/** The outcome of a write that succeeded. A merchant's write takes its outcome from the iterator. */
function outcomeOf(write: LogWrite, merchantOutcomes: Iterator<MerchantOutcome>): LogOutcome {
  if (write.type === 'merchant') return { merchant: merchantOutcomes.next().value as MerchantOutcome };
  if (write.type !== 'append') return { uplinks: undefined };
  const { appended, uplinks, result } = write.commit;
  // `appended` has the uplinks too, among the merchants' events that the writer stored with them.
  return { uplinks: appended ?? uplinks, result };
}

/** Makes the writes durable in one transaction; if that fails, in a separate transaction each. */
function commit(writer: LogWriter, writes: readonly LogWrite[]): LogOutcome[] {
  try {
    const merchantOutcomes = writer.write(writes).values();
    return writes.map((write) => outcomeOf(write, merchantOutcomes));
  } catch (error) {
    // A full disk is full for every write. After an I/O error the state of the disk is unknown, so nothing is retried.
    if (writes.length > 1 && failureKind(error) === 'other') return writes.flatMap((each) => commit(writer, [each]));
    return writes.map(() => ({ error: toLogError(error) }));
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
    port.on('message', (request: LogRequest) => this.#handle(request));
    // The first answer, to no request: the thread could start.
    sendAnswer({ outcomes: [{}], mark: this.#writer.memtable.mark });
  }

  #handle(request: LogRequest): void {
    if (request.type === 'write') this.#handleWrites(request);
    else this.#handleOther(request);
  }

  /** Handles a write request together with the write requests that are waiting after it. */
  #handleWrites(request: WriteRequest): void {
    const requests = [request];
    let next: LogRequest | undefined;
    for (let uplinks = countUplinks(request); uplinks < FULL_TRANSACTION_UPLINKS; uplinks += countUplinks(next)) {
      // Takes a waiting message at once, without a turn of the event loop.
      next = (receiveMessageOnPort(port) as { message: LogRequest } | undefined)?.message;
      if (next?.type !== 'write') break;
      requests.push(next);
    }
    this.#write(requests);
    if (next !== undefined && next.type !== 'write') this.#handleOther(next);
  }

  #write(requests: readonly WriteRequest[]): void {
    const writes = requests.flatMap((request) => request.writes);
    const outcomes = this.#runOrFail(writes.length, () => commit(this.#writer, writes));
    const last = requests.at(-1);
    for (const request of requests) {
      // The mark covers the whole transaction, so it is sent with the last answer.
      const mark = request === last ? this.#writer.memtable.mark : undefined;
      sendAnswer({ outcomes: outcomes.splice(0, request.writes.length), mark });
    }
    this.#checkpointer.checkpointIfLong();
  }

  #handleOther(request: Exclude<LogRequest, WriteRequest>): void {
    if (request.type === 'distrust-hints') {
      this.#writer.distrustHints(request.deviceId);
      sendAnswer({ outcomes: [{}] });
    } else if (request.type === 'flush-indexes' || request.type === 'delete-old') {
      const outcomes = this.#runOrFail(1, () => {
        if (request.type === 'delete-old') return [{ deletion: this.#writer.deleteOld(request.chunk) }];
        this.#writer.flushIndexes();
        return [{}];
      });
      sendAnswer({ outcomes, mark: this.#writer.memtable.mark });
      this.#checkpointer.checkpointIfLong();
    } else
      void (request.type === 'await-checkpoint' ? this.#checkpointer.idle() : this.#close()).then(() =>
        sendAnswer({ outcomes: [{}] }),
      );
  }

  /** Runs `work` and returns its outcomes; if it or an earlier checkpoint failed, returns `count` failures instead. */
  #runOrFail(count: number, work: () => LogOutcome[]): LogOutcome[] {
    try {
      this.#checkpointer.check();
      return work();
    } catch (error) {
      return Array.from({ length: count }, () => ({ error: toLogError(error) }));
    }
  }

  async #close(): Promise<void> {
    await this.#checkpointer.close();
    this.#db.close();
    // Without a referenced port the thread exits.
    port.unref();
  }
}

try {
  new LogThread(workerData as LogThreadData);
} catch (error) {
  sendAnswer({ outcomes: [{ error: toLogError(error) }] });
}
