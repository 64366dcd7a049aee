/**
 * `lockgate trace certify`: makes a certificate from traces and prints or writes it, or verifies one. Each row of a
 * certificate is a requirement on the firmware, with a verdict.
 */
import { LockgateError } from '../../../../proto/errors.js';
import type { Certificate } from '../../../../proto/trace/certificate/certificate.js';
import { certificateJson } from '../../../../proto/trace/certificate/json.js';
import type { JudgedRow } from '../../../../proto/trace/certificate/row.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { paint, print, printJson, printNote, sanitizeLine } from '../../../terminal/output.js';
import { type Mark, printTable } from '../../../terminal/table.js';
import { makeCertificate } from './certified-traces.js';
import { certificateHtml } from './html.js';
import { verifyCertificate } from './verify.js';

/** The flags of `lockgate trace certify`. */
export interface CertifyFlags {
  readonly firmware?: string;
  readonly out?: string;
  readonly verify?: string;
  readonly world?: string;
  readonly json?: boolean;
}

/**
 * Certifies the traces, or verifies a certificate. Sets exit code 1 if a row failed, or if the certificate differs from
 * the traces.
 *
 * @throws LockgateError `input-…` for a trace or certificate that can't be read or written
 */
export async function certifyTraces(files: readonly string[], flags: CertifyFlags): Promise<void> {
  if (flags.world === '-' && files.includes('-'))
    throw new LockgateError('input-world', 'the standard input is both a trace and the truth: expected it once');
  if (flags.verify !== undefined) {
    await verifyCertificate(flags.verify, files, flags);
    return;
  }
  const certificate = await makeCertificate(
    files.map((file) => ({ file, name: file })),
    flags.firmware ?? null,
    flags.world === undefined ? null : { file: flags.world, name: flags.world },
  );
  if (flags.out !== undefined) writeCertificate(flags.out, certificate);
  if (flags.json) printJson(certificateJson(certificate));
  else printCertificate(certificate, flags.out);
  const notice = firmwareNotice(certificate);
  if (notice !== null && !flags.json) printNote(sanitizeLine(notice));
  if (certificate.rows.some(({ verdict }) => verdict === 'FAIL')) process.exitCode = EXIT_CODE.negativeAnswer;
}

function writeCertificate(out: string, certificate: Certificate): void {
  const sink = new LineSink(out);
  sink.write(
    /\.json(\.gz)?$/i.test(out) ? JSON.stringify(certificateJson(certificate), null, 2) : certificateHtml(certificate),
  );
  sink.end();
}

/** A warning if no ping reports the certified firmware, or pings of other firmware were left out; otherwise null. */
export function firmwareNotice({ firmware, reported, leftOut }: Certificate): string | null {
  if (firmware === null) return null;
  const versions = reported.map(({ version }) => version);
  if (!versions.includes(firmware)) {
    const reportedText = versions.length === 0 ? 'report none' : `report ${versions.join(', ')}`;
    return `No ping reports firmware ${firmware}; the pings ${reportedText}.`;
  }
  if (leftOut === 0) return null;
  return `${leftOut.toLocaleString('en-US')} pings of other firmware than ${firmware} were left out.`;
}

function printCertificate({ rows, traces, pings, locks }: Certificate, out: string | undefined): void {
  // If the certificate goes to a file, only the rows that need attention are printed.
  const shownRows = out === undefined ? rows : rows.filter(({ verdict }) => verdict !== 'PASS');
  if (shownRows.length > 0) {
    printTable(shownRows, [
      { title: 'ROW', show: ({ row }: JudgedRow) => row, neverCut: true },
      { title: 'VERDICT', show: ({ verdict }) => verdict, mark: markOf },
      { title: 'SEEN', show: ({ seen }) => seen.toLocaleString('en-US') },
      { title: 'WHAT MUST HOLD', show: ({ says }) => says, prose: true },
      { title: 'FIRST LINE', show: (row) => row.firstFailures[0]?.at ?? row.lines[0] ?? '–', optional: true },
    ]);
    print('');
  }
  for (const { row, firstFailures } of rows) {
    for (const { at, rule, message } of firstFailures) print(sanitizeLine(`${row}: ${at}: ${rule}: ${message}`));
  }
  const count = (verdict: string): number => rows.filter((row) => row.verdict === verdict).length;
  const [passed, failed, notSeen] = [count('PASS'), count('FAIL'), count('NOT SEEN')];
  const sources = `${plural(pings, 'ping')} of ${plural(locks, 'lock')} in ${plural(traces.length, 'trace')}`;
  const summary = `${passed} PASS, ${failed} FAIL, ${notSeen} NOT SEEN, from ${sources}.`;
  print(paint(failed > 0 ? 'red' : notSeen > 0 ? 'yellow' : 'green', summary));
  if (out !== undefined) print(`The certificate is in ${sanitizeLine(out)}.`);
}

function markOf({ verdict }: JudgedRow): Mark {
  return verdict === 'FAIL' ? 'bad' : verdict === 'PASS' ? 'good' : 'warn';
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
