/**
 * `lockgate trace import`: reads recordings of other programs (cli/recordings) and writes one trace, in order of time.
 * Memory does not grow with the size of the recording, only with the number of locks.
 */
import { readFileSync } from 'node:fs';
import { LockgateError, type Result } from '../../../../proto/errors.js';
import { traceHeaderLine } from '../../../../proto/trace/writer.js';
import { type Mac, parseMac } from '../../../../proto/wire/mac.js';
import { AtRecording } from '../../../recordings/at-log/at-recording.js';
import { type ColumnMap, readColumnMap } from '../../../recordings/csv/column-map.js';
import { CsvRecording } from '../../../recordings/csv/csv-recording.js';
import { TRACCAR_MAP } from '../../../recordings/csv/traccar-map.js';
import { MosquittoRecording } from '../../../recordings/mosquitto/mosquitto-recording.js';
import { PcapRecording } from '../../../recordings/pcap/pcap-recording.js';
import { parseUtcOffset } from '../../../recordings/recorded-time.js';
import type {
  RecordingFault,
  RecordingOptions,
  RecordingReader,
  RecordingSink,
} from '../../../recordings/recording.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { type FileReport, ImportReport } from './import-report.js';
import { LineSorter } from './line-sorter.js';
import { RecordedLocks } from './recorded-locks.js';
import { displayName, readRecording } from './recording-file.js';
import { type StoredEvent, storedEvent, TraceCompleter } from './trace-completer.js';

/** The formats, by the name that `--from` takes. */
export const RECORDING_FORMATS = ['pcap', 'mosquitto-log', 'traccar-csv', 'csv', 'at-log'] as const;
/** The name of a format. */
export type RecordingFormat = (typeof RECORDING_FORMATS)[number];

/** The flags of `lockgate trace import`. */
export interface ImportFlags {
  readonly from: RecordingFormat;
  readonly map?: string;
  readonly mac?: string;
  readonly port: readonly number[];
  readonly utcOffset?: string;
  readonly out?: string;
  readonly json?: boolean;
}

/** The maximum size of a column map, which has a line for each column and each lock. */
const MAX_MAP_BYTES = 256 * 1024;

/**
 * Writes the trace and reports what was not imported.
 *
 * @throws LockgateError `input-…` for a wrong flag, a file that can't be read, or a recording without events
 */
export async function importRecordings(files: readonly string[], flags: ImportFlags): Promise<void> {
  if (flags.json && flags.out === undefined)
    throw new LockgateError(
      'input-flags',
      '--json prints the report where the trace would go: give --out FILE as well',
    );
  if (files.filter((file) => file === '-').length > 1)
    throw new LockgateError('input-flags', 'the standard input can be read only once: give - once');
  const reader = readerOf(flags);
  const report = new ImportReport(flags.from, reader.unit, flags.out);
  const locks = new RecordedLocks();
  const sorter = new LineSorter();
  const progress = new ProgressLine(() => `${report.events.toLocaleString('en-US')} events imported`);
  try {
    await readAll(files, reader, report, locks, sorter);
    if (report.events === 0) throw noEventsError(files, report);
    report.locks = locks.count;
    report.locksWithoutConnections = locks.countWithoutConnections;
    report.numberedUplinks = await writeTrace(sorter, locks, flags);
  } finally {
    progress.end();
    sorter.remove();
  }
  report.print(flags.json === true);
}

/** The parser of the recordings' format. @throws LockgateError `input-…` for a wrong flag */
function readerOf(flags: ImportFlags): RecordingReader {
  const { from, map, port } = flags;
  const options: RecordingOptions = { mac: macOf(flags.mac), utcOffsetMs: utcOffsetOf(flags.utcOffset) };
  if (map !== undefined && from !== 'csv' && from !== 'traccar-csv')
    throw new LockgateError('input-flags', `--map is for csv and traccar-csv, not for ${from}`);
  if (port.length > 0 && from !== 'pcap') throw new LockgateError('input-flags', `--port is for pcap, not for ${from}`);
  switch (from) {
    case 'pcap':
      return new PcapRecording(port, options.mac);
    case 'mosquitto-log':
      return new MosquittoRecording(options);
    case 'at-log':
      return new AtRecording(options);
    case 'traccar-csv':
      return new CsvRecording(map === undefined ? TRACCAR_MAP : readMap(map, TRACCAR_MAP), options);
    case 'csv':
      if (map === undefined)
        throw new LockgateError(
          'input-flags',
          '--from csv needs --map MAP.yaml: which columns hold what (docs/import.md)',
        );
      return new CsvRecording(readMap(map, null), options);
  }
}

function macOf(text: string | undefined): Mac | null {
  if (text === undefined) return null;
  const mac = parseMac(text);
  if (!mac.ok) throw new LockgateError('input-mac', mac.error.message);
  return mac.value;
}

/** The offset that the flag names, in ms; 0 without the flag. */
function utcOffsetOf(text: string | undefined): number {
  const offset = text === undefined ? 0 : parseUtcOffset(text);
  if (offset === undefined)
    throw new LockgateError('input-flags', `--utc-offset is "${text}": expected one such as +01:00`);
  return offset;
}

function readMap(file: string, base: ColumnMap | null): ColumnMap {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new LockgateError('input-file', `${file} can’t be read: ${(error as Error).message}`);
  }
  if (bytes.length > MAX_MAP_BYTES)
    throw new LockgateError('input-map', `${file} has ${bytes.length} bytes: expected at most ${MAX_MAP_BYTES}`);
  // A map (which has the member `row`), or a list of what is wrong with it.
  const map = readColumnMap(bytes.toString('utf8'), base);
  if ('row' in map) return map;
  throw new LockgateError('input-map', map.map(({ line, message }) => `${file}:${line}: ${message}`).join('; '));
}

/** Reads all files. Each event goes to the sorter as its line in the trace. */
async function readAll(
  files: readonly string[],
  reader: RecordingReader,
  report: ImportReport,
  locks: RecordedLocks,
  sorter: LineSorter,
): Promise<void> {
  const sinkOf = (file: FileReport): RecordingSink => ({
    event: (recorded) => {
      report.count(recorded);
      locks.note(recorded);
      sorter.add({ atMs: recorded.event.atMs, line: JSON.stringify(storedEvent(recorded)) });
    },
    skip: (reason, row, detail) => file.skip(reason, row, detail),
    note: (sentence) => report.addNote(sentence),
  });
  let current = report.addFile(displayName(files[0] as string));
  for (const [index, file] of files.entries()) {
    if (index > 0) current = report.addFile(displayName(file));
    const rows: Result<number, RecordingFault> = await reader.read(readRecording(file), sinkOf(current));
    if (!rows.ok) throw errorOf(current.file, rows.error);
    current.rows = rows.value;
  }
  const fault = reader.finish(sinkOf(current));
  if (fault !== null) throw errorOf(current.file, fault);
}

/** The error for a recording that can't be read further, such as `sub.log:12: …` for `at` "line 12". */
function errorOf(file: string, { at, message }: RecordingFault): LockgateError {
  const line = /^line (\d+)$/.exec(at)?.[1];
  return new LockgateError('input-recording', `${file}:${line ?? ` ${at}`}: ${message}`);
}

function noEventsError(files: readonly string[], report: ImportReport): LockgateError {
  // The first line only says that no events were read.
  const [, ...details] = report.lines();
  const hint = details.map((line) => ` ${line.trim()}`).join('');
  const message = `${files.map(displayName).join(', ')}: no event of a lock was found, so no trace is written.${hint}`;
  return new LockgateError('input-recording', message);
}

/**
 * Writes the sorted events with what the recording lacks. Returns how many uplinks (messages of locks) got invented
 * numbers.
 */
async function writeTrace(sorter: LineSorter, locks: RecordedLocks, { from, out }: ImportFlags): Promise<number> {
  const lines = new LineSink(out);
  try {
    lines.write(traceHeaderLine(locks.header(`imported from ${from}`)));
    const completer = new TraceCompleter(locks, (line) => lines.write(line));
    for await (const { line } of sorter.sorted()) completer.event(JSON.parse(line) as StoredEvent);
    completer.end();
    return completer.numberedUplinks;
  } finally {
    lines.end();
  }
}
