/**
 * Counts what an import read, skipped and inferred, and prints the counts for people or as JSON. A row is a line or a
 * packet of the recording, depending on the format.
 */

import type { RecordedEvent, RowUnit } from '../../../recordings/recording.js';
import { print, printJson, printNote, sanitizeLine } from '../../../terminal/output.js';

/**
 * The maximum number of reasons for skipping, which may contain text from the recording. Further reasons are counted
 * together.
 */
const MAX_REASONS = 100;
const OTHER_REASONS = 'other reasons';
/** The maximum number of notes, and the maximum length of a detail from the recording. */
const MAX_NOTES = 20;
const MAX_DETAIL_CHARACTERS = 120;

/** The rows that were skipped for one reason. */
interface SkippedRows {
  readonly reason: string;
  count: number;
  /** The number of the first such row, and what is wrong with it. */
  readonly first: number;
  readonly detail: string | null;
}

/** What was read of one file. */
export class FileReport {
  readonly file: string;
  rows = 0;
  readonly #skipped = new Map<string, SkippedRows>();

  constructor(file: string) {
    this.file = file;
  }

  /** Counts a row that was not imported. */
  skip(reason: string, row: number, detail?: string): void {
    const key = this.#skipped.has(reason) || this.#skipped.size < MAX_REASONS ? reason : OTHER_REASONS;
    const skippedRows = this.#skipped.get(key);
    if (skippedRows !== undefined) skippedRows.count += 1;
    else this.#skipped.set(key, { reason: key, count: 1, first: row, detail: shortenDetail(detail) });
  }

  /** The skipped rows by reason, the most frequent reason first. */
  skipped(): SkippedRows[] {
    return [...this.#skipped.values()].sort((a, b) => b.count - a.count);
  }
}

function shortenDetail(detail: string | undefined): string | null {
  if (detail === undefined) return null;
  const line = sanitizeLine(detail);
  return line.length > MAX_DETAIL_CHARACTERS ? `${line.slice(0, MAX_DETAIL_CHARACTERS)}…` : line;
}

/** What was read of all files. */
export class ImportReport {
  readonly #from: string;
  readonly #unit: RowUnit;
  readonly #out: string | undefined;
  readonly #files: FileReport[] = [];
  readonly #events = { connect: 0, disconnect: 0, ping: 0, ack: 0, command: 0 };
  readonly #notes = new Set<string>();
  locks = 0;
  /** Locks whose connects and disconnects are inferred. */
  locksWithoutConnections = 0;
  /** Uplinks (messages of locks) whose boot and sequence numbers are invented. */
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
      countText(ping, 'ping'),
      countText(ack, 'acknowledgement'),
      countText(command, 'command'),
      countText(connect, 'connect'),
      countText(disconnect, 'disconnect'),
    ];
    const lines = [`${countText(rows, this.#unit)} read: ${parts.join(', ')} of ${countText(this.locks, 'lock')}.`];
    if (this.locksWithoutConnections > 0) {
      const locks = countText(this.locksWithoutConnections, 'lock');
      lines.push(`Connections of ${locks} are not in the recording: they are inferred from the uplinks.`);
    }
    if (this.numberedUplinks > 0) {
      const uplinks = countText(this.numberedUplinks, 'uplink');
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
      const firstRow = `${this.#unit} ${first}${detail === null ? '' : `: ${detail}`}`;
      lines.push(`  ${count.toLocaleString('en-US')} × ${sanitizeLine(reason)} (first: ${firstRow})`);
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

function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
