/** Counts the evidence and the findings of each row. Bounded: it keeps only the first lines of each. */
import type { CertificateRow, JudgedRow, RowFinding, RowVerdict } from './row.js';

/** Lines and findings that a certificate names for each row. */
const MAX_REFERENCES = 5;

interface Counts {
  seen: number;
  readonly lines: string[];
  failures: number;
  readonly firstFailures: RowFinding[];
  noted: number;
  readonly firstNoted: RowFinding[];
}

/** See the head of this file. */
export class Tally {
  readonly #counts = new Map<string, Counts>();

  see(row: string, file: string, line: number): void {
    this.seeMany(row, file, 1, [line]);
  }

  /** Counts `seen` times; `lines` are the first of them. */
  seeMany(row: string, file: string, seen: number, lines: readonly number[]): void {
    const counts = this.#of(row);
    counts.seen += seen;
    for (const line of lines) {
      if (counts.lines.length >= MAX_REFERENCES) return;
      counts.lines.push(`${file}:${line}`);
    }
  }

  fail(row: string, found: RowFinding): void {
    const counts = this.#of(row);
    counts.failures += 1;
    if (counts.firstFailures.length < MAX_REFERENCES) counts.firstFailures.push(found);
  }

  noteWarning(row: string, found: RowFinding): void {
    const counts = this.#of(row);
    counts.noted += 1;
    if (counts.firstNoted.length < MAX_REFERENCES) counts.firstNoted.push(found);
  }

  /** Adds the counts of another tally to this one. */
  add(other: Tally): void {
    for (const [row, theirs] of other.#counts) {
      const counts = this.#of(row);
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

  #of(row: string): Counts {
    let counts = this.#counts.get(row);
    if (counts === undefined) {
      counts = newCounts();
      this.#counts.set(row, counts);
    }
    return counts;
  }
}

function newCounts(): Counts {
  return { seen: 0, lines: [], failures: 0, firstFailures: [], noted: 0, firstNoted: [] };
}

function fill<T>(target: T[], source: readonly T[]): void {
  target.push(...source.slice(0, MAX_REFERENCES - target.length));
}
