/**
 * Reads the world events of a truth (a trace that records what really happened around simulated locks) in parts. The
 * next part is read only when the caller requests it, because a truth may be larger than memory. Judges nothing.
 */
import { LockgateError } from '../../../../../proto/errors.js';
import type { TraceEvent, TraceHeader, TraceWorld } from '../../../../../proto/trace/trace.js';
import { readTraceFile, type TraceVisitor } from '../../trace-file.js';

/** A world event, with the number of its line. */
export interface TruthLine {
  readonly event: TraceWorld;
  readonly line: number;
}

/** Thrown to the reader when the truth is closed before its end. */
class StreamClosed extends Error {}

/** A truth that is being read. */
export class TruthStream implements TraceVisitor {
  readonly #file: string;
  /** The truth's header; null before the first part. */
  truthHeader: TraceHeader | null = null;
  /** The events read since the last call of {@link next}. */
  #part: TruthLine[] = [];
  #reading: Promise<void> | null = null;
  #isDone = false;
  #error: unknown = null;
  /** Lets the reader continue. */
  #resume: (() => void) | null = null;
  /** Lets {@link next} return. */
  #deliver: (() => void) | null = null;
  #isClosed = false;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * The next events, in order; none at the end of the truth.
   *
   * @throws LockgateError `input-…` if the truth can't be read
   */
  async next(): Promise<readonly TruthLine[]> {
    if (!this.#isDone) {
      const delivered = new Promise<void>((resolve) => {
        this.#deliver = resolve;
      });
      if (this.#reading === null) this.#reading = this.#read();
      else this.#resume?.();
      await delivered;
    }
    if (this.#error !== null) throw this.#error;
    const part = this.#part;
    this.#part = [];
    return part;
  }

  /** Stops reading, and resolves when the file is closed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#resume?.();
    await this.#reading;
  }

  header(header: TraceHeader): void {
    this.truthHeader = header;
  }

  event(event: TraceEvent, line: number): void {
    if (event.event === 'world') this.#part.push({ event, line });
  }

  /** Called by the reader after each chunk of the file. Waits until {@link next} requests more. */
  async pause(): Promise<void> {
    if (this.#isClosed) throw new StreamClosed();
    if (this.#part.length === 0) return;
    const resumed = new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
    this.#deliver?.();
    await resumed;
    if (this.#isClosed) throw new StreamClosed();
  }

  async #read(): Promise<void> {
    try {
      await readTraceFile(this.#file, this);
    } catch (error) {
      // A new error, so that callers don't take it for an UnreadableTrace of the checked file: it ends the command.
      if (error instanceof LockgateError) this.#error = new LockgateError(error.code, error.message);
      else if (!(error instanceof StreamClosed)) this.#error = error;
    }
    this.#isDone = true;
    this.#deliver?.();
  }
}
