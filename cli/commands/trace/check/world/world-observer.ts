/**
 * `trace check --world`: checks that a trace has the uplinks (messages of locks) that world events required
 * (proto/trace/owed/). World events are what really happened around simulated locks; the file that has them is called
 * the truth. It may be the checked trace itself; otherwise both files are read side by side, in order of time.
 */
import { resolve } from 'node:path';
import { LockgateError } from '../../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../../proto/power/model.js';
import type { FindingSink } from '../../../../../proto/trace/findings.js';
import { OwedCheck } from '../../../../../proto/trace/owed/owed-check.js';
import type { TraceEvent, TraceHeader } from '../../../../../proto/trace/trace.js';
import type { TraceObserver } from '../observer.js';
import { displayName, readWorld, requireWorld, SideBySide, STANDARD_INPUT } from './side-by-side.js';

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
    // No name: messages then give the number of a world event's line without a file.
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
  readonly #sideBySide: SideBySide;
  /** The checked trace's header, and where findings go. */
  #start: { readonly header: TraceHeader; readonly findings: FindingSink } | null = null;

  constructor(truth: string) {
    let owed: OwedCheck | null = null;
    this.#sideBySide = new SideBySide(truth, truth, {
      begin: (truthHeader) => {
        if (this.#start === null) throw new Error('a trace has events only after its header');
        const truthOptions = { truthName: displayName(truth), ...(truthHeader && { truthHeader }) };
        owed = new OwedCheck({ model: POWER_MODEL, ...this.#start, ...truthOptions });
        return owed;
      },
      event: (event, line) => owed?.event(event, line),
    });
  }

  header(header: TraceHeader, findings: FindingSink): void {
    this.#start = { header, findings };
  }

  event(event: TraceEvent, line: number): void {
    if (event.event !== 'world') this.#sideBySide.event(event, line);
  }

  async pause(): Promise<void> {
    await this.#sideBySide.pause();
  }

  async end(): Promise<void> {
    await this.#sideBySide.close();
    this.#sideBySide.requireWorld();
  }
}
