/**
 * The lines of live events that a page has in memory, in two lists: the newest of all lines, and the newest lines that
 * the filter selects, which may be older. So memory is bounded, and a rare line stays although thousands of others come
 * after it. While the log is paused, the lines on the screen do not change; new ones are added and shown later. Does no
 * I/O.
 */
import { type EventJson, withFindings } from '../../wording/event-text.js';
import { isWanted, type TailFilter, type TailNames } from './tail-filter.js';
import type { TailBatch } from './tail-outbox.js';

/** The maximum length of each list. */
export const MAX_LINES = 5_000;
/** The lists grow to this many times the limit before they are cut, so that not every batch copies them. */
const GROWTH = 1.25;

/** A line about an event, or a note about missing events. `source` is the event as the gateway sent it. */
export type TailLine =
  | { readonly id: number; readonly event: EventJson; readonly source: EventJson }
  | { readonly id: number; readonly note: string };

/** The lists at the moment of the pause. */
interface Paused {
  readonly recent: readonly TailLine[];
  readonly shown: readonly TailLine[];
  /** How many lines were added since then. */
  readonly added: number;
}

const ALL: TailFilter = { lock: '', merchant: '', kind: '', reason: '', search: '' };

export class TailLog {
  #recent: TailLine[] = [];
  #shown: TailLine[] = [];
  #paused: Paused | null = null;
  #filter = ALL;
  #names: TailNames = { lockName: () => null, merchantOf: () => undefined };
  #nextId = 0;
  #view: readonly TailLine[] | null = null;

  /** The lines to show, newest first. The same array until something changes. */
  get view(): readonly TailLine[] {
    this.#view ??= (this.#paused?.shown ?? this.#shown).slice(-MAX_LINES).reverse();
    return this.#view;
  }

  get isPaused(): boolean {
    return this.#paused !== null;
  }

  /** How many lines the filter selected since the log was paused; 0 if it is not. */
  get added(): number {
    return this.#paused?.added ?? 0;
  }

  /**
   * Adds a batch. A text that is no JSON is left out. The note about skipped events is added last, so that the page,
   * which shows the newest line first, has it on top: below a thousand lines nobody would see it.
   */
  add({ events, skipped }: TailBatch): void {
    for (const text of events) {
      const source = parse(text);
      // A ping's findings become lines of their own.
      if (source !== null) for (const event of withFindings(source)) this.#push({ id: this.#newId(), event, source });
    }
    if (skipped > 0) this.note(`${skipped.toLocaleString('en-US')} skipped: they came too fast`);
    this.#cut();
  }

  /** Adds a note about missing events, which no filter hides. */
  note(note: string): void {
    this.#push({ id: this.#newId(), note });
  }

  /** Sets the filter, for the lines in memory and for all later ones. */
  select(filter: TailFilter, names: TailNames): void {
    this.#names = names;
    if (JSON.stringify(filter) === JSON.stringify(this.#filter)) return;
    this.#filter = filter;
    this.#shown = this.#selected(this.#recent, this.#shown);
    if (this.#paused !== null) {
      const { recent, shown } = this.#paused;
      this.#paused = { recent, shown: this.#selected(recent, shown), added: 0 };
    }
    this.#view = null;
  }

  pause(): void {
    this.#paused ??= { recent: [...this.#recent], shown: [...this.#shown], added: 0 };
  }

  resume(): void {
    this.#paused = null;
    this.#view = null;
  }

  clear(): void {
    this.#recent = [];
    this.#shown = [];
    this.resume();
  }

  #newId(): number {
    this.#nextId += 1;
    return this.#nextId;
  }

  #push(line: TailLine): void {
    this.#recent.push(line);
    if (!this.#isShown(line)) return;
    this.#shown.push(line);
    if (this.#paused === null) this.#view = null;
    else this.#paused = { ...this.#paused, added: this.#paused.added + 1 };
  }

  #isShown(line: TailLine): boolean {
    return 'note' in line || isWanted(line.event, this.#filter, this.#names);
  }

  /** The lines of both lists that the filter selects, oldest first. */
  #selected(recent: readonly TailLine[], shown: readonly TailLine[]): TailLine[] {
    const byId = new Map([...shown, ...recent].map((line) => [line.id, line]));
    const selected = [...byId.values()].filter((line) => this.#isShown(line));
    return selected.sort((a, b) => a.id - b.id).slice(-MAX_LINES);
  }

  #cut(): void {
    if (this.#recent.length > MAX_LINES * GROWTH) this.#recent = this.#recent.slice(-MAX_LINES);
    if (this.#shown.length > MAX_LINES * GROWTH) this.#shown = this.#shown.slice(-MAX_LINES);
  }
}

function parse(text: string): EventJson | null {
  try {
    return JSON.parse(text) as EventJson;
  } catch {
    return null;
  }
}
