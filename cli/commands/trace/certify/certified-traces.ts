/**
 * Makes a certificate from traces: reads the events and the SHA-256 of each file, one file after another. A certificate
 * says for each requirement on a lock's firmware whether the traces show that it holds.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { VERSION } from '../../../../gateway/version.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { type Certificate, CertificateMaker } from '../../../../proto/trace/certificate/certificate.js';
import { sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { withSpooledTrace } from '../spooled-trace.js';

/** A trace, and its name in the certificate. */
export interface NamedTrace {
  /** `-` is the standard input. */
  readonly file: string;
  readonly name: string;
}

/**
 * The certificate of the traces, in their order.
 *
 * @param firmware the version to certify; null for all versions that the locks report
 * @throws LockgateError `input-…` for a trace that can't be read
 */
export async function makeCertificate(traces: readonly NamedTrace[], firmware: string | null): Promise<Certificate> {
  const maker = new CertificateMaker(POWER_MODEL, firmware);
  for (const { file, name } of traces) {
    const progress = new ProgressLine(() => `${sanitizeLine(file)}: ${maker.pings.toLocaleString('en-US')} pings`);
    try {
      await withSpooledTrace(file, async (trace) => {
        // The events are read before the hash, because reading them reports what is wrong with the file.
        await trace.read({
          header: (header) => maker.start(name, header),
          event: (event, line) => {
            const judged = maker.judge(event, line);
            if (!judged.ok)
              throw new LockgateError('input-world', `${sanitizeLine(file)}:${line}: ${judged.error.message}`);
          },
        });
        maker.finish(await sha256Of(trace.path));
      });
    } finally {
      progress.end();
    }
  }
  return maker.certificate(VERSION);
}

/** The SHA-256 of a file's bytes, as 64 hexadecimal digits. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
