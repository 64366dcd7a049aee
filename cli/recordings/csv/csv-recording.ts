/** Reads CSV files by a column map (column-map.ts). Each row is an event; the first row is the header. */
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { ok, type Result } from '../../../proto/errors.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { RecordingFault, RecordingOptions, RecordingReader, RecordingSink } from '../recording.js';
import type { ColumnMap, ColumnRule } from './column-map.js';
import { RowReader } from './row-event.js';

const MAX_ROW_CHARACTERS = 64 * 1024;
/** The maximum number of the file's columns that the error about a missing column names. */
const MAX_NAMED_COLUMNS = 30;
const NOT_CSV = 'a row that is not CSV';

/** A row of csv-parse with the number of its line. */
interface CsvRow {
  readonly info: { readonly lines: number };
  readonly record: readonly string[];
}

/** Reads CSV files. */
export class CsvRecording implements RecordingReader {
  readonly unit = 'line';
  readonly #map: ColumnMap;
  readonly #options: RecordingOptions;
  /** Device names for which a MAC was invented and reported. */
  readonly #reportedNames = new Set<string>();

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
    // An error of reading the caller's file: it is thrown, so that the caller reports it.
    let readError: unknown = null;
    source.on('error', (error) => {
      readError = error;
      parser.destroy(error);
    });
    let rows: RowsBelowHeader | null = null;
    try {
      for await (const { info, record } of source.pipe(parser) as AsyncIterable<CsvRow>) {
        if (rows !== null) rows.read(record, info.lines);
        else {
          const rowsBelowHeader = this.#readHeader(record, info.lines, sink);
          if (!rowsBelowHeader.ok) return rowsBelowHeader;
          rows = rowsBelowHeader.value;
        }
      }
    } catch (error) {
      if (readError !== null || !(error instanceof CsvError)) throw error;
      sink.skip(NOT_CSV, typeof error.lines === 'number' ? error.lines : 1, error.message);
    } finally {
      source.destroy();
    }
    if (rows === null)
      return { ok: false, error: { at: 'line 1', message: 'the file has no header: expected columns' } };
    return ok(parser.info.lines);
  }

  finish(): null {
    return null;
  }

  /** Finds the map's columns in the header. */
  #readHeader(header: readonly string[], line: number, sink: RecordingSink): Result<RowsBelowHeader, RecordingFault> {
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
      if (this.#reportedNames.has(name)) return;
      this.#reportedNames.add(name);
      sink.note(`device ${name} is ${formatMac(mac)} in the trace: give its MAC with --map or --mac`);
    });
    const { unquotedColumn } = this.#map;
    const unquotedIndex = unquotedColumn === null ? undefined : columns.get(unquotedColumn);
    const unquoted = unquotedIndex === undefined ? null : { index: unquotedIndex, delimiter: this.#map.delimiter };
    return ok(new RowsBelowHeader(reader, header.length, unquoted, sink));
  }
}

/** The column whose cells may contain delimiters without quotes. */
interface UnquotedColumn {
  readonly index: number;
  readonly delimiter: string;
}

/** Turns the rows below a header into events. */
class RowsBelowHeader {
  readonly #reader: RowReader;
  readonly #columnCount: number;
  readonly #unquoted: UnquotedColumn | null;
  readonly #sink: RecordingSink;

  constructor(reader: RowReader, columnCount: number, unquoted: UnquotedColumn | null, sink: RecordingSink) {
    this.#reader = reader;
    this.#columnCount = columnCount;
    this.#unquoted = unquoted;
    this.#sink = sink;
  }

  read(record: readonly string[], line: number): void {
    const event = this.#reader.read(this.#joinCells(record));
    if (event.ok) this.#sink.event(event.value);
    else this.#sink.skip(event.error.code, line, event.error.message);
  }

  /** Joins the cells that an unquoted column was split into. */
  #joinCells(record: readonly string[]): readonly string[] {
    const surplus = record.length - this.#columnCount;
    if (this.#unquoted === null || surplus <= 0) return record;
    const { index: start, delimiter } = this.#unquoted;
    const end = start + 1 + surplus;
    return [...record.slice(0, start), record.slice(start, end).join(delimiter), ...record.slice(end)];
  }
}
