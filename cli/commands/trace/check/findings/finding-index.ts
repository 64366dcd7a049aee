/**
 * What is known in memory about each finding of a trace: some 45 bytes. The finding itself is in a spill file. Findings
 * are found by what identifies them, because a later line may withdraw one. Pure.
 */
import type { UplinkKey } from '../../../../../proto/power/judge/event.js';
import { FIRST_LIFE } from '../../../../../proto/wire/uplink-life.js';

/** One row of the index. */
export interface IndexRow {
  readonly line: number;
  readonly lock: number;
  readonly rule: number;
  readonly firmware: number;
  /** Where the finding is in the spill file, in bytes. */
  readonly position: number;
  readonly length: number;
  /** Given if the finding may be withdrawn. */
  readonly key: UplinkKey | null;
}

const FIRST_CAPACITY = 64;
const NONE = -1;
/** Columns of a row that are integers below 2³²; the position in the spill file may be greater. */
const COLUMNS = ['line', 'lock', 'rule', 'firmware', 'length', 'credential', 'life', 'boot', 'sequence'] as const;
type Column = (typeof COLUMNS)[number];

export class FindingIndex {
  #count = 0;
  #positions = new Float64Array(FIRST_CAPACITY);
  #columns = new Map<Column, Uint32Array>(COLUMNS.map((name) => [name, new Uint32Array(FIRST_CAPACITY)]));
  #isWithdrawn = new Uint8Array(FIRST_CAPACITY);
  /** Chains of rows with the same hash: the first row of each, and the next row of each row. */
  #heads = new Int32Array(FIRST_CAPACITY).fill(NONE);
  #nexts = new Int32Array(FIRST_CAPACITY).fill(NONE);

  add(row: IndexRow): void {
    if (this.#count === this.#positions.length) this.#grow();
    const index = this.#count;
    this.#count += 1;
    this.#positions[index] = row.position;
    for (const name of ['line', 'lock', 'rule', 'firmware', 'length'] as const) this.#set(name, index, row[name]);
    if (row.key === null) return;
    const { credential, life = FIRST_LIFE, boot, sequence } = row.key;
    this.#set('credential', index, credential);
    this.#set('life', index, life);
    this.#set('boot', index, boot);
    this.#set('sequence', index, sequence);
    this.#link(index);
  }

  /** Withdraws the newest finding with these values, if there is one. */
  withdraw(rule: number, lock: number, { credential, life = FIRST_LIFE, boot, sequence }: UplinkKey): void {
    const wanted = { rule, lock, credential, life, boot, sequence };
    const hash = this.#slot(rule, lock, credential, life, boot, sequence);
    for (let index = this.#heads[hash] as number; index !== NONE; index = this.#nexts[index] as number) {
      if (this.#isWithdrawn[index] === 1) continue;
      if (Object.entries(wanted).some(([name, value]) => this.get(name as Column, index) !== value)) continue;
      this.#isWithdrawn[index] = 1;
      return;
    }
  }

  get(column: Column, index: number): number {
    return (this.#columns.get(column) as Uint32Array)[index] as number;
  }

  positionOf(index: number): number {
    return this.#positions[index] as number;
  }

  /** The rows that were not withdrawn and that `isWanted`, in the order of their lines. */
  sorted(isWanted: (index: number) => boolean = () => true): Uint32Array {
    const indexes = new Uint32Array(this.#count);
    let found = 0;
    for (let index = 0; index < this.#count; index += 1) {
      if (this.#isWithdrawn[index] === 0 && isWanted(index)) indexes[found++] = index;
    }
    const lines = this.#columns.get('line') as Uint32Array;
    return indexes.subarray(0, found).sort((a, b) => (lines[a] as number) - (lines[b] as number) || a - b);
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

  /** A row that can't be withdrawn has life 0 and is in no chain. */
  #link(index: number): void {
    const of = (name: Column): number => this.get(name, index);
    const slot = this.#slot(of('rule'), of('lock'), of('credential'), of('life'), of('boot'), of('sequence'));
    this.#nexts[index] = this.#heads[slot] as number;
    this.#heads[slot] = index;
  }

  #slot(...values: readonly number[]): number {
    let hash = 0;
    for (const value of values) {
      hash = Math.imul(hash ^ value, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash & (this.#heads.length - 1);
  }
}

function copyInto<T extends { set(from: ArrayLike<number>): void }>(larger: T, from: ArrayLike<number>): T {
  larger.set(from);
  return larger;
}
