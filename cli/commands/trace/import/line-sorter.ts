/**
 * Sorts lines by time in limited memory. A recording may list one lock after the other, so an event can be far from its
 * place in the order of time. Whenever the lines in memory reach the limit they are sorted and written to a temporary
 * file; at the end the files are merged. Lines of the same time keep their order.
 */
import { createReadStream, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTemporaryFolder } from '../../../../gateway/temporary-folder.js';

/** The maximum number of characters in memory. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** A line and its time, ms since the epoch. The line has no `\n`. */
export interface TimedLine {
  readonly atMs: number;
  readonly line: string;
}

/** Collects lines and returns them sorted. Callers must call {@link remove} at the end. */
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
    this.#lines.sort((a, b) => a.atMs - b.atMs);
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

  /** Writes the lines in memory to a temporary file, sorted. */
  #spill(): void {
    if (this.#lines.length === 0) return;
    this.#folder ??= makeTemporaryFolder('import');
    const file = join(this.#folder, `${this.#files.length}`);
    this.#lines.sort((a, b) => a.atMs - b.atMs);
    writeFileSync(file, this.#lines.map(({ atMs, line }) => `${atMs} ${line}\n`).join(''), { mode: 0o600 });
    this.#files.push(file);
    this.#lines = [];
    this.#characters = 0;
  }
}

/** Merges sorted files. For equal times, the line of the earlier file comes first. */
async function* merge(files: readonly string[]): AsyncGenerator<TimedLine> {
  const readers = files.map(linesOf);
  // The next line of each file; null at the file's end.
  const nextLines: (TimedLine | null)[] = [];
  for (const reader of readers) nextLines.push(await nextLine(reader));
  for (;;) {
    let earliest = -1;
    for (let index = 0; index < nextLines.length; index++) {
      const [line, earliestLine] = [nextLines[index], earliest === -1 ? null : nextLines[earliest]];
      if (line != null && (earliestLine == null || line.atMs < earliestLine.atMs)) earliest = index;
    }
    if (earliest === -1) return;
    yield nextLines[earliest] as TimedLine;
    nextLines[earliest] = await nextLine(readers[earliest] as AsyncIterator<string>);
  }
}

/** The lines of a file that {@link LineSorter} wrote. Node's readline would also end them at `\r` and U+2028. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

async function nextLine(reader: AsyncIterator<string>): Promise<TimedLine | null> {
  const next = await reader.next();
  if (next.done === true) return null;
  const space = next.value.indexOf(' ');
  return { atMs: Number(next.value.slice(0, space)), line: next.value.slice(space + 1) };
}
