/**
 * An index of a trace's findings in memory, with 50 to 110 bytes per finding; the findings themselves are in a spill
 * file (spill-file.ts). A hash table finds a finding by rule, lock and uplink, because a later line of the trace may
 * withdraw it. Rules, locks and firmware versions are given as numbers. Does no I/O.
 */
import type { UplinkKey } from '../../../../../proto/power/judge/event.js';
import { FIRST_LIFE } from '../../../../../proto/wire/uplink-life.js';

/** An entry of the index. */
export interface IndexEntry {
  readonly line: number;
  readonly lock: number;
  readonly rule: number;
  readonly firmware: number;
  /** Where the finding is in the spill file, in bytes. */
  readonly position: number;
  readonly length: number;
  /** The uplink at fault if a later line may withdraw the finding, otherwise null. */
  readonly key: UplinkKey | null;
}

/** A power of two, and so are all later capacities, which double it: {@link FindingIndex} masks hashes by them. */
const INITIAL_CAPACITY = 64;
/** Marks the end of a chain of the hash table. */
const NONE = -1;
/**
 * The members of an entry that are integers below 2³², each stored in an array. The last four identify an uplink (a
 * message of a lock): the number of the credential that sent it, and its numbers. `life` is 1, and one more for each
 * time that the lock's flash was wiped, after which its uplink numbers start again.
 */
const COLUMNS = ['line', 'lock', 'rule', 'firmware', 'length', 'credential', 'life', 'boot', 'sequence'] as const;
type Column = (typeof COLUMNS)[number];

/** The index. Entries are numbered in the order in which they are added. */
export class FindingIndex {
  #count = 0;
  #positions = new Float64Array(INITIAL_CAPACITY);
  #columns = new Map<Column, Uint32Array>(COLUMNS.map((name) => [name, new Uint32Array(INITIAL_CAPACITY)]));
  #isWithdrawn = new Uint8Array(INITIAL_CAPACITY);
  /** The hash table's chains of entries with the same hash: the first entry of each, and the next one of each entry. */
  #heads = new Int32Array(INITIAL_CAPACITY).fill(NONE);
  #nexts = new Int32Array(INITIAL_CAPACITY).fill(NONE);

  /** Adds an entry. */
  add(entry: IndexEntry): void {
    if (this.#count === this.#positions.length) this.#grow();
    const index = this.#count;
    this.#count += 1;
    this.#positions[index] = entry.position;
    for (const name of ['line', 'lock', 'rule', 'firmware', 'length'] as const) this.#set(name, index, entry[name]);
    // An entry without a key can't be withdrawn, so it is never looked up.
    if (entry.key === null) return;
    const { credential, life = FIRST_LIFE, boot, sequence } = entry.key;
    this.#set('credential', index, credential);
    this.#set('life', index, life);
    this.#set('boot', index, boot);
    this.#set('sequence', index, sequence);
    this.#link(index);
  }

  /** Withdraws the newest finding with these values, if there is one. */
  withdraw(rule: number, lock: number, { credential, life = FIRST_LIFE, boot, sequence }: UplinkKey): void {
    const key = { rule, lock, credential, life, boot, sequence };
    const slot = this.#slot(rule, lock, credential, life, boot, sequence);
    for (let index = this.#heads[slot] as number; index !== NONE; index = this.#nexts[index] as number) {
      if (this.#isWithdrawn[index] === 1) continue;
      if (Object.entries(key).some(([name, value]) => this.get(name as Column, index) !== value)) continue;
      this.#isWithdrawn[index] = 1;
      return;
    }
  }

  /** A member of an entry. */
  get(column: Column, index: number): number {
    return (this.#columns.get(column) as Uint32Array)[index] as number;
  }

  /** Where an entry's finding is in the spill file. */
  positionOf(index: number): number {
    return this.#positions[index] as number;
  }

  /** The numbers of the entries that were not withdrawn, in the order of their lines. */
  sorted(): Uint32Array {
    const indexes = new Uint32Array(this.#count);
    let count = 0;
    for (let index = 0; index < this.#count; index += 1) {
      if (this.#isWithdrawn[index] === 0) indexes[count++] = index;
    }
    const lines = this.#columns.get('line') as Uint32Array;
    return indexes.subarray(0, count).sort((a, b) => (lines[a] as number) - (lines[b] as number) || a - b);
  }

  #set(column: Column, index: number, value: number): void {
    (this.#columns.get(column) as Uint32Array)[index] = value;
  }

  #grow(): void {
    const capacity = 2 * this.#positions.length;
    this.#positions = copyInto(new Float64Array(capacity), this.#positions);
    this.#columns = new Map([...this.#columns].map(([name, old]) => [name, copyInto(new Uint32Array(capacity), old)]));
    this.#isWithdrawn = copyInto(new Uint8Array(capacity), this.#isWithdrawn);
    this.#heads = new Int32Array(capacity).fill(NONE);
    this.#nexts = new Int32Array(capacity).fill(NONE);
    for (let index = 0; index < this.#count; index += 1) if (this.get('life', index) !== 0) this.#link(index);
  }

  /** Adds an entry to its chain. Not called for an entry that can't be withdrawn; such an entry has life 0. */
  #link(index: number): void {
    const member = (name: Column): number => this.get(name, index);
    const key = (['rule', 'lock', 'credential', 'life', 'boot', 'sequence'] as const).map(member);
    const slot = this.#slot(...key);
    this.#nexts[index] = this.#heads[slot] as number;
    this.#heads[slot] = index;
  }

  /**
   * The slot of the hash table for a key. The multiplier is a prime near 2³² / golden ratio, which spreads keys well.
   */
  #slot(...values: readonly number[]): number {
    let hash = 0;
    for (const value of values) {
      hash = Math.imul(hash ^ value, 0x9e3779b1);
      // The slot is the hash's low bits, so the high bits are mixed into them.
      hash ^= hash >>> 15;
    }
    return hash & (this.#heads.length - 1);
  }
}

function copyInto<T extends { set(from: ArrayLike<number>): void }>(larger: T, from: ArrayLike<number>): T {
  larger.set(from);
  return larger;
}
