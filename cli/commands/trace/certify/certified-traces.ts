/**
 * Makes a certificate from traces: reads the events and the SHA-256 of each file, one file after another. A certificate
 * says for each requirement on a lock's firmware whether the traces show that it holds. A trace can be compared with
 * the truth: a file with `world` events, which say what really happened to the locks.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { VERSION } from '../../../../gateway/version.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { type Certificate, CertificateMaker } from '../../../../proto/trace/certificate/certificate.js';
import type { TraceEvent } from '../../../../proto/trace/trace.js';
import { sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { displayName, SideBySide } from '../check/world/side-by-side.js';
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
 * @param truth the file with the `world` events; null if the traces have them, or there are none
 * @throws LockgateError `input-…` for a trace or truth that can't be read
 */
export async function makeCertificate(
  traces: readonly NamedTrace[],
  firmware: string | null,
  truth: NamedTrace | null = null,
): Promise<Certificate> {
  const maker = new CertificateMaker(POWER_MODEL, firmware);
  if (truth === null) {
    for (const trace of traces) await certifyTrace(maker, trace, null);
    return maker.certificate(VERSION);
  }
  return await withSpooledTrace(truth.file, async ({ path }) => {
    const world = { file: path, name: truth.name };
    for (const trace of traces) await certifyTrace(maker, trace, world);
    return maker.certificate(VERSION, { file: truth.name, sha256: await sha256Of(path) });
  });
}

async function certifyTrace(
  maker: CertificateMaker,
  { file, name }: NamedTrace,
  truth: NamedTrace | null,
): Promise<void> {
  const progress = new ProgressLine(() => `${sanitizeLine(file)}: ${maker.pings.toLocaleString('en-US')} pings`);
  const judge = (event: TraceEvent, line: number): void => {
    const judged = maker.judge(event, line);
    if (!judged.ok) throw new LockgateError('input-world', `${sanitizeLine(file)}:${line}: ${judged.error.message}`);
  };
  // Reads the truth in parallel with the trace, and passes the events of both to `judge`, in order of time.
  const world =
    truth &&
    new SideBySide(truth.file, truth.name, {
      begin: (truthHeader) => maker.useTruth(displayName(truth.name), truthHeader),
      event: judge,
    });
  try {
    await withSpooledTrace(file, async (trace) => {
      // The events are read before the hash, because reading them reports what is wrong with the file.
      await trace.read({
        header: (header) => maker.start(name, header),
        event: (event, line) => (world === null ? judge(event, line) : world.event(event, line)),
        // Between two chunks of the trace, the truth is read up to the same time.
        ...(world !== null && { pause: () => world.pause() }),
      });
      // Refuses a truth without any `world` event.
      world?.requireWorld();
      maker.finish(await sha256Of(trace.path));
    });
  } finally {
    await world?.close();
    progress.end();
  }
}

/** The SHA-256 of a file's bytes, as 64 hexadecimal digits. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
