/** What every form of the report of `trace check` prints. */
import type { FileReport } from '../checked-file.js';
import type { RequiredRow } from '../required-rows.js';

export interface Report {
  /** In the order of the command line. */
  readonly files: readonly FileReport[];
  readonly violations: number;
  readonly warnings: number;
  readonly failOn: 'violation' | 'warning';
  /** Undefined if the user did not say whether there should be a summary. */
  readonly summary: boolean | undefined;
  readonly hasBaseline: boolean;
  /** What all files together show of the rows that `--require` names; empty without it. */
  readonly required: readonly RequiredRow[];
}

/** Prints a report to the standard output, finding by finding: there may be more than fit into memory. */
export type ReportFormat = (report: Report) => Promise<void>;

/** Findings that the baseline left out. */
export function knownFindings({ files }: Report): number {
  return files.reduce((sum, { findings }) => sum + findings.known, 0);
}

/** A number and a noun, such as `1,204 pings`. */
export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
