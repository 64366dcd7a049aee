/**
 * The flag `--require` of `trace check`: rows of the certificate (docs/certificate.md) that the traces must show. A row
 * is one requirement on a lock's firmware, such as `theft-gps-mid`. All files of the command count together, because a
 * test bench records each function of a lock in a separate trace.
 */
import { didYouMean } from '../../../../proto/did-you-mean.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { CertificateMaker } from '../../../../proto/trace/certificate/certificate.js';
import type { JudgedRow, RowVerdict } from '../../../../proto/trace/certificate/row.js';
import { certificateRows, rowsNamed } from '../../../../proto/trace/certificate/rows.js';
import type { TraceObserver } from './observer.js';

/** A row that was required, and what the traces show of it. */
export interface RequiredRow {
  /** As the user named it: the id of a row, or the id without its power state, which names the row of every state. */
  readonly row: string;
  /** For a name that stands for several rows: FAIL if one failed, otherwise PASS if one was seen to hold. */
  readonly verdict: RowVerdict;
  /** How often the traces show the row. */
  readonly seen: number;
  /** The first lines that show the row, as `FILE:LINE`. */
  readonly lines: readonly string[];
  /** What a lock must do to show the row. */
  readonly seenWhen: string;
}

/** Whether the traces show the row and break no rule that belongs to it. */
export function isMet({ verdict }: RequiredRow): boolean {
  return verdict === 'PASS';
}

/** A sentence about a required row that is not met. */
export function describeUnmet({ row, verdict, seenWhen }: RequiredRow): string {
  if (verdict === 'FAIL') return `${row} is required and failed: a rule that belongs to it was broken.`;
  return `${row} is required and was not seen: the traces have no evidence of it (${seenWhen}).`;
}

/** Collects from the traces what they show of the required rows. */
export class RequiredRows {
  readonly #names: readonly string[];
  readonly #maker: CertificateMaker;

  /**
   * @param lists the values of the flag: ids separated by commas
   * @param ignored rules whose findings do not count
   * @throws LockgateError `input-row` for an unknown id
   */
  constructor(lists: readonly string[], ignored: readonly string[]) {
    const ids = lists.flatMap((list) => list.split(',')).map((id) => id.trim());
    this.#names = [...new Set(ids.filter((id) => id !== ''))];
    const rows = certificateRows(POWER_MODEL);
    for (const name of this.#names) {
      if (rowsNamed(rows, name).length > 0) continue;
      const suggestion = didYouMean(
        name,
        rows.map(({ row }) => row),
      );
      throw new LockgateError('input-row', `there is no row ${name}: docs/certificate.md lists them.${suggestion}`);
    }
    const everyFirmware = null;
    this.#maker = new CertificateMaker(POWER_MODEL, everyFirmware, ignored);
  }

  /** Follows one file. The file must be read to its end before the next observer is used. */
  observerOf(file: string): TraceObserver {
    const maker = this.#maker;
    return {
      header: (header) => maker.start(file, header),
      // The error of an event of the world that can't be read is ignored here: the observer of --world reports it.
      event: (event, line) => void maker.judge(event, line),
      // Nobody sees the certificate, so the file's SHA-256 is not computed.
      end: () => maker.finish(''),
    };
  }

  /** What all files show of each required row, in the order of the flag. */
  results(): RequiredRow[] {
    // The argument would be the version of lockgate that the certificate states.
    const { rows } = this.#maker.certificate('');
    return this.#names.map((name) => resultOf(name, rowsNamed(rows, name)));
  }
}

/** Combines the rows that one name stands for. */
function resultOf(row: string, rows: readonly JudgedRow[]): RequiredRow {
  const verdicts = rows.map(({ verdict }) => verdict);
  const verdict = verdicts.includes('FAIL') ? 'FAIL' : verdicts.includes('PASS') ? 'PASS' : 'NOT SEEN';
  return {
    row,
    verdict,
    seen: rows.reduce((sum, { seen }) => sum + seen, 0),
    lines: rows.flatMap(({ lines }) => lines),
    seenWhen: rows[0]?.seenWhen ?? '',
  };
}
