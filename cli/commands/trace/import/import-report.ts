/** Counts what an import did, and prints it: for people, or as JSON. */

import type { RecordedEvent, RowUnit } from '../../../recordings/recording.js';
import { print, printJson, printNote, sanitizeLine } from '../../../terminal/output.js';

/** Reasons come from a file only in part, so their number is limited. The remaining ones are counted together. */
const MAX_REASONS = 100;
const OTHER_REASONS = 'other reasons';
const MAX_NOTES = 20;
const MAX_DETAIL_CHARACTERS = 120;

interface Skipped {
  readonly reason: string;
  count: number;
  /** The first such row, and what is wrong with it. */
  readonly first: number;
  readonly detail: string | null;
}

/** What was read of one file. */
export class FileReport {
  readonly file: string;
  rows = 0;
  readonly #skipped = new Map<string, Skipped>();

  constructor(file: string) {
    this.file = file;
  }

  skip(reason: string, row: number, detail?: string): void {
    const key = this.#skipped.has(reason) || this.#skipped.size < MAX_REASONS ? reason : OTHER_REASONS;
    const known = this.#skipped.get(key);
    if (known !== undefined) known.count += 1;
    else this.#skipped.set(key, { reason: key, count: 1, first: row, detail: shortened(detail) });
  }

  /** The most frequent first. */
  skipped(): Skipped[] {
    return [...this.#skipped.values()].sort((one, other) => other.count - one.count);
  }
}

function shortened(detail: string | undefined): string | null {
  if (detail === undefined) return null;
  const line = sanitizeLine(detail);
  return line.length > MAX_DETAIL_CHARACTERS ? `${line.slice(0, MAX_DETAIL_CHARACTERS)}…` : line;
}

/** See the head of this file. */
export class ImportReport {
  readonly #from: string;
  readonly #unit: RowUnit;
  readonly #out: string | undefined;
  readonly #files: FileReport[] = [];
  readonly #events = { connect: 0, disconnect: 0, ping: 0, ack: 0, command: 0 };
  readonly #notes = new Set<string>();
  locks = 0;
  locksWithoutConnections = 0;
  numberedUplinks = 0;

  constructor(from: string, unit: RowUnit, out: string | undefined) {
    this.#from = from;
    this.#unit = unit;
    this.#out = out;
  }

  /** How many events were imported. */
  get events(): number {
    return Object.values(this.#events).reduce((sum, count) => sum + count, 0);
  }

  addFile(file: string): FileReport {
    const report = new FileReport(file);
    this.#files.push(report);
    return report;
  }

  count({ event }: RecordedEvent): void {
    this.#events[event.event] += 1;
  }

  addNote(sentence: string): void {
    if (this.#notes.size < MAX_NOTES) this.#notes.add(sentence);
  }

  /** Prints the report. It goes to stderr if the trace goes to stdout. */
  print(asJson: boolean): void {
    if (asJson) {
      printJson(this.#json());
      return;
    }
    const write = this.#out === undefined ? printNote : print;
    for (const line of this.lines()) write(line);
  }

  /** The report for people. */
  lines(): string[] {
    const { connect, disconnect, ping, ack, command } = this.#events;
    const rows = this.#files.reduce((sum, file) => sum + file.rows, 0);
    const parts = [
      counted(ping, 'ping'),
      counted(ack, 'acknowledgement'),
      counted(command, 'command'),
      counted(connect, 'connect'),
      counted(disconnect, 'disconnect'),
    ];
    const lines = [`${counted(rows, this.#unit)} read: ${parts.join(', ')} of ${counted(this.locks, 'lock')}.`];
    if (this.locksWithoutConnections > 0) {
      const locks = counted(this.locksWithoutConnections, 'lock');
      lines.push(`Connections of ${locks} are not in the recording: they are inferred from the uplinks.`);
    }
    if (this.numberedUplinks > 0) {
      const uplinks = counted(this.numberedUplinks, 'uplink');
      lines.push(`Boot and sequence of ${uplinks} are not in the recording: they are invented.`);
    }
    for (const sentence of this.#notes) lines.push(`Note: ${sanitizeLine(sentence)}.`);
    for (const file of this.#files) lines.push(...this.#skippedLines(file));
    return lines;
  }

  #skippedLines(file: FileReport): string[] {
    const skipped = file.skipped();
    if (skipped.length === 0) return [];
    const total = skipped.reduce((sum, { count }) => sum + count, 0);
    const lines = [`${file.file}: ${total.toLocaleString('en-US')} not imported:`];
    for (const { reason, count, first, detail } of skipped) {
      const where = `${this.#unit} ${first}${detail === null ? '' : `: ${detail}`}`;
      lines.push(`  ${count.toLocaleString('en-US')} × ${sanitizeLine(reason)} (first: ${where})`);
    }
    return lines;
  }

  #json(): object {
    return {
      from: this.#from,
      out: this.#out ?? null,
      files: this.#files.map((file) => ({
        file: file.file,
        unit: this.#unit,
        rows: file.rows,
        skipped: file.skipped(),
      })),
      locks: this.locks,
      events: this.#events,
      inferred: { locks_connected: this.locksWithoutConnections, uplinks_numbered: this.numberedUplinks },
      notes: [...this.#notes],
    };
  }
}

function counted(count: number, what: string): string {
  return `${count.toLocaleString('en-US')} ${what}${count === 1 ? '' : 's'}`;
}
