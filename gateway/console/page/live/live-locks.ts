/**
 * The present state of all locks of a page: a snapshot in parts, then changes (`GET /v1/stream`). Several changes make
 * one version, so that a page is drawn a few times a second, however many locks change. Does no I/O.
 */
import { TROUBLES } from '../../../../proto/power/troubles.js';
import type { Lock } from '../api/shapes.js';
import type { TailBatch } from './tail-outbox.js';

/** What the stream sends, and the worker passes on to each tab. */
export type LiveChange =
  /** A new set of all locks, in parts: part 1 begins it, and the last part replaces the old set. */
  | { readonly type: 'snapshot'; readonly part: number; readonly last: boolean; readonly locks: readonly Lock[] }
  | { readonly type: 'lock'; readonly lock: Lock }
  | { readonly type: 'removed'; readonly mac_addr: string };

/**
 * Whether the page follows the gateway's stream: `connecting` at first, `open` until the first data come, `live` from
 * then on, `interrupted` after a failure until it is open again, `ended` if the session has ended.
 */
export type LiveState = 'connecting' | 'open' | 'live' | 'interrupted' | 'ended';

/** From the worker to a tab. */
export type LiveMessage =
  | { readonly type: 'changes'; readonly changes: readonly LiveChange[] }
  /** Live events of the gateway, for the operators' log. */
  | { readonly type: 'tail'; readonly batch: TailBatch }
  | { readonly type: 'state'; readonly state: LiveState };

/**
 * All locks, by MAC. Most changes leave a lock at its place in the order, so that thousands of locks are not sorted for
 * each batch of changes: a changed lock replaces the former one there.
 */
export class LiveLocks {
  #locks = new Map<string, Lock>();
  /** The locks of a snapshot whose last part has not come yet. */
  #next: Map<string, Lock> | null = null;
  #sorted: readonly Lock[] | null = null;
  /** Changed locks that are not in {@link #sorted} yet, by MAC. */
  readonly #changed = new Map<string, Lock>();

  /** In the order of {@link compareByTrouble}. The same array until something changes. */
  get sorted(): readonly Lock[] {
    if (this.#sorted === null) this.#sorted = [...this.#locks.values()].sort(compareByTrouble);
    else if (this.#changed.size > 0) this.#sorted = withChanges(this.#sorted, this.#changed);
    this.#changed.clear();
    return this.#sorted;
  }

  get size(): number {
    return this.#locks.size;
  }

  find(mac: string): Lock | undefined {
    return this.#locks.get(mac);
  }

  apply(change: LiveChange): void {
    if (change.type === 'snapshot') this.#takePart(change);
    else if (change.type === 'lock') this.#set(change.lock);
    else this.#remove(change.mac_addr);
  }

  /** All locks as one change, for a tab that was opened later. */
  asSnapshot(): LiveChange {
    return { type: 'snapshot', part: 1, last: true, locks: [...this.#locks.values()] };
  }

  #takePart({ part, last, locks }: LiveChange & { readonly type: 'snapshot' }): void {
    if (part === 1) this.#next = new Map();
    for (const lock of locks) this.#next?.set(lock.mac_addr, lock);
    if (!last || this.#next === null) return;
    this.#locks = this.#next;
    this.#next = null;
    this.#sorted = null;
  }

  #set(lock: Lock): void {
    if (this.#locks.has(lock.mac_addr)) this.#changed.set(lock.mac_addr, lock);
    else this.#sorted = null;
    this.#locks.set(lock.mac_addr, lock);
    this.#next?.set(lock.mac_addr, lock);
  }

  #remove(mac: string): void {
    this.#sorted = null;
    this.#locks.delete(mac);
    this.#next?.delete(mac);
  }
}

/** The locks with changed ones in place of the former, in the order of {@link compareByTrouble}. */
function withChanges(sorted: readonly Lock[], changed: ReadonlyMap<string, Lock>): readonly Lock[] {
  let isInOrder = true;
  const locks = sorted.map((before) => {
    const lock = changed.get(before.mac_addr);
    if (lock === undefined) return before;
    isInOrder &&= lock.trouble === before.trouble && lock.name === before.name;
    return lock;
  });
  return isInOrder ? locks : locks.sort(compareByTrouble);
}

/** Compares names; many times faster than `localeCompare`. */
const NAMES = new Intl.Collator();
/** In place of a missing name: the last character of every alphabet, so that locks without a name come last. */
const AFTER_ALL_NAMES = '\uffff';

/** The worst trouble first, then by name, then by MAC. */
export function compareByTrouble(a: Lock, b: Lock): number {
  const byTrouble = troubleRank(a) - troubleRank(b);
  if (byTrouble !== 0) return byTrouble;
  const byName = NAMES.compare(a.name ?? AFTER_ALL_NAMES, b.name ?? AFTER_ALL_NAMES);
  return byName !== 0 ? byName : a.mac_addr < b.mac_addr ? -1 : 1;
}

const TROUBLE_RANKS: ReadonlyMap<string, number> = new Map(TROUBLES.map((trouble, rank) => [trouble, rank]));
/** The rank of a trouble that a newer gateway knows and this page does not: just before `none`, the last one. */
const UNKNOWN_RANK = TROUBLES.length - 1.5;

function troubleRank({ trouble }: Lock): number {
  return TROUBLE_RANKS.get(trouble) ?? UNKNOWN_RANK;
}
