/** `lockgate trace show`: prints one line for each ping. */

import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { didYouMean } from '../../../proto/did-you-mean.js';
import { LockgateError } from '../../../proto/errors.js';
import type { TracePing } from '../../../proto/trace/trace.js';
import { describeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { pingUplinkToJson, toDate } from '../../../proto/wire/ping-json.js';
import { REASONS, reasonNumber } from '../../../proto/wire/reasons.js';
import { oneLine, paint, print, printJsonLine } from '../../terminal/output.js';
import { readMac } from '../../terminal/shared-flags.js';
import { readTraceFile } from './trace-file.js';

export interface ShowFlags {
  readonly mac?: string;
  readonly reason?: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: boolean;
}

/**
 * Prints the pings that match the flags.
 *
 * @throws LockgateError `input-…` for a wrong flag, or a file that can't be read
 */
export async function showTraces(files: readonly string[], flags: ShowFlags): Promise<void> {
  const isShown = filterOf(flags);
  for (const file of files) {
    await readTraceFile(file, {
      header: () => undefined,
      event: (event, line) => {
        if (event.event !== 'ping' || !isShown(event)) return;
        if (flags.json) printJsonLine(toJson(event, line, files.length > 1 ? file : undefined));
        else print(describe(event));
      },
    });
  }
}

function filterOf(flags: ShowFlags): (ping: TracePing) => boolean {
  const mac = flags.mac === undefined ? undefined : readMac(flags.mac);
  const { reason } = flags;
  const reasonNames = REASONS.map(({ name }) => name);
  if (reason !== undefined && reasonNumber(reason) === undefined)
    throw new LockgateError(
      'input-reason',
      `${JSON.stringify(reason)} is not a reason: expected one such as REASON_THEFT.${didYouMean(reason, reasonNames)}`,
    );
  const sinceMs = readDate('--since', flags.since) ?? Number.NEGATIVE_INFINITY;
  const untilMs = readDate('--until', flags.until) ?? Number.POSITIVE_INFINITY;
  return (ping) =>
    (mac === undefined || ping.mac === mac) &&
    (reason === undefined || ping.uplink.body.reason === reason) &&
    ping.atMs >= sinceMs &&
    ping.atMs < untilMs;
}

function readDate(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = parseDate(text);
  if (Number.isNaN(timeMs)) throw new LockgateError('input-date', `${flag} ${text}: expected ${DATE_EXPECTED}`);
  return timeMs;
}

function describe({ atMs, mac, source, uplink }: TracePing): string {
  const phone = source === 'phone' ? ' (phone)' : '';
  return `${paint('dim', toDate(atMs))}  ${formatMac(mac)}${phone}  ${oneLine(describeUplink(uplink))}`;
}

function toJson({ atMs, mac, source, uplink }: TracePing, line: number, file: string | undefined): object {
  const where = file === undefined ? { line } : { file, line };
  return { ...where, at: toDate(atMs), mac: formatMac(mac), source, ping: pingUplinkToJson(uplink) };
}
