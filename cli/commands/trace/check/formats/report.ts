/** The content of the report of `trace check`, which each format (text, JSON, JUnit, GitHub, HTML) prints. */
import type { FileReport } from '../checked-file.js';
import type { RequiredRow } from '../required-rows.js';

/** The results of all files. */
export interface Report {
  /** In the order of the command line. */
  readonly files: readonly FileReport[];
  readonly violations: number;
  readonly warnings: number;
  readonly failOn: 'violation' | 'warning';
  /** Whether to print a summary; undefined without --summary and --no-summary. */
  readonly summary: boolean | undefined;
  /** Whether findings that the file of `--baseline` lists are left out. */
  readonly hasBaseline: boolean;
  /** What all files together show of the rows of the certificate that `--require` names; empty without that flag. */
  readonly required: readonly RequiredRow[];
}

/** Prints a report to the standard output, finding by finding: there may be more than fit into memory. */
export type ReportFormat = (report: Report) => Promise<void>;

/** The number of findings that were left out because the baseline lists them. */
export function knownFindings({ files }: Report): number {
  return files.reduce((sum, { findings }) => sum + findings.known, 0);
}

/** A number and a noun, such as `1,204 pings`. */
export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
