/**
 * Traces from a gateway into a file: what its store has (`trace export`), or what happens from now on (`trace record`).
 */

import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { note } from '../../terminal/output.js';
import { readMacText } from '../../terminal/shared-flags.js';

/** Characters that are gzipped together while a recording goes on. */
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

/** @throws LockgateError what the gateway says, or `input-file` */
export async function exportTraces(flags: ExportFlags): Promise<void> {
  const query = queryOf(flags.mac);
  if (flags.since !== undefined) query.set('since', flags.since);
  if (flags.until !== undefined) query.set('until', flags.until);
  const interrupted = untilInterrupted();
  const events = await copy(new GatewayClient(flags), `/trace?${query}`, flags, interrupted.signal);
  if (interrupted.signal.aborted) process.exitCode = interrupted.exitCode;
  else if (flags.out !== undefined) note(`Wrote ${events} events to ${flags.out}.`);
}

/** Goes on until Ctrl-C. @throws LockgateError what the gateway says, or `input-file` */
export async function recordTraces(flags: RecordFlags): Promise<void> {
  const { signal } = untilInterrupted();
  // A recording that is cut short shall have what came; but a gzipped line of its own would be longer than the line.
  const piece = flags.out?.endsWith('.gz') ? GZIPPED_PIECE : 1;
  const begun = (): void => note(`Recording${flags.out === undefined ? '' : ` to ${flags.out}`}. Ctrl-C ends it.`);
  const where = `/trace/live?${queryOf(flags.mac)}`;
  const events = await copy(new GatewayClient(flags), where, { ...flags, piece, begun }, signal);
  if (!signal.aborted) throw new LockgateError('gateway-down', `the gateway ended; ${events} events were recorded`);
  // A recording has no other end: this one is as it should be.
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
  /** Called once the gateway tells. */
  readonly begun?: () => void;
}

/** Returns how many events there were, the header apart, until the gateway's end or `signal`. */
async function copy(client: GatewayClient, where: string, how: Copying, signal: AbortSignal): Promise<number> {
  let sink: LineSink | undefined;
  let lines = 0;
  try {
    for await (const line of client.lines(where, signal)) {
      // The gateway is asked before the file is made: a refusal leaves a file that is there alone.
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
