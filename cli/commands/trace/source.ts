/**
 * Writes a gateway's traces to a file: what its store has (`trace export`), or what happens from now on (`trace
 * record`).
 */

import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { note } from '../../terminal/output.js';
import { readMacText } from '../../terminal/shared-flags.js';

/** Characters that are gzipped together during a recording. */
const GZIPPED_PIECE = 64 * 1024;

export interface ExportFlags extends ConnectionFlags {
  readonly mac: readonly string[];
  readonly out?: string;
  readonly since?: string;
  readonly until?: string;
}

export interface RecordFlags extends ConnectionFlags {
  readonly mac: readonly string[];
  readonly out?: string;
}

/** @throws LockgateError the gateway's error, or `input-file` */
export async function exportTraces(flags: ExportFlags): Promise<void> {
  const query = queryOf(flags.mac);
  if (flags.since !== undefined) query.set('since', flags.since);
  if (flags.until !== undefined) query.set('until', flags.until);
  const interrupted = untilInterrupted();
  const events = await copy(new GatewayClient(flags), `/trace?${query}`, flags, interrupted.signal);
  if (interrupted.signal.aborted) process.exitCode = interrupted.exitCode;
  else if (flags.out !== undefined) note(`Wrote ${events} events to ${flags.out}.`);
}

/** Records until Ctrl-C. @throws LockgateError the gateway's error, or `input-file` */
export async function recordTraces(flags: RecordFlags): Promise<void> {
  const { signal } = untilInterrupted();
  // A recording that is cut short must have what came before; but a gzipped piece of a single line would be longer than
  // the line.
  const piece = flags.out?.endsWith('.gz') ? GZIPPED_PIECE : 1;
  const begun = (): void =>
    note(`Recording${flags.out === undefined ? '' : ` to ${flags.out}`}. Press Ctrl-C to stop.`);
  const where = `/trace/live?${queryOf(flags.mac)}`;
  const events = await copy(new GatewayClient(flags), where, { ...flags, piece, begun }, signal);
  if (!signal.aborted)
    throw new LockgateError('gateway-down', `the gateway ended the stream; ${events} events were recorded`);
  // Ctrl-C is the normal end of a recording.
  note(`Recorded ${events} events.`);
}

function queryOf(macs: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const text of macs) query.append('mac', readMacText(text));
  return query;
}

interface Copying {
  readonly out?: string;
  /** Characters that are gzipped together. */
  readonly piece?: number;
  /** Called once the gateway starts to answer. */
  readonly begun?: () => void;
}

/** Returns the number of events, without the header, until the gateway ends the stream or `signal` fires. */
async function copy(client: GatewayClient, where: string, how: Copying, signal: AbortSignal): Promise<number> {
  let sink: LineSink | undefined;
  let lines = 0;
  try {
    for await (const line of client.lines(where, signal)) {
      // The gateway is asked before the file is made, so that a refusal does not overwrite an existing file.
      if (sink === undefined) how.begun?.();
      sink ??= new LineSink(how.out, how.piece);
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
