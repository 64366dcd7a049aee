/**
 * Sorts lines by time. Recordings may list one lock after the other, so lines that exceed the memory limit go to
 * temporary files, which are merged. Lines of the same time keep their order.
 */
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Lines of this many characters are sorted in memory. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** A line and its time, ms since the epoch. The line has no line break. */
export interface TimedLine {
  readonly atMs: number;
  readonly line: string;
}

/** See the head of this file. Call {@link remove} in the end. */
export class LineSorter {
  readonly #maxCharacters: number;
  #lines: TimedLine[] = [];
  #characters = 0;
  #folder: string | null = null;
  readonly #files: string[] = [];

  constructor(maxCharacters = MAX_CHARACTERS) {
    this.#maxCharacters = maxCharacters;
  }

  add(line: TimedLine): void {
    this.#lines.push(line);
    this.#characters += line.line.length;
    if (this.#characters >= this.#maxCharacters) this.#spill();
  }

  /** All lines in the order of their times. */
  async *sorted(): AsyncGenerator<TimedLine> {
    this.#lines.sort((one, other) => one.atMs - other.atMs);
    if (this.#files.length === 0) {
      yield* this.#lines;
      return;
    }
    this.#spill();
    yield* merge(this.#files);
  }

  /** Deletes the temporary files. */
  remove(): void {
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = null;
  }

  #spill(): void {
    if (this.#lines.length === 0) return;
    this.#folder ??= mkdtempSync(join(tmpdir(), 'lockgate-import-'));
    const file = join(this.#folder, `${this.#files.length}`);
    this.#lines.sort((one, other) => one.atMs - other.atMs);
    writeFileSync(file, this.#lines.map(({ atMs, line }) => `${atMs} ${line}\n`).join(''), { mode: 0o600 });
    this.#files.push(file);
    this.#lines = [];
    this.#characters = 0;
  }
}

/** Each file is sorted; of equal times the line of the earlier file comes first. */
async function* merge(files: readonly string[]): AsyncGenerator<TimedLine> {
  const readers = files.map((file) => createInterface({ input: createReadStream(file) })[Symbol.asyncIterator]());
  const heads: (TimedLine | null)[] = [];
  for (const reader of readers) heads.push(await nextLine(reader));
  for (;;) {
    let least = -1;
    for (let index = 0; index < heads.length; index++) {
      const [head, best] = [heads[index], least === -1 ? null : heads[least]];
      if (head != null && (best == null || head.atMs < best.atMs)) least = index;
    }
    if (least === -1) return;
    yield heads[least] as TimedLine;
    heads[least] = await nextLine(readers[least] as AsyncIterator<string>);
  }
}

async function nextLine(reader: AsyncIterator<string>): Promise<TimedLine | null> {
  const next = await reader.next();
  if (next.done === true) return null;
  const space = next.value.indexOf(' ');
  return { atMs: Number(next.value.slice(0, space)), line: next.value.slice(space + 1) };
}
