/**
 * Writes a trace of a gateway's locks to a file: past events from its store (`trace export`), or events from now on
 * (`trace record`).
 */

import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { printNote } from '../../terminal/output.js';
import { readMacText } from '../../terminal/shared-flags.js';

/** Recorded text is gzipped in chunks of this size. */
const GZIP_CHUNK_CHARACTERS = 64 * 1024;

/** The flags of `lockgate trace export`. */
export interface ExportFlags extends ConnectionFlags {
  readonly mac: readonly string[];
  readonly out?: string;
  readonly since?: string;
  readonly until?: string;
}

/** The flags of `lockgate trace record`. */
export interface RecordFlags extends ConnectionFlags {
  readonly mac: readonly string[];
  readonly out?: string;
}

/** Writes the stored events. @throws LockgateError the gateway's error, or `input-file` */
export async function exportTraces(flags: ExportFlags): Promise<void> {
  const query = queryOf(flags.mac);
  if (flags.since !== undefined) query.set('since', flags.since);
  if (flags.until !== undefined) query.set('until', flags.until);
  const interrupted = untilInterrupted();
  const events = await copyTrace(new GatewayClient(flags), `/trace?${query}`, flags, interrupted.signal);
  if (interrupted.signal.aborted) process.exitCode = interrupted.exitCode;
  else if (flags.out !== undefined) printNote(`Wrote ${events} events to ${flags.out}.`);
}

/** Records until Ctrl-C. @throws LockgateError the gateway's error, or `input-file` */
export async function recordTraces(flags: RecordFlags): Promise<void> {
  const { signal } = untilInterrupted();
  // Each line is written at once, so that a crash loses none. Gzip needs chunks: a gzipped single line would be longer
  // than the line.
  const chunkCharacters = flags.out?.endsWith('.gz') ? GZIP_CHUNK_CHARACTERS : 1;
  const onStart = (): void =>
    printNote(`Recording${flags.out === undefined ? '' : ` to ${flags.out}`}. Press Ctrl-C to stop.`);
  const requestPath = `/trace/live?${queryOf(flags.mac)}`;
  const events = await copyTrace(new GatewayClient(flags), requestPath, { ...flags, chunkCharacters, onStart }, signal);
  if (!signal.aborted)
    throw new LockgateError('gateway-down', `the gateway closed the stream; ${events} events were recorded`);
  // Ctrl-C is the normal end of a recording.
  printNote(`Recorded ${events} events.`);
}

function queryOf(macs: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const text of macs) query.append('mac', readMacText(text));
  return query;
}

/** How {@link copyTrace} writes the trace. */
interface CopyOptions {
  readonly out?: string;
  /** Characters that are written at once. */
  readonly chunkCharacters?: number;
  /** Called when the gateway starts to answer. */
  readonly onStart?: () => void;
}

/** Copies until the gateway closes the stream or `signal` fires. Returns the number of events, without the header. */
async function copyTrace(
  client: GatewayClient,
  requestPath: string,
  options: CopyOptions,
  signal: AbortSignal,
): Promise<number> {
  let sink: LineSink | undefined;
  let lines = 0;
  try {
    for await (const line of client.lines(requestPath, signal)) {
      // The file is opened after the gateway's first line, so that a refusal does not overwrite an existing file.
      if (sink === undefined) options.onStart?.();
      sink ??= new LineSink(options.out, options.chunkCharacters);
      sink.write(line);
      lines += 1;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    sink?.end();
  }
  return Math.max(lines - 1, 0);
}
