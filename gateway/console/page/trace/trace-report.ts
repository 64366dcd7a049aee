/**
 * The report of the check of a dropped trace, the messages between the page and the worker that checks it
 * (trace-worker.ts), and their limits. Types and limits only.
 */
import type { Severity } from '../../../../proto/power/rules.js';
import type { TimelineData, TimeRange } from '../../timeline/timeline-data.js';

/** A finding, with the words of the CLI. */
export interface PageFinding {
  /** Its place in the list, from 0: a line may have several findings, even of one rule. */
  readonly id: number;
  readonly line: number;
  readonly mac: string;
  readonly rule: string;
  readonly severity: Severity;
  readonly message: string;
  /** By the trace's clock, ms since the epoch. */
  readonly atMs: number;
  /** The boot and sequence of the uplink at fault, such as `2/17`; empty if the finding is not about one. */
  readonly uplink: string;
  /** The section of the documentation that defines the rule. */
  readonly section: string;
}

/** A row of the certificate: one requirement, and whether the trace shows that it holds (docs/certificate.md). */
export interface PageRow {
  readonly row: string;
  readonly group: string;
  /** The requirement in a sentence. */
  readonly says: string;
  /** `PASS`, `FAIL` or `NOT SEEN`. */
  readonly verdict: string;
  /** How often the trace shows it. */
  readonly seen: number;
}

export interface TraceReport {
  readonly file: string;
  readonly lines: number;
  readonly pings: number;
  readonly lockCount: number;
  /** Why the trace could not be read to its end; null if it could. */
  readonly error: string | null;
  /** Sentences about members that the format of traces does not have: perhaps they are misspelt. */
  readonly notes: readonly string[];
  readonly range: TimeRange;
  /** The locks with a timeline, those with the most findings first. */
  readonly locks: readonly TimelineData[];
  /** In the order of their lines, at most {@link MAX_FINDINGS}. */
  readonly findings: readonly PageFinding[];
  readonly violations: number;
  readonly warnings: number;
  readonly certificate: readonly PageRow[];
}

/** From the page to the worker. */
export interface CheckRequest {
  readonly file: File;
}

/** From the worker to the page. */
export type CheckMessage =
  | { readonly type: 'progress'; readonly lines: number }
  | { readonly type: 'done'; readonly report: TraceReport }
  | { readonly type: 'failed'; readonly why: string };

/** The maximum number of findings that the page gets, some 30 MB; the counts are those of all. */
export const MAX_FINDINGS = 100_000;
/** The maximum number of findings on the timeline of a lock: each is a shape that the page draws. */
export const MAX_MARKS = 2_000;
/** The maximum number of locks with a timeline that the page gets. */
export const MAX_LOCKS = 200;
/** The maximum size of a trace, unpacked: a small file can unpack to any size. */
export const MAX_TRACE_BYTES = 1024 * 1024 * 1024;
