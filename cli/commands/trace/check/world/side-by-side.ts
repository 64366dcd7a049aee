/**
 * Reads a truth side by side with a trace, in order of time: before each event of the trace come the events of the
 * world up to its time. A truth is a trace with world events: what really happened around simulated locks. The caller
 * passes the events of the trace as it reads them.
 */
import { LockgateError } from '../../../../../proto/errors.js';
import type { OwedCheck } from '../../../../../proto/trace/owed/owed-check.js';
import type { TraceEvent, TraceHeader, TraceWorld } from '../../../../../proto/trace/trace.js';
import { sanitizeLine } from '../../../../terminal/output.js';
import { type TruthLine, TruthStream } from './truth-stream.js';

/** The file name that stands for the standard input. */
export const STANDARD_INPUT = '-';

/** Receives the events of the trace. The check that `begin` returns receives those of the world. */
export interface SideBySideTarget {
  /** Called before the first event. @param truthHeader null if the truth has none */
  begin(truthHeader: TraceHeader | null): OwedCheck;
  /** Called with each event of the trace. */
  event(event: TraceEvent, line: number): void;
}

/** One truth and one trace that are read side by side. */
export class SideBySide {
  readonly #name: string;
  readonly #stream: TruthStream;
  readonly #target: SideBySideTarget;
  /**
   * Checks which uplinks (messages) the locks owe, that is should have sent, for the world events; null before the
   * first event.
   */
  #owed: OwedCheck | null = null;
  /** Events of the trace for which the truth has not been read far enough: at most those of one part of the file. */
  #events: { readonly event: TraceEvent; readonly line: number }[] = [];
  /** The part of the truth that was read last, and the index of its first event that was not passed on. */
  #truth: readonly TruthLine[] = [];
  #next = 0;
  #isTruthOver = false;

  /** @param name the truth's name in errors */
  constructor(truth: string, name: string, target: SideBySideTarget) {
    this.#name = name;
    this.#stream = new TruthStream(truth);
    this.#target = target;
  }

  /** The next event of the trace. */
  event(event: TraceEvent, line: number): void {
    this.#events.push({ event, line });
  }

  /**
   * To be called after each part of the trace.
   *
   * @throws LockgateError `input-…` if the truth can't be read
   */
  async pause(): Promise<void> {
    const events = this.#events;
    this.#events = [];
    const [first] = events;
    if (first === undefined) return;
    const owed = this.#owed ?? (await this.#begin(first.event.atMs));
    for (const { event, line } of events) {
      while (!this.#passOnUntil(owed, event.atMs) && !this.#isTruthOver) await this.#readMore();
      this.#target.event(event, line);
    }
  }

  /** To be called at the end, also after an error. Passes no more events on. */
  async close(): Promise<void> {
    await this.#stream.close();
  }

  /** @throws LockgateError `input-world` if the truth has no events of the world */
  requireWorld(): void {
    if (this.#owed !== null) requireWorld(this.#owed, this.#name);
  }

  async #begin(atMs: number): Promise<OwedCheck> {
    await this.#readMore();
    this.#owed = this.#target.begin(this.#stream.truthHeader);
    this.#owed.begin(atMs);
    return this.#owed;
  }

  /**
   * Passes on the world events that were read, up to and including a time. Returns whether a later event is already
   * read; otherwise more of the truth must be read.
   */
  #passOnUntil(owed: OwedCheck, atMs: number): boolean {
    for (let next = this.#truth[this.#next]; next !== undefined; next = this.#truth[this.#next]) {
      if (next.event.atMs > atMs) return true;
      readWorld(owed, this.#name, next.event, next.line);
      this.#next += 1;
    }
    return false;
  }

  async #readMore(): Promise<void> {
    this.#truth = await this.#stream.next();
    this.#next = 0;
    this.#isTruthOver = this.#truth.length === 0;
  }
}

/** Passes an event of the world on. @throws LockgateError `input-world` that says what was expected of it */
export function readWorld(owed: OwedCheck, truth: string, event: TraceWorld, line: number): void {
  const read = owed.world(event, line);
  if (!read.ok) throw new LockgateError('input-world', `${displayName(truth)}:${line}: ${read.error.message}`);
}

/** @throws LockgateError `input-world` if the truth has no events of the world */
export function requireWorld({ worldEvents }: OwedCheck, truth: string): void {
  if (worldEvents > 0) return;
  const expected = 'expected a trace with them, as "lockgate sim run --virtual --world" writes';
  throw new LockgateError('input-world', `${displayName(truth)} has no events of the world: ${expected}`);
}

/** A truth's name in sentences. */
export function displayName(file: string): string {
  return file === STANDARD_INPUT ? 'standard input' : sanitizeLine(file);
}
