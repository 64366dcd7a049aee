/**
 * `trace check --world`: checks that a trace has the uplinks that world events required (proto/trace/owed/). World
 * events are what really happened around simulated locks; the file that has them is called the truth. It may be the
 * checked trace itself; otherwise both files are read side by side, in order of time.
 */
import { resolve } from 'node:path';
import { LockgateError } from '../../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../../proto/power/model.js';
import type { FindingSink } from '../../../../../proto/trace/findings.js';
import { OwedCheck } from '../../../../../proto/trace/owed/owed-check.js';
import type { TraceEvent, TraceHeader, TraceWorld } from '../../../../../proto/trace/trace.js';
import { sanitizeLine } from '../../../../terminal/output.js';
import type { TraceObserver } from '../observer.js';
import { type TruthLine, TruthStream } from './truth-stream.js';

const STANDARD_INPUT = '-';

/**
 * The observer for one trace.
 *
 * @param truth the file with the events of the world
 */
export function worldObserver(file: string, truth: string): TraceObserver {
  const isSame = file === truth || (truth !== STANDARD_INPUT && resolve(file) === resolve(truth));
  return isSame ? new WorldInTrace(truth) : new WorldInOtherFile(truth);
}

/** @throws LockgateError `input-flags` if the truth is the standard input and is needed more than once */
export function requireReadable(files: readonly string[], truth: string): void {
  if (truth !== STANDARD_INPUT || files.length === 1) return;
  throw new LockgateError('input-flags', '--world - can be read only once: expected one trace with it');
}

/** For a trace that has the world events itself. */
class WorldInTrace implements TraceObserver {
  readonly #truth: string;
  #owed: OwedCheck | null = null;

  constructor(truth: string) {
    this.#truth = truth;
  }

  header(header: TraceHeader, findings: FindingSink): void {
    this.#owed = new OwedCheck({ model: POWER_MODEL, header, truthName: null, findings });
  }

  event(event: TraceEvent, line: number): void {
    if (this.#owed === null) return;
    if (event.event === 'world') readWorld(this.#owed, this.#truth, event, line);
    this.#owed.event(event, line);
  }

  end(): void {
    if (this.#owed !== null) requireWorld(this.#owed, this.#truth);
  }
}

/** For a truth in another file. */
class WorldInOtherFile implements TraceObserver {
  readonly #name: string;
  readonly #stream: TruthStream;
  /** The checked trace's header, and where findings go. */
  #start: { readonly header: TraceHeader; readonly findings: FindingSink } | null = null;
  #owed: OwedCheck | null = null;
  /** Events of the trace that wait until the truth is read up to their time: at most those of one chunk of the file. */
  #events: { readonly event: TraceEvent; readonly line: number }[] = [];
  /** The current part of the truth, and the index of its first event that was not yet used. */
  #truth: readonly TruthLine[] = [];
  #next = 0;
  #isTruthAtEnd = false;

  constructor(truth: string) {
    this.#name = truth;
    this.#stream = new TruthStream(truth);
  }

  header(header: TraceHeader, findings: FindingSink): void {
    this.#start = { header, findings };
  }

  event(event: TraceEvent, line: number): void {
    if (event.event !== 'world') this.#events.push({ event, line });
  }

  async pause(): Promise<void> {
    const events = this.#events;
    this.#events = [];
    const [first] = events;
    if (first === undefined) return;
    const owed = this.#owed ?? (await this.#startCheck(first.event.atMs));
    if (owed === null) return;
    for (const { event, line } of events) {
      while (!this.#isTruthAtEnd && this.#needsMoreTruth(owed, event.atMs)) await this.#readNextPart();
      owed.event(event, line);
    }
  }

  async end(): Promise<void> {
    await this.#stream.close();
    if (this.#owed !== null) requireWorld(this.#owed, this.#name);
  }

  async #startCheck(atMs: number): Promise<OwedCheck | null> {
    if (this.#start === null) return null;
    await this.#readNextPart();
    const { truthHeader } = this.#stream;
    const truth = { truthName: displayName(this.#name), ...(truthHeader && { truthHeader }) };
    this.#owed = new OwedCheck({ model: POWER_MODEL, ...this.#start, ...truth });
    this.#owed.begin(atMs);
    return this.#owed;
  }

  /** Passes the world events up to this time to the check. Returns whether the next part of the truth is needed. */
  #needsMoreTruth(owed: OwedCheck, atMs: number): boolean {
    for (let next = this.#truth[this.#next]; next !== undefined; next = this.#truth[this.#next]) {
      if (next.event.atMs > atMs) return false;
      readWorld(owed, this.#name, next.event, next.line);
      this.#next += 1;
    }
    return true;
  }

  async #readNextPart(): Promise<void> {
    this.#truth = await this.#stream.next();
    this.#next = 0;
    this.#isTruthAtEnd = this.#truth.length === 0;
  }
}

/** Passes a world event to the check. @throws LockgateError `input-world` if the event can't be read */
function readWorld(owed: OwedCheck, truth: string, event: TraceWorld, line: number): void {
  const read = owed.world(event, line);
  if (!read.ok) throw new LockgateError('input-world', `${displayName(truth)}:${line}: ${read.error.message}`);
}

/** @throws LockgateError `input-world` if the truth has no world events */
function requireWorld({ worldEvents }: OwedCheck, truth: string): void {
  if (worldEvents > 0) return;
  const expected = 'expected a trace with them, as "lockgate sim run --virtual --world" writes';
  throw new LockgateError('input-world', `${displayName(truth)} has no events of the world: ${expected}`);
}

function displayName(file: string): string {
  return file === STANDARD_INPUT ? 'standard input' : sanitizeLine(file);
}
