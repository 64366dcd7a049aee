/**
 * Counts the evidence and the findings for each row of a certificate (row.ts). Bounded: it stores only the first lines
 * and findings of each row. Does no I/O.
 */
import type { CertificateRow, JudgedRow, RowFinding, RowVerdict } from './row.js';

/** The maximum number of lines, and of findings, that a certificate names for each row. */
const MAX_REFERENCES = 5;

interface Counts {
  seen: number;
  readonly lines: string[];
  failures: number;
  readonly firstFailures: RowFinding[];
  noted: number;
  readonly firstNoted: RowFinding[];
}

/** See the top of this file. */
export class Tally {
  readonly #counts = new Map<string, Counts>();

  /** Counts a line that shows the row to hold. */
  see(rowId: string, file: string, line: number): void {
    this.seeMany(rowId, file, 1, [line]);
  }

  /** The same for several lines: `seen` is their number, `lines` are the first of them. */
  seeMany(rowId: string, file: string, seen: number, lines: readonly number[]): void {
    const counts = this.#of(rowId);
    counts.seen += seen;
    for (const line of lines) {
      if (counts.lines.length >= MAX_REFERENCES) return;
      counts.lines.push(`${file}:${line}`);
    }
  }

  /** Counts a finding that makes the row fail. */
  fail(rowId: string, found: RowFinding): void {
    const counts = this.#of(rowId);
    counts.failures += 1;
    if (counts.firstFailures.length < MAX_REFERENCES) counts.firstFailures.push(found);
  }

  /** Counts a warning that the row lists without failing. */
  noteWarning(rowId: string, found: RowFinding): void {
    const counts = this.#of(rowId);
    counts.noted += 1;
    if (counts.firstNoted.length < MAX_REFERENCES) counts.firstNoted.push(found);
  }

  /** Adds the counts of another tally to this one. */
  add(other: Tally): void {
    for (const [rowId, theirs] of other.#counts) {
      const counts = this.#of(rowId);
      counts.seen += theirs.seen;
      counts.failures += theirs.failures;
      counts.noted += theirs.noted;
      fill(counts.lines, theirs.lines);
      fill(counts.firstFailures, theirs.firstFailures);
      fill(counts.firstNoted, theirs.firstNoted);
    }
  }

  /** The row with its verdict: a finding makes it fail, and without evidence it is not seen. */
  verdictOn(row: CertificateRow): JudgedRow {
    const counts = this.#counts.get(row.row) ?? newCounts();
    const verdict: RowVerdict = counts.failures > 0 ? 'FAIL' : counts.seen > 0 ? 'PASS' : 'NOT SEEN';
    return { ...row, verdict, ...counts };
  }

  #of(rowId: string): Counts {
    let counts = this.#counts.get(rowId);
    if (counts === undefined) {
      counts = newCounts();
      this.#counts.set(rowId, counts);
    }
    return counts;
  }
}

function newCounts(): Counts {
  return { seen: 0, lines: [], failures: 0, firstFailures: [], noted: 0, firstNoted: [] };
}

/** Appends entries up to the limit. */
function fill<T>(target: T[], source: readonly T[]): void {
  target.push(...source.slice(0, MAX_REFERENCES - target.length));
}
