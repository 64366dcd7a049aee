/**
 * A certificate as JSON (interfaces.md §4). The JSON says nothing about when it was made, so the same traces always
 * give the same JSON.
 */
import { citationsOf } from '../../citations.js';
import { formatDate } from '../../wire/ping-json.js';
import type { Certificate, CertifiedTrace } from './certificate.js';
import type { JudgedRow } from './row.js';

/** The format of {@link CertificateJson}. */
export const CERTIFICATE_VERSION = 1;

/** A certificate as `trace certify --json` prints it, with the members of a {@link Certificate}; dates are RFC 3339. */
export interface CertificateJson {
  readonly certificate: 'lockgate';
  readonly version: number;
  readonly lockgate: string;
  readonly firmware: string | null;
  readonly firmware_reported: readonly { readonly version: string; readonly pings: number }[];
  readonly pings_left_out: number;
  readonly traces: readonly TraceJson[];
  readonly world: { readonly file: string; readonly sha256: string } | null;
  readonly locks: number;
  readonly pings: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly rows: readonly object[];
  readonly passed: number;
  readonly failed: number;
  readonly not_seen: number;
}

export interface TraceJson {
  readonly file: string;
  readonly sha256: string;
  readonly locks: number;
  readonly pings: number;
  readonly from: string | null;
  readonly to: string | null;
}

/** The certificate as a JSON document. */
export function certificateJson(certificate: Certificate): CertificateJson {
  const { lockgate, firmware, reported, leftOut, traces, world, locks, pings, fromMs, toMs, rows } = certificate;
  const count = (verdict: string): number => rows.filter((row) => row.verdict === verdict).length;
  return {
    certificate: 'lockgate',
    version: CERTIFICATE_VERSION,
    lockgate,
    firmware,
    firmware_reported: reported,
    pings_left_out: leftOut,
    traces: traces.map(traceJson),
    world,
    locks,
    pings,
    from: dateOf(fromMs),
    to: dateOf(toMs),
    rows: rows.map(rowJson),
    passed: count('PASS'),
    failed: count('FAIL'),
    not_seen: count('NOT SEEN'),
  };
}

/** A row with its verdict as JSON. */
export function rowJson(judged: JudgedRow): object {
  const { row, group, state, verdict, seen, lines, failures, firstFailures, noted, firstNoted, says, section } = judged;
  return {
    row,
    state,
    verdict,
    seen,
    lines,
    failures,
    first_failures: firstFailures,
    noted,
    first_noted: firstNoted,
    group,
    says,
    section,
    links: citationsOf(section).map(({ link }) => link),
  };
}

function traceJson({ file, sha256, locks, pings, fromMs, toMs }: CertifiedTrace): TraceJson {
  return { file, sha256, locks, pings, from: dateOf(fromMs), to: dateOf(toMs) };
}

function dateOf(timeMs: number | null): string | null {
  return timeMs === null ? null : formatDate(timeMs);
}
