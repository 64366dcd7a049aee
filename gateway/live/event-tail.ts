/**
 * The gateway's events for operators' streams: what the command `lockgate tail` shows. When an event happens, it is
 * only stored in memory; it is turned into JSON later, in slices between other work, once for all streams.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { ReadTurns } from '../locks/list/read-turns.js';
import { sseEvent } from './server-sent-events.js';

/** Maximum number of events that wait to be rendered; further ones are only counted. */
const MAX_WAITING_EVENTS = 1_000;
/** How long events are collected before they are sent. */
const FLUSH_DELAY: Milliseconds = Seconds(1) / 5;
/** How many events are rendered in one turn of the event loop. */
const EVENTS_PER_SLICE = 50;

/** Calls a listener with every event, as a function that makes its JSON; returns the function that unsubscribes. */
export type TailSource = (listener: (toJson: () => unknown) => void) => () => void;

export interface TailParts {
  readonly tail: TailSource;
  /** Says when a slice may be rendered: other work of the event loop, such as pings, runs in between. */
  readonly turns: ReadTurns;
  /** Measures intervals: real time. */
  readonly clock: Clock;
}

export interface TailOutput {
  /** Sends events to all streams. @param count the number of events in `bytes` */
  readonly send: (bytes: Buffer, count: number) => void;
  /** Reports that `count` events were left out for all streams. */
  readonly skip: (count: number) => void;
}

export class EventTail {
  readonly #parts: TailParts;
  readonly #output: TailOutput;
  readonly #unsubscribe: () => void;
  /** Functions that make the JSON of the events that wait. */
  #waiting: (() => unknown)[] = [];
  #skipped = 0;
  #timer: Timer | undefined;
  #isFlushing = false;
  #isStopped = false;

  constructor(parts: TailParts, output: TailOutput) {
    this.#parts = parts;
    this.#output = output;
    this.#unsubscribe = parts.tail((toJson) => this.#note(toJson));
  }

  /** Stops listening. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#unsubscribe();
  }

  #note(toJson: () => unknown): void {
    if (this.#waiting.length < MAX_WAITING_EVENTS) this.#waiting.push(toJson);
    else this.#skipped += 1;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isFlushing || this.#isStopped) return;
    this.#timer = this.#parts.clock.after(FLUSH_DELAY, () => {
      this.#timer = undefined;
      this.#isFlushing = true;
      void this.#flush().then(() => {
        this.#isFlushing = false;
        if (this.#waiting.length > 0) this.#schedule();
      });
    });
  }

  async #flush(): Promise<void> {
    const events = this.#waiting;
    this.#waiting = [];
    for (let start = 0; start < events.length; start += EVENTS_PER_SLICE) {
      await this.#parts.turns.next();
      if (this.#isStopped) return;
      const slice = events.slice(start, start + EVENTS_PER_SLICE);
      const texts = slice.map((toJson) => sseEvent('event', undefined, JSON.stringify(toJson())));
      this.#output.send(Buffer.from(texts.join(''), 'utf8'), slice.length);
    }
    if (this.#skipped === 0) return;
    this.#output.skip(this.#skipped);
    this.#skipped = 0;
  }
}
