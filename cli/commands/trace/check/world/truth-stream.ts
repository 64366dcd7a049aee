/**
 * Reads the events of the world from a truth, part by part, as fast as the caller asks for them: a truth may be larger
 * than memory. Judges nothing.
 */
import { LockgateError } from '../../../../../proto/errors.js';
import type { TraceEvent, TraceHeader, TraceWorld } from '../../../../../proto/trace/trace.js';
import { readTraceFile, type TraceVisitor } from '../../trace-file.js';

/** An event of the world, with the number of its line. */
export interface TruthLine {
  readonly event: TraceWorld;
  readonly line: number;
}

/** Ends the reading of a truth that is no longer needed. */
class NotNeeded extends Error {}

export class TruthStream implements TraceVisitor {
  readonly #file: string;
  /** Null before the first part. */
  truthHeader: TraceHeader | null = null;
  #part: TruthLine[] = [];
  #reading: Promise<void> | null = null;
  #isDone = false;
  #error: unknown = null;
  #resume: (() => void) | null = null;
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

  /** Stops reading. */
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

  /** Called by the reader after each part of the file. */
  async pause(): Promise<void> {
    if (this.#isClosed) throw new NotNeeded();
    if (this.#part.length === 0) return;
    const resumed = new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
    this.#deliver?.();
    await resumed;
    if (this.#isClosed) throw new NotNeeded();
  }

  async #read(): Promise<void> {
    try {
      await readTraceFile(this.#file, this);
    } catch (error) {
      // A truth that can't be read ends the command: it is no error of the trace.
      if (error instanceof LockgateError) this.#error = new LockgateError(error.code, error.message);
      else if (!(error instanceof NotNeeded)) this.#error = error;
    }
    this.#isDone = true;
    this.#deliver?.();
  }
}
