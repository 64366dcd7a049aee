/**
 * Bytes to messages and back: encode, decode and describe, side by side.
 *
 * Only this file uses the generated protobuf code; the part about pings is gen/ping-codec.ts, generated from
 * ping-fields.ts. Decoding never throws, whatever bytes arrive: it returns the message, or why the bytes are rejected
 * (protocol.md §1). Values are converted once, here, from the wire's integers to our units.
 */

import Long from 'long';
import { lockgate } from '#lock-pb';
import { ok, type Problem, problem, type Result } from '../errors.js';
import {
  readCellular,
  readCloseConnection,
  readGps,
  writeCellular,
  writeCloseConnection,
  writeGps,
} from '../gen/ping-codec.js';
import type {
  Command,
  CommandAck,
  CommandResult,
  Downlink,
  HighWindow,
  Ping,
  Position,
  PowerChange,
  PowerSettings,
  Uplink,
} from './ping.js';
import { PING_FIELD_ROWS, type PingProperty } from './ping-fields.js';
import { checkInteger, checkUnicode, toSigned32 } from './wire-values.js';

const wire = lockgate.v1;

/** The maximum length of an uplink (protocol.md §1). */
export const UPLINK_MAX_BYTES = 1024;

/**
 * Why bytes are rejected as an uplink. The gateway stores rejected bytes with the reason (quarantine), and still
 * acknowledges them (protocol.md §1).
 */
export type UplinkRejection = Problem & {
  readonly code: 'too-long' | 'undecodable' | 'no-boot' | 'no-sequence' | 'no-time' | 'no-body';
};

/** The last minute of a day. The gateway only sends high windows within a day; a lock may report any minutes. */
const LAST_MINUTE = 1439;
const RESULT_NUMBERS: Readonly<Record<CommandResult, number>> = { ok: 1, rejected: 2, failed: 3 };

/* ------------------------------------------------------------------------------------------------- uplink: decode */

/** Reads an uplink. Never throws; the error's sentence says what is wrong with the bytes. */
export function decodeUplink(bytes: Uint8Array): Result<Uplink, UplinkRejection> {
  if (bytes.length > UPLINK_MAX_BYTES)
    return problem('too-long', `the uplink has ${bytes.length} bytes: at most ${UPLINK_MAX_BYTES} are taken`);
  let message: lockgate.v1.Uplink;
  try {
    message = wire.Uplink.decode(bytes);
  } catch (error) {
    return problem('undecodable', `the bytes are no protobuf Uplink: ${(error as Error).message}`);
  }
  if (typeof message.boot !== 'number') return problem('no-boot', 'the uplink has no boot');
  if (typeof message.sequence !== 'number') return problem('no-sequence', 'the uplink has no sequence');
  if (message.timeMs === null || message.timeMs === undefined) return problem('no-time', 'the uplink has no time');
  const body = readBody(message);
  if (body === undefined) return problem('no-body', 'the uplink carries neither a ping nor an acknowledgement');
  return ok({
    boot: message.boot,
    sequence: message.sequence,
    timeMs: toNumber(message.timeMs),
    power: readPower(message.power),
    kept: message.kept,
    dropped: message.dropped,
    body,
  });
}

/**
 * Uses Long's `toNumber`, because `Number(long)` converts it to decimal text first, which takes as long as decoding the
 * rest of the uplink.
 */
function toNumber(value: number | Long): number {
  return typeof value === 'number' ? value : value.toNumber();
}

/**
 * If there are several bodies, the last one on the wire counts, as protobuf specifies for a oneof. `message.body` is
 * the name of the member that is set, so the casts hold.
 */
function readBody(message: lockgate.v1.Uplink): Ping | CommandAck | undefined {
  switch (message.body) {
    case 'cellular':
      return readCellular(message.cellular as lockgate.v1.CellularPing);
    case 'gps':
      return readGps(message.gps as lockgate.v1.GpsPing);
    case 'closeConnection':
      return readCloseConnection(message.closeConnection as lockgate.v1.CloseConnectionPing);
    case 'commandAck':
      return readAck(message.commandAck as lockgate.v1.CommandAck);
    default:
      return undefined;
  }
}

/** A mode that this build does not know counts as MID, the mode in which the least is expected of a lock. */
function readPower(power: lockgate.v1.Power.$Properties | null | undefined): PowerSettings {
  return {
    mode: power?.mode === wire.Mode.MODE_HIGH ? 'HIGH' : 'MID',
    rideTracking: power?.rideTracking ?? false,
    airplane: power?.airplane ?? false,
    recovery: power?.recovery ?? false,
  };
}

/** A result that this build does not know counts as failed: the lock answered, but did not report a success. */
function readAck(ack: lockgate.v1.CommandAck): CommandAck {
  const { ok: okNumber, rejected: rejectedNumber } = RESULT_NUMBERS;
  const result = ack.result === okNumber ? 'ok' : ack.result === rejectedNumber ? 'rejected' : 'failed';
  return {
    kind: 'ack',
    commandId: ack.id,
    result,
    detail: ack.detail,
    highWindow: ack.highWindow ? readWindow(ack.highWindow) : null,
  };
}

function readWindow(window: lockgate.v1.HighWindow.$Properties): HighWindow {
  return {
    fromMinute: window.fromMinute ?? 0,
    toMinute: window.toMinute ?? 0,
    utcOffsetMinutes: window.utcOffsetMinutes ?? 0,
  };
}

/* ------------------------------------------------------------------------------------------------- uplink: encode */

/**
 * Writes an uplink. Values are rounded to the wire's integers.
 *
 * @throws LockgateError `unencodable` if a value does not fit its field, which is a mistake of the caller.
 */
export function encodeUplink(uplink: Uplink): Uint8Array {
  const { body } = uplink;
  const message: lockgate.v1.Uplink.$Properties = {
    boot: checkInteger('boot', uplink.boot, 0, 0xffffffff),
    sequence: checkInteger('sequence', uplink.sequence, 0, 0xffffffff),
    // Not a BigInt: protobufjs would silently write 0. The largest int64 is 2 ** 63 as a number, which Long writes as
    // that int64 again.
    timeMs: Long.fromNumber(checkInteger('time', uplink.timeMs, -(2 ** 63), 2 ** 63)),
    kept: checkInteger('kept', uplink.kept, 0, 0xffffffff),
    dropped: checkInteger('dropped', uplink.dropped, 0, 0xffffffff),
  };
  if (!isDefaultPower(uplink.power)) message.power = writePower(uplink.power);
  if (body.kind === 'cellular') message.cellular = writeCellular(body);
  else if (body.kind === 'gps') message.gps = writeGps(body);
  else if (body.kind === 'close_connection') message.closeConnection = writeCloseConnection(body);
  else message.commandAck = writeAck(body);
  return wire.Uplink.encode(message).finish();
}

function isDefaultPower(power: PowerSettings): boolean {
  return power.mode === 'MID' && !power.rideTracking && !power.airplane && !power.recovery;
}

function writePower(power: PowerSettings): lockgate.v1.Power.$Properties {
  return {
    mode: power.mode === 'HIGH' ? wire.Mode.MODE_HIGH : wire.Mode.MODE_MID,
    rideTracking: power.rideTracking,
    airplane: power.airplane,
    recovery: power.recovery,
  };
}

function writeAck(ack: CommandAck): lockgate.v1.CommandAck.$Properties {
  const message: lockgate.v1.CommandAck.$Properties = {
    id: checkInteger('command id', ack.commandId, 0, 0xffffffff),
    result: RESULT_NUMBERS[ack.result],
    detail: checkUnicode('detail', ack.detail),
  };
  // Any minutes are allowed, even out of a day's range: replaying a trace must be able to send again whatever a lock
  // once sent.
  if (ack.highWindow !== null) message.highWindow = writeWindow(ack.highWindow, 0xffffffff);
  return message;
}

function writeWindow(window: HighWindow, lastMinute: number): lockgate.v1.HighWindow.$Properties {
  return {
    fromMinute: checkInteger('window from', window.fromMinute, 0, lastMinute),
    toMinute: checkInteger('window to', window.toMinute, 0, lastMinute),
    // In whole minutes on the wire too, so the factor is 1.
    utcOffsetMinutes: toSigned32('UTC offset', window.utcOffsetMinutes, 1),
  };
}

/* ------------------------------------------------------------------------------------------------- uplink: describe */

/** Line breaks and control characters: a lock's text is untrusted, and could otherwise manipulate the terminal. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** A one-line description of an uplink for users, without its lock and its time. */
export function describeUplink(uplink: Uplink): string {
  const { body } = uplink;
  const key = `#${uplink.boot}/${uplink.sequence}`;
  if (body.kind === 'ack') {
    const detail = body.detail === '' ? '' : ` (${body.detail.replace(UNPRINTABLE, ' ')})`;
    return `ack of command ${body.commandId}: ${body.result}${detail}  ${key}`;
  }
  return `${describePing(body)}  ${key}`;
}

/**
 * The fields that the one-line description of a ping shows, in order, with the text before and after each value. A
 * field whose template has no `$` is shown as a fixed word; a field with `only` is shown only if it has that value.
 */
const SHOWN_FIELDS = PING_FIELD_ROWS.flatMap(([property, { line }]) => {
  if (line === null) return [];
  const [before = '', after] = line.text.split('$');
  return [{ property, order: line.order, only: line.only, before, after }];
}).sort((a, b) => a.order - b.order);
/** The position consists of several fields. It is shown before the first field with a higher order than this. */
const POSITION_ORDER = 4;

/** A one-line description of a ping for users. */
export function describePing(ping: Ping): string {
  const members: Partial<Readonly<Record<PingProperty, unknown>>> = ping;
  let line: string = ping.kind === 'close_connection' ? 'close' : ping.kind;
  let position = ping.kind === 'close_connection' ? null : ping.position;
  for (const { property, order, only, before, after } of SHOWN_FIELDS) {
    if (order > POSITION_ORDER && position !== null) {
      line += ` ${describePosition(position)}`;
      position = null;
    }
    const value = members[property];
    if (value === undefined || value === null || (only !== undefined && only !== value)) continue;
    line += after === undefined ? ` ${before}` : ` ${before}${value}${after}`;
  }
  return line;
}

function describePosition(position: Position): string {
  return `${position.latitudeDegrees},${position.longitudeDegrees} ±${position.uncertaintyMeters}m`;
}

/* ------------------------------------------------------------------------------------------------------- downlink */

/**
 * Writes a command for a lock.
 *
 * @throws LockgateError `unencodable` if a value does not fit its field.
 */
export function encodeDownlink(downlink: Downlink): Uint8Array {
  const { command } = downlink;
  const message: lockgate.v1.Downlink.$Properties = {
    id: checkInteger('command id', downlink.id, 0, 0xffffffff),
    expiresMs: Long.fromNumber(checkInteger('expiry', downlink.expiresMs, 0, Number.MAX_SAFE_INTEGER)),
  };
  switch (command.type) {
    case 'unlock':
      message.unlock = {};
      break;
    case 'lock':
      message.lock = {};
      break;
    case 'siren':
      message.siren = { seconds: checkInteger('siren seconds', command.seconds, 0, 0xffffffff) };
      break;
    case 'locate-gps':
      message.locateGps = {};
      break;
    case 'locate-cell':
      message.locateCell = {};
      break;
    case 'set-power':
      message.setPower = writeChange(command);
      break;
    case 'reset':
      message.reset = {};
      break;
  }
  return wire.Downlink.encode(message).finish();
}

function writeChange(change: PowerChange): lockgate.v1.SetPower.$Properties {
  const message: lockgate.v1.SetPower.$Properties = {};
  if (change.mode !== undefined) message.mode = change.mode === 'HIGH' ? wire.Mode.MODE_HIGH : wire.Mode.MODE_MID;
  if (change.rideTracking !== undefined) message.rideTracking = change.rideTracking;
  if (change.airplane !== undefined) message.airplane = change.airplane;
  if (change.recovery !== undefined) message.recovery = change.recovery;
  if (change.highWindow !== undefined) message.highWindow = writeWindow(change.highWindow, LAST_MINUTE);
  return message;
}

/** Reads a command on the lock's side. Never throws. */
export function decodeDownlink(bytes: Uint8Array): Result<Downlink> {
  let message: lockgate.v1.Downlink;
  try {
    message = wire.Downlink.decode(bytes);
  } catch (error) {
    return problem('undecodable', `the bytes are no protobuf Downlink: ${(error as Error).message}`);
  }
  const command = readCommand(message);
  if (command === undefined) return problem('no-command', 'the downlink carries no command');
  return ok({ id: message.id, expiresMs: toNumber(message.expiresMs), command });
}

function readCommand(message: lockgate.v1.Downlink): Command | undefined {
  switch (message.command) {
    case 'unlock':
    case 'lock':
    case 'reset':
      return { type: message.command };
    case 'siren':
      return { type: 'siren', seconds: message.siren?.seconds ?? 0 };
    case 'locateGps':
      return { type: 'locate-gps' };
    case 'locateCell':
      return { type: 'locate-cell' };
    case 'setPower':
      return { type: 'set-power', ...readChange(message.setPower ?? {}) };
    default:
      return undefined;
  }
}

function readChange(change: lockgate.v1.SetPower.$Properties): PowerChange {
  const { mode, rideTracking, airplane, recovery, highWindow } = change;
  return {
    ...(typeof mode === 'number' && { mode: mode === wire.Mode.MODE_HIGH ? 'HIGH' : 'MID' }),
    ...(typeof rideTracking === 'boolean' && { rideTracking }),
    ...(typeof airplane === 'boolean' && { airplane }),
    ...(typeof recovery === 'boolean' && { recovery }),
    ...(highWindow && { highWindow: readWindow(highWindow) }),
  };
}
