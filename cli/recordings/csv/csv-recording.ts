/** Reads CSV files by a map of columns (column-map.ts): one event a row, the first row is the header. */
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { ok, type Result } from '../../../proto/errors.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { RecordingFault, RecordingOptions, RecordingReader, RecordingSink } from '../recording.js';
import type { ColumnMap, ColumnRule } from './column-map.js';
import { RowReader } from './row-event.js';

const MAX_ROW_CHARACTERS = 64 * 1024;
/** An error about a missing column names so many of the file's columns. */
const MAX_NAMED_COLUMNS = 30;
const NOT_CSV = 'a row that is not CSV';

interface CsvRow {
  readonly info: { readonly lines: number };
  readonly record: readonly string[];
}

/** See the head of this file. */
export class CsvRecording implements RecordingReader {
  readonly unit = 'line';
  readonly #map: ColumnMap;
  readonly #options: RecordingOptions;
  readonly #invented = new Set<string>();

  constructor(map: ColumnMap, options: RecordingOptions) {
    this.#map = map;
    this.#options = options;
  }

  async read(chunks: AsyncIterable<Uint8Array>, sink: RecordingSink): Promise<Result<number, RecordingFault>> {
    const parser = parse({
      bom: true,
      delimiter: this.#map.delimiter,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      skip_records_with_error: true,
      max_record_size: MAX_ROW_CHARACTERS,
      on_skip: (error) => {
        const line = error instanceof CsvError && typeof error.lines === 'number' ? error.lines : 1;
        sink.skip(NOT_CSV, line, error?.message);
        return undefined;
      },
    });
    const source = Readable.from(chunks);
    // The error of the caller's file, which the caller reports.
    let failure: unknown = null;
    source.on('error', (error) => {
      failure = error;
      parser.destroy(error);
    });
    let reader: Rows | null = null;
    try {
      for await (const { info, record } of source.pipe(parser) as AsyncIterable<CsvRow>) {
        if (reader !== null) reader.read(record, info.lines);
        else {
          const begun = this.#begin(record, info.lines, sink);
          if (!begun.ok) return begun;
          reader = begun.value;
        }
      }
    } catch (error) {
      if (failure !== null || !(error instanceof CsvError)) throw error;
      sink.skip(NOT_CSV, typeof error.lines === 'number' ? error.lines : 1, error.message);
    } finally {
      source.destroy();
    }
    if (reader === null)
      return { ok: false, error: { at: 'line 1', message: 'the file has no header: expected columns' } };
    return ok(parser.info.lines);
  }

  finish(): null {
    return null;
  }

  #begin(header: readonly string[], line: number, sink: RecordingSink): Result<Rows, RecordingFault> {
    const columns = new Map(header.map((name, index) => [name.trim(), index]));
    const rules: readonly (ColumnRule | undefined)[] = [
      ...Object.values(this.#map.row),
      ...Object.values(this.#map.ping),
    ];
    for (const rule of rules) {
      if (rule === undefined || rule.isOptional || rule.column === null || columns.has(rule.column)) continue;
      const named = [...columns.keys()].slice(0, MAX_NAMED_COLUMNS).join(', ');
      const message = `there is no column ${JSON.stringify(rule.column)}: expected it among ${named}`;
      return { ok: false, error: { at: `line ${line}`, message } };
    }
    const reader = new RowReader(this.#map, this.#options, columns, (name, mac) => {
      if (this.#invented.has(name)) return;
      this.#invented.add(name);
      sink.note(`device ${name} is ${formatMac(mac)} in the trace: give its MAC with --map or --mac`);
    });
    const { unquotedColumn } = this.#map;
    const unquoted = unquotedColumn === null ? undefined : columns.get(unquotedColumn);
    return ok(new Rows(reader, header.length, unquoted, sink));
  }
}

/** The rows below a header. */
class Rows {
  readonly #reader: RowReader;
  readonly #columns: number;
  readonly #unquoted: number | undefined;
  readonly #sink: RecordingSink;

  /** @param unquoted the index of the column whose cells may contain delimiters */
  constructor(reader: RowReader, columns: number, unquoted: number | undefined, sink: RecordingSink) {
    this.#reader = reader;
    this.#columns = columns;
    this.#unquoted = unquoted;
    this.#sink = sink;
  }

  read(record: readonly string[], line: number): void {
    const event = this.#reader.read(this.#joined(record));
    if (event.ok) this.#sink.event(event.value);
    else this.#sink.skip(event.error.code, line, event.error.message);
  }

  /** Joins the cells that an unquoted column was split into. */
  #joined(record: readonly string[]): readonly string[] {
    const surplus = record.length - this.#columns;
    if (this.#unquoted === undefined || surplus <= 0) return record;
    const end = this.#unquoted + 1 + surplus;
    return [...record.slice(0, this.#unquoted), record.slice(this.#unquoted, end).join(','), ...record.slice(end)];
  }
}
