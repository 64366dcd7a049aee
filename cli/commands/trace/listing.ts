/** `lockgate trace show`: prints one line for each ping; with `--all` for each event and finding. */

import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { didYouMean } from '../../../proto/did-you-mean.js';
import { LockgateError } from '../../../proto/errors.js';
import { FIRST_CREDENTIAL, type TraceEvent, type TracePing } from '../../../proto/trace/trace.js';
import { describeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { formatDate, pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { REASONS, reasonNumber } from '../../../proto/wire/reasons.js';
import { paint, print, printJsonLine, sanitizeLine } from '../../terminal/output.js';
import { readMac, readMacText } from '../../terminal/shared-flags.js';
import { printTimeline } from './timeline.js';
import { readTraceFile } from './trace-file.js';

/** The flags of `lockgate trace show`. */
export interface ShowFlags {
  readonly mac?: string;
  readonly reason?: string;
  readonly since?: string;
  readonly until?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/**
 * Prints the pings that match the flags.
 *
 * @throws LockgateError `input-…` for a wrong flag, or a file that can't be read
 */
export async function showTraces(files: readonly string[], flags: ShowFlags): Promise<void> {
  const isShown = filterOf(flags);
  if (flags.all) {
    const mac = flags.mac === undefined ? undefined : readMacText(flags.mac);
    const { json = false } = flags;
    for (const file of files) await printTimeline(file, { json, isShown, mac, namesFile: files.length > 1 });
    return;
  }
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

/** Whether the flags let an event pass. Events without a MAC pass `--mac`; only pings pass `--reason`. */
function filterOf(flags: ShowFlags): (event: TraceEvent) => boolean {
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
  return (event) =>
    (mac === undefined || !('mac' in event) || event.mac === mac) &&
    (reason === undefined || (event.event === 'ping' && event.uplink.body.reason === reason)) &&
    event.atMs >= sinceMs &&
    event.atMs < untilMs;
}

/** The date that a flag names, ms since the epoch; undefined without the flag. */
function readDate(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = parseDate(text);
  if (Number.isNaN(timeMs)) throw new LockgateError('input-date', `${flag} ${text}: expected ${DATE_EXPECTED}`);
  return timeMs;
}

function describe({ atMs, mac, source, credential, uplink }: TracePing): string {
  const phone = source === 'phone' ? ' (phone)' : '';
  // Each credential of a lock numbers its uplinks anew, so the numbers alone would be ambiguous.
  const rotated = credential === undefined || credential === FIRST_CREDENTIAL ? '' : `  credential ${credential}`;
  const date = paint('dim', formatDate(atMs));
  return `${date}  ${formatMac(mac)}${phone}  ${sanitizeLine(describeUplink(uplink))}${rotated}`;
}

function toJson({ atMs, mac, source, uplink }: TracePing, line: number, file: string | undefined): object {
  const location = file === undefined ? { line } : { file, line };
  return { ...location, at: formatDate(atMs), mac: formatMac(mac), source, ping: pingUplinkToJson(uplink) };
}
