/**
 * `lockgate trace certify --verify`: whether a certificate is about these traces and says what they show. It compares
 * each SHA-256, makes the certificate again, and compares it member by member; of a page it also compares the text that
 * people read with the data inside it.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { LockgateError } from '../../../../proto/errors.js';
import { type CertificateJson, certificateJson, type TraceJson } from '../../../../proto/trace/certificate/json.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import { paint, print, printJson, sanitizeLine } from '../../../terminal/output.js';
import { withSpooledTrace } from '../spooled-trace.js';
import { makeCertificate, type NamedTrace, sha256Of } from './certified-traces.js';
import { certificateHtml, dataOfHtml } from './html.js';

/** Rows that are named, of those that differ. */
const MAX_DIFFERENCES = 20;

/**
 * Prints whether the certificate fits the traces, and sets exit code 1 if it does not.
 *
 * @throws LockgateError `input-…` if the certificate or a trace can't be read
 */
export async function verifyCertificate(
  certificateFile: string,
  files: readonly string[],
  { json }: { readonly json?: boolean },
): Promise<void> {
  const stored = readCertificate(certificateFile);
  const differences = await differencesOf(stored, files);
  const isVerified = differences.length === 0;
  if (!isVerified) process.exitCode = EXIT_CODE.negativeAnswer;
  if (json) {
    printJson({ verified: isVerified, differences });
    return;
  }
  for (const difference of differences) print(paint('red', sanitizeLine(difference)));
  const name = sanitizeLine(certificateFile);
  if (isVerified) print(paint('green', `${name} is about these traces, and says what they show.`));
  else print(`${name} is not verified.`);
}

/** A certificate as it was read. */
interface StoredCertificate {
  readonly data: CertificateJson;
  /** The page; null for JSON. */
  readonly html: string | null;
}

function readCertificate(file: string): StoredCertificate {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new LockgateError('input-file', `${file} can't be read: ${(error as Error).message}`);
  }
  const isHtml = text.trimStart().startsWith('<');
  const json = isHtml ? dataOfHtml(text) : text;
  const data = parseCertificate(json ?? '');
  if (data === null)
    throw new LockgateError(
      'input-certificate',
      `${file} is no certificate: expected what "trace certify" has written`,
    );
  return { data, html: isHtml ? text : null };
}

/** Null if the text is no certificate. */
function parseCertificate(text: string): CertificateJson | null {
  try {
    const data = JSON.parse(text) as CertificateJson | null;
    const isCertificate = data?.certificate === 'lockgate' && isStringOrNull(data.firmware) && Array.isArray(data.rows);
    const isOfTraces = Array.isArray(data?.traces) && data.traces.every(isTraceJson);
    return isCertificate && isOfTraces ? data : null;
  } catch {
    return null;
  }
}

function isTraceJson(trace: unknown): boolean {
  const { file, sha256 } = (trace ?? {}) as Partial<TraceJson>;
  return typeof file === 'string' && typeof sha256 === 'string';
}

function isStringOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

/** Sentences about what does not fit; empty if all does. */
async function differencesOf({ data, html }: StoredCertificate, files: readonly string[]): Promise<string[]> {
  if (files.filter((file) => file === '-').length > 1)
    throw new LockgateError('input-file', 'the standard input is named twice: expected it once');
  const found = new Map<string, string>();
  // The standard input can be read once only, so its hash is compared when the certificate is made.
  for (const file of files) found.set(file, file === '-' ? '' : await hashOf(file));
  const { traces, differences } = matchTraces(data.traces, found);
  if (differences.length > 0) return differences;
  const made = await makeCertificate(traces, data.firmware).catch((error: unknown) => {
    // A trace from the standard input that can't be read to its end is not the certified one.
    if (files.includes('-') && error instanceof LockgateError) return error;
    throw error;
  });
  if (made instanceof LockgateError) return [`The trace is not as it was certified: ${made.message}`];
  const again = certificateJson(made);
  differences.push(...compare(data, again));
  if (html !== null && differences.length === 0 && html.trimEnd() !== certificateHtml(made).trimEnd())
    differences.push('The page does not show the data inside it: it was changed after it was made.');
  return differences;
}

/** The SHA-256 of a trace. An unreadable file is the user's mistake, not a difference. */
async function hashOf(file: string): Promise<string> {
  try {
    return await withSpooledTrace(file, ({ path: onDisk }) => sha256Of(onDisk));
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : String(error);
    throw new LockgateError('input-file', `${file} can't be read: ${reason}`);
  }
}

/** Finds the file of each certified trace, by its SHA-256. */
function matchTraces(
  certified: readonly TraceJson[],
  hashes: ReadonlyMap<string, string>,
): { readonly traces: NamedTrace[]; readonly differences: string[] } {
  const left = new Map(hashes);
  const missing: TraceJson[] = [];
  const matched = certified.map((trace) => {
    const match = [...left].find(([, hash]) => hash === trace.sha256)?.[0];
    if (match === undefined) missing.push(trace);
    else left.delete(match);
    return { file: match, name: trace.file };
  });
  // Only the last trace without a file can be what comes from the standard input.
  if (missing.length === 1 && left.has('-')) {
    missing.length = 0;
    left.delete('-');
    for (const trace of matched) trace.file ??= '-';
  }
  const differences = missing.map((trace) => {
    const namesake = [...left.keys()].find((file) => path.basename(file) === path.basename(trace.file));
    if (namesake === undefined) return `The certificate is also about ${trace.file}, which was not given.`;
    const hash = left.get(namesake) ?? '';
    left.delete(namesake);
    return `${namesake} is not as it was certified: its SHA-256 is ${hash}, the certificate says ${trace.sha256}.`;
  });
  for (const file of left.keys()) differences.push(`The certificate is not about ${file}.`);
  return { traces: matched.map(({ file, name }) => ({ file: file ?? '', name })), differences };
}

/** What the certificate says otherwise than the traces show. */
function compare(stored: CertificateJson, again: CertificateJson): string[] {
  if (same(stored, again)) return [];
  const differences: string[] = [];
  if (stored.lockgate !== again.lockgate)
    differences.push(`The certificate was made by lockgate ${stored.lockgate}; this is lockgate ${again.lockgate}.`);
  for (const { file, sha256 } of again.traces) {
    const certified = stored.traces.find((trace) => trace.file === file)?.sha256;
    if (certified === sha256) continue;
    differences.push(
      `${file} is not as it was certified: its SHA-256 is ${sha256}, the certificate says ${certified}.`,
    );
  }
  const storedRows = new Map((stored.rows as RowJson[]).map((row) => [row?.row, row]));
  for (const row of again.rows as RowJson[]) {
    const before = storedRows.get(row.row);
    storedRows.delete(row.row);
    if (same(before, row)) continue;
    const said = before === undefined ? 'does not have the row' : `says ${before.verdict}, seen ${before.seen}`;
    differences.push(`${row.row}: the certificate ${said}; the traces show ${row.verdict}, seen ${row.seen}.`);
  }
  for (const row of storedRows.keys()) differences.push(`${row}: this version of lockgate has no such row.`);
  if (differences.length === 0) differences.push('The certificate says something else about its traces or its counts.');
  return differences.slice(0, MAX_DIFFERENCES);
}

interface RowJson {
  readonly row: string;
  readonly verdict: string;
  readonly seen: number;
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
