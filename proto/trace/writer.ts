/**
 * Turns a trace's header and events into lines (protocol.md §4), which reader.ts reads back to the same header and
 * events. Two times may lie outside the years 1970–9999, which a date can't express: when a command expires, and the
 * header's last period ping. They are left out then. Pure: writes no file.
 */

import type { EarlierCommand } from '../power/judge/belief.js';
import { formatMac } from '../wire/mac.js';
import type { Command, PowerChange } from '../wire/ping.js';
import {
  ackUplinkToJson,
  formatDate,
  highWindowToJson,
  isDatable,
  pingUplinkToJson,
  powerToJson,
} from '../wire/ping-json.js';
import {
  TRACE_NAME,
  TRACE_VERSION,
  type TraceAck,
  type TraceEvent,
  type TraceHeader,
  type TraceLock,
  type TracePing,
} from './trace.js';

/** The first line, without a line end. */
export function traceHeaderLine(header: TraceHeader): string {
  const locks: Record<string, unknown> = {};
  for (const [mac, lock] of header.locks) locks[formatMac(mac)] = lockToJson(lock);
  const note = header.note === '' ? {} : { note: header.note };
  return JSON.stringify({ trace: TRACE_NAME, version: TRACE_VERSION, ...note, locks });
}

function lockToJson(lock: TraceLock): object {
  return {
    power: powerToJson(lock.power),
    ...(lock.highWindow !== null && { high_window: highWindowToJson(lock.highWindow) }),
    lock_state: lock.lockState,
    connected: lock.connected,
    ...(lock.lastPeriodMs !== null && isDatable(lock.lastPeriodMs) && { last_period: formatDate(lock.lastPeriodMs) }),
    ...(lock.reflashed !== undefined && lock.reflashed.length > 0 && { reflashed: lock.reflashed.map(formatDate) }),
    ...(lock.commands !== undefined && { commands: lock.commands.map(earlierCommandToJson) }),
  };
}

function earlierCommandToJson({ id, command, atMs, expiresMs }: EarlierCommand): object {
  const expires = expiresMs !== undefined && isDatable(expiresMs) ? { expires: formatDate(expiresMs) } : {};
  return { id, ...commandToJson(command), at: formatDate(atMs), ...expires };
}

/**
 * One event as a line, without a line end. Its time must be a date in the years 1970–9999.
 *
 * @param raw the bytes of a ping's or acknowledgement's uplink, to be written as the member `raw`
 */
export function traceEventLine(event: TraceEvent, raw?: Uint8Array): string {
  if (event.event === 'world') return JSON.stringify(event.members);
  const at = formatDate(event.atMs);
  if (event.event === 'tick') return JSON.stringify({ at, event: event.event });
  if (event.event === 'gateway') return JSON.stringify({ at, event: event.event, state: event.state });
  const mac = formatMac(event.mac);
  const bytes = raw === undefined ? {} : { raw: Buffer.from(raw).toString('base64') };
  switch (event.event) {
    case 'connect':
      return JSON.stringify({ at, mac, event: event.event, source: event.source });
    case 'disconnect':
      return JSON.stringify({ at, mac, event: event.event, source: event.source, cause: event.cause });
    case 'ping': {
      const ping = { ...pingUplinkToJson(event.uplink), ...bytes };
      return JSON.stringify({ at, mac, event: event.event, ...senderOf(event), ping });
    }
    case 'ack': {
      const ack = { ...ackUplinkToJson(event.uplink), ...bytes };
      return JSON.stringify({ at, mac, event: event.event, ...senderOf(event), ack });
    }
    case 'command': {
      const { id, expiresMs } = event;
      const expires = expiresMs !== undefined && isDatable(expiresMs) ? { expires: formatDate(expiresMs) } : {};
      const command = { id, ...commandToJson(event.command), ...expires };
      return JSON.stringify({ at, mac, event: event.event, command });
    }
  }
}

function senderOf({ source, credential }: TracePing | TraceAck): object {
  return credential === undefined ? { source } : { source, credential };
}

/** A command as JSON. */
export interface CommandJson {
  readonly type: Command['type'];
  readonly [parameter: string]: unknown;
}

/** A command's members in a trace: `type` and its parameters. */
export function commandToJson(command: Command): CommandJson {
  if (command.type === 'siren') return { type: command.type, seconds: command.seconds };
  if (command.type !== 'set-power') return { type: command.type };
  return { type: command.type, ...changeToJson(command) };
}

function changeToJson(change: PowerChange): object {
  return {
    ...(change.mode !== undefined && { mode: change.mode }),
    ...(change.rideTracking !== undefined && { ride_tracking: change.rideTracking }),
    ...(change.airplane !== undefined && { airplane: change.airplane }),
    ...(change.recovery !== undefined && { recovery: change.recovery }),
    ...(change.highWindow !== undefined && { high_window: highWindowToJson(change.highWindow) }),
  };
}
