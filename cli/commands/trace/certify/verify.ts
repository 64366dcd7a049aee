/**
 * `lockgate trace certify --verify`: checks that a certificate is about the given traces and agrees with them. It
 * compares each trace's SHA-256, makes the certificate again from the traces, and compares all members. For an HTML
 * page it also checks that the visible text agrees with the data inside the page.
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

/** The maximum number of differences printed. */
const MAX_DIFFERENCES = 20;

/**
 * Prints whether the certificate fits the traces, and sets exit code 1 if it does not.
 *
 * @throws LockgateError `input-…` if the certificate or a trace can't be read
 */
export async function verifyCertificate(
  certificateFile: string,
  files: readonly string[],
  { json, world }: { readonly json?: boolean; readonly world?: string },
): Promise<void> {
  const stored = readCertificate(certificateFile);
  const differences = await differencesOf(stored, files, world);
  const isVerified = differences.length === 0;
  if (!isVerified) process.exitCode = EXIT_CODE.negativeAnswer;
  if (json) {
    printJson({ verified: isVerified, differences });
    return;
  }
  for (const difference of differences) print(paint('red', sanitizeLine(difference)));
  const name = sanitizeLine(certificateFile);
  if (isVerified) print(paint('green', `${name} is about these traces and agrees with them.`));
  else print(`${name} is not verified.`);
}

/** A certificate read from a file. */
interface StoredCertificate {
  readonly data: CertificateJson;
  /** The whole page; null for a JSON file. */
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
      `${file} is not a certificate: expected a file that "trace certify" has written`,
    );
  return { data, html: isHtml ? text : null };
}

/** Returns null if the text is not a certificate. */
function parseCertificate(text: string): CertificateJson | null {
  try {
    const data = JSON.parse(text) as CertificateJson | null;
    const isCertificate = data?.certificate === 'lockgate' && isStringOrNull(data.firmware) && Array.isArray(data.rows);
    const hasTraces = Array.isArray(data?.traces) && data.traces.every(isTraceJson);
    return isCertificate && hasTraces ? data : null;
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

/** Sentences about the differences between the certificate and the traces. */
async function differencesOf(
  { data, html }: StoredCertificate,
  files: readonly string[],
  world: string | undefined,
): Promise<string[]> {
  if (files.filter((file) => file === '-').length > 1)
    throw new LockgateError('input-file', 'the standard input is named twice: expected it once');
  const hashes = new Map<string, string>();
  // The standard input can be read only once: its hash is computed, and compared, when the certificate is made again.
  for (const file of files) hashes.set(file, file === '-' ? '' : await hashOf(file));
  const { traces, differences } = matchTraces(data.traces, hashes);
  const certifiedTruth = data.world ?? null;
  if (certifiedTruth === null && world !== undefined)
    differences.push(`The certificate was made without --world ${world}.`);
  if (certifiedTruth !== null && world === undefined)
    differences.push(`The certificate was made with --world ${certifiedTruth.file}, which was not given.`);
  if (certifiedTruth !== null && world !== undefined && world !== '-') {
    const hash = await hashOf(world);
    if (hash !== certifiedTruth.sha256)
      differences.push(
        `${world} differs from the certified truth: ` +
          `its SHA-256 is ${hash}, the certificate says ${certifiedTruth.sha256}.`,
      );
  }
  if (differences.length > 0) return differences;
  const truth = certifiedTruth === null || world === undefined ? null : { file: world, name: certifiedTruth.file };
  const remade = await makeCertificate(traces, data.firmware, truth).catch((error: unknown) => {
    // A certified trace can be read to its end, so an unreadable standard input is not the certified trace.
    if (files.includes('-') && error instanceof LockgateError) return error;
    throw error;
  });
  if (remade instanceof LockgateError) return [`The trace differs from the certified one: ${remade.message}`];
  differences.push(...compare(data, certificateJson(remade)));
  if (html !== null && differences.length === 0 && html.trimEnd() !== certificateHtml(remade).trimEnd())
    differences.push('The visible text differs from the data inside the page: the page was changed after it was made.');
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
  const unmatched = new Map(hashes);
  const missing: TraceJson[] = [];
  const matched = certified.map((trace) => {
    const match = [...unmatched].find(([, hash]) => hash === trace.sha256)?.[0];
    if (match === undefined) missing.push(trace);
    else unmatched.delete(match);
    return { file: match, name: trace.file };
  });
  // If one trace has no file, the standard input may be that trace; its hash is compared later.
  if (missing.length === 1 && unmatched.has('-')) {
    missing.length = 0;
    unmatched.delete('-');
    for (const trace of matched) trace.file ??= '-';
  }
  const differences = missing.map((trace) => {
    const givenFile = [...unmatched.keys()].find((file) => path.basename(file) === path.basename(trace.file));
    if (givenFile === undefined) return `The certificate is also about ${trace.file}, which was not given.`;
    const hash = unmatched.get(givenFile) ?? '';
    unmatched.delete(givenFile);
    return differingHashText(givenFile, hash, trace.sha256);
  });
  for (const file of unmatched.keys()) differences.push(`The certificate is not about ${file}.`);
  return { traces: matched.map(({ file, name }) => ({ file: file ?? '', name })), differences };
}

function differingHashText(file: string, hash: string, certifiedHash: string | undefined): string {
  return `${file} differs from the certified trace: its SHA-256 is ${hash}, the certificate says ${certifiedHash}.`;
}

/** Sentences about the differences between a stored certificate and the one made again. */
function compare(stored: CertificateJson, remade: CertificateJson): string[] {
  if (isSame(stored, remade)) return [];
  const differences: string[] = [];
  if (stored.lockgate !== remade.lockgate)
    differences.push(`The certificate was made by lockgate ${stored.lockgate}; this is lockgate ${remade.lockgate}.`);
  for (const { file, sha256 } of remade.traces) {
    const certified = stored.traces.find((trace) => trace.file === file)?.sha256;
    if (certified === sha256) continue;
    differences.push(differingHashText(file, sha256, certified));
  }
  // Of the stored rows only the list was checked: a row that is something else has no name, and is reported.
  const storedRows = new Map((stored.rows as RowJson[]).map((row) => [row?.row, row]));
  for (const row of remade.rows as RowJson[]) {
    const storedRow = storedRows.get(row.row);
    storedRows.delete(row.row);
    if (isSame(storedRow, row)) continue;
    const claim =
      storedRow === undefined ? 'does not have the row' : `says ${storedRow.verdict}, seen ${storedRow.seen}`;
    differences.push(`${row.row}: the certificate ${claim}; the traces show ${row.verdict}, seen ${row.seen}.`);
  }
  for (const row of storedRows.keys()) differences.push(`${row}: this version of lockgate has no such row.`);
  if (differences.length === 0)
    differences.push('The certificate differs from the traces in its counts or in its list of traces.');
  return differences.slice(0, MAX_DIFFERENCES);
}

/** The members of a row that a difference names. */
interface RowJson {
  readonly row: string;
  readonly verdict: string;
  /** How often the requirement applied in the traces. */
  readonly seen: number;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
