/** `lockgate trace diff`: reads two traces side by side in order of time, and prints their differences. */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { type Difference, type DiffRow, type Side, TraceDiff } from '../../../../proto/trace/diff/trace-diff.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import { paint, print, printJson, sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { readMac } from '../../../terminal/shared-flags.js';
import { printTable } from '../../../terminal/table.js';
import { type LinedEvent, traceEvents } from './event-stream.js';

/** The flags of `lockgate trace diff`. */
export interface DiffFlags {
  /** The greatest difference between two times that count as the same, such as `5s`. */
  readonly tolerance: string;
  /** Pairs of locks, `MAC=MAC`: one of the first trace, and the one of the second trace to compare it with. */
  readonly mutual: readonly string[];
  /** False with `--no-values`: uplinks (messages of locks) are not compared by their values. */
  readonly values: boolean;
  readonly json?: boolean;
}

/** The maximum number of rows (a lock and a reason each) that the table shows; `--json` has all. */
const MAX_PRINTED_ROWS = 50;

/**
 * Prints the differences between the trace files `a` and `b`. Exit code 1 if there are any.
 *
 * @throws LockgateError `input-…` for a wrong flag, or a file that can't be read
 */
export async function diffTraces(a: string, b: string, flags: DiffFlags): Promise<void> {
  if (a === '-' && b === '-')
    throw new LockgateError('input-file', 'both traces are the standard input: expected a file for one of them');
  const toleranceMs = readTolerance(flags.tolerance);
  const diff = new TraceDiff({ toleranceMs, pairs: readPairs(flags.mutual), values: flags.values });
  let events = 0;
  const progress = new ProgressLine(() => `${events.toLocaleString('en-US')} events compared`);
  try {
    for await (const [side, { event, line }] of sideBySide(a, b)) {
      diff.add(side, event, line);
      events += 1;
    }
  } finally {
    progress.end();
  }
  diff.finish();
  const rows = diff.rows();
  const differing = rows.filter(({ first }) => first !== null);
  if (differing.length > 0) process.exitCode = EXIT_CODE.negativeAnswer;
  if (flags.json) printJson(toJson(a, b, diff, rows));
  else printReport(a, b, rows, differing);
}

/** The events of both traces in order of time; at the same time, those of A first. */
async function* sideBySide(a: string, b: string): AsyncGenerator<[Side, LinedEvent]> {
  const streams = { a: traceEvents(a), b: traceEvents(b) };
  const batches: Record<Side, { events: readonly LinedEvent[]; next: number }> = {
    a: { events: [], next: 0 },
    b: { events: [], next: 0 },
  };
  // The next event of a trace, without consuming it; reads the next batch if necessary.
  const peek = async (side: Side): Promise<LinedEvent | undefined> => {
    const batch = batches[side];
    if (batch.next >= batch.events.length) {
      const { done, value } = await streams[side].next();
      batch.events = done === true ? [] : value;
      batch.next = 0;
    }
    return batch.events[batch.next];
  };
  for (;;) {
    const [nextOfA, nextOfB] = [await peek('a'), await peek('b')];
    if (nextOfA === undefined && nextOfB === undefined) return;
    const isAFirst = nextOfB === undefined || (nextOfA !== undefined && nextOfA.event.atMs <= nextOfB.event.atMs);
    const side: Side = isAFirst ? 'a' : 'b';
    batches[side].next += 1;
    yield [side, (isAFirst ? nextOfA : nextOfB) as LinedEvent];
  }
}

const UNITS_MS: Readonly<Record<string, Milliseconds>> = {
  ms: 1,
  s: Seconds(1),
  m: Minutes(1),
  min: Minutes(1),
  h: Hours(1),
};

function readTolerance(text: string): Milliseconds {
  const match = /^(\d{1,7}(?:\.\d{1,3})?) ?(ms|s|m|min|h)?$/.exec(text);
  if (match !== null) return Number(match[1]) * (UNITS_MS[match[2] ?? 's'] ?? 1);
  throw new LockgateError(
    'input-tolerance',
    `--tolerance is ${JSON.stringify(text)}: expected a span such as 5s, 500ms or 2m`,
  );
}

/** The pairs of locks that --mutual compares. */
function readPairs(texts: readonly string[]): Map<Mac, Mac> {
  const pairs = new Map<Mac, Mac>();
  for (const text of texts) {
    const [ofA, ofB, ...more] = text.split('=');
    if (ofA === undefined || ofB === undefined || more.length > 0)
      throw new LockgateError('input-mutual', `--mutual is ${JSON.stringify(text)}: expected MAC=MAC`);
    const [macA, macB] = [readMac(ofA), readMac(ofB)];
    if (pairs.has(macA) || [...pairs.values()].includes(macB))
      throw new LockgateError('input-mutual', `--mutual ${text}: a lock is already paired with another one`);
    pairs.set(macA, macB);
  }
  return pairs;
}

function printReport(a: string, b: string, rows: readonly DiffRow[], differing: readonly DiffRow[]): void {
  const { same, onlyA, onlyB, values } = totalOf(rows);
  const first = differing[0]?.first;
  if (first === undefined || first === null) {
    print(paint('green', `No differences: both traces have the same ${same.toLocaleString('en-US')} events.`));
    return;
  }
  const count = (number: number): string => number.toLocaleString('en-US');
  const counts = [`${count(onlyA)} only in A`, `${count(onlyB)} only in B`, `${count(values)} with other values`];
  print(sanitizeLine(`A is ${a}, B is ${b}.`));
  print(paint('yellow', `Events: ${counts.join(', ')}; ${count(same)} are the same.`));
  print(`First difference: ${describe(first, a, b)}`);
  printTable(differing.slice(0, MAX_PRINTED_ROWS), [
    { title: 'LOCK', show: ({ mac }) => mac, neverCut: true },
    { title: 'REASON', show: ({ what }) => what },
    { title: 'ONLY A', show: ({ onlyA }) => countText(onlyA) },
    { title: 'ONLY B', show: ({ onlyB }) => countText(onlyB) },
    { title: 'VALUES', show: ({ values }) => countText(values) },
    { title: 'SAME', show: ({ same }) => countText(same), optional: true },
    // Each row of this table has a difference.
    { title: 'FIRST', show: ({ first }) => timeAndLines(first as Difference), optional: true },
  ]);
  const hidden = differing.length - MAX_PRINTED_ROWS;
  if (hidden > 0) print(`and ${hidden} more; --json has all`);
}

/** A count, or nothing for zero. */
function countText(count: number): string {
  return count === 0 ? '' : count.toLocaleString('en-US');
}

/** A difference as a sentence. */
function describe(
  { kind, mac, what, pingType, timeMs, lineA, lineB, values }: Difference,
  a: string,
  b: string,
): string {
  const event = pingType === null ? what : `${pingType} ${what}`;
  const text = `${dateOf(timeMs) ?? timeMs} ${mac} ${event}`;
  if (kind === 'only-a') return sanitizeLine(`${a}:${lineA}: ${text} is not in ${b}`);
  if (kind === 'only-b') return sanitizeLine(`${b}:${lineB}: ${text} is not in ${a}`);
  const changes = Object.entries(values).map(([name, [valueA, valueB]]) => {
    return `${name} ${JSON.stringify(valueA)}, not ${JSON.stringify(valueB)}`;
  });
  return sanitizeLine(`${a}:${lineA}: ${text} has ${changes.join('; ')} as in ${b}:${lineB}`);
}

function timeAndLines({ timeMs, lineA, lineB }: Difference): string {
  const lines = [lineA === null ? '' : `A:${lineA}`, lineB === null ? '' : `B:${lineB}`].filter((text) => text !== '');
  return `${dateOf(timeMs) ?? timeMs} ${lines.join(' ')}`;
}

function dateOf(timeMs: number): string | null {
  return isDatable(timeMs) ? formatDate(timeMs) : null;
}

function totalOf(rows: readonly DiffRow[]): Pick<DiffRow, 'same' | 'onlyA' | 'onlyB' | 'values'> {
  const total = { same: 0, onlyA: 0, onlyB: 0, values: 0 };
  for (const row of rows) {
    total.same += row.same;
    total.onlyA += row.onlyA;
    total.onlyB += row.onlyB;
    total.values += row.values;
  }
  return total;
}

function toJson(a: string, b: string, diff: TraceDiff, rows: readonly DiffRow[]): object {
  const counts = ({ same, onlyA, onlyB, values }: Pick<DiffRow, 'same' | 'onlyA' | 'onlyB' | 'values'>): object => {
    return { same, only_a: onlyA, only_b: onlyB, values };
  };
  const differences = diff.differences().map(differenceToJson);
  return {
    a,
    b,
    same: rows.every(({ first }) => first === null),
    events: counts(totalOf(rows)),
    rows: rows.map((row) => ({
      mac: row.mac,
      reason: row.what,
      ...counts(row),
      first: row.first === null ? null : differenceToJson(row.first),
    })),
    differences,
    truncated: diff.isTruncated,
  };
}

function differenceToJson({ kind, mac, what, pingType, timeMs, lineA, lineB, values }: Difference): object {
  const location = { date: dateOf(timeMs), line_a: lineA, line_b: lineB };
  const pairs = Object.entries(values).map(([name, [a, b]]) => [name, { a, b }]);
  return {
    kind: kind.replace('-', '_'),
    mac,
    reason: what,
    ping_type: pingType,
    ...location,
    values: Object.fromEntries(pairs),
  };
}
