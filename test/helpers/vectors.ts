// Reads the wire samples in test/vectors: one JSON object on each line. People write them from proto/lock.proto,
// without the codec, so that they can prove the codec wrong. A reported bug is added as a sample before it is fixed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Downlink, PowerChange, Uplink } from '../../proto/wire/ping.js';
import { highWindowToJson, pingToJson, powerToJson } from '../../proto/wire/ping-json.js';
import { root } from './house/our-files.js';

/** One sample: the bytes, and the message to which they decode or the code of their rejection. */
export interface Vector {
  readonly name: string;
  readonly hex: string;
  /** False if the codec writes other bytes for the same message; absent if it writes exactly these. */
  readonly canonical?: boolean;
  readonly uplink?: object;
  readonly downlink?: object;
  /** The code of the rejection. */
  readonly rejection?: string;
}

/** Reads a file of test/vectors. @throws Error with the line's number if a line is no JSON */
export function readVectors(name: 'pings' | 'downlinks'): Vector[] {
  const lines = readFileSync(join(root, 'test/vectors', `${name}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as Vector;
    } catch (error) {
      throw new Error(`test/vectors/${name}.jsonl:${index + 1} is no JSON`, { cause: error });
    }
  });
}

/** The bytes of a text of hex digits. */
export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

/** Bytes as lower-case hex digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** An uplink (a lock's message) as in a sample: names as in protocol.md §4; time in ms, as not every time is a date. */
export function uplinkToJson({ boot, sequence, timeMs, power, kept, dropped, body }: Uplink): object {
  const envelope = { boot, sequence, time_ms: timeMs, power: powerToJson(power), kept, dropped };
  if (body.kind !== 'ack') return { ...envelope, ping: pingToJson(body) };
  const { commandId, result, detail, highWindow } = body;
  return {
    ...envelope,
    ack: { id: commandId, result, detail, high_window: highWindow && highWindowToJson(highWindow) },
  };
}

/** A downlink (a message to a lock) as in a sample: the command as in protocol.md §4, with its expiry in ms. */
export function downlinkToJson({ id, expiresMs, command }: Downlink): object {
  const head = { id, expires_ms: expiresMs, type: command.type };
  if (command.type === 'siren') return { ...head, seconds: command.seconds };
  return command.type === 'set-power' ? { ...head, ...changeToJson(command) } : head;
}

/** A change of the power settings; members that it does not change are left out. */
function changeToJson({ mode, rideTracking, airplane, recovery, highWindow }: PowerChange): object {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
    ...(highWindow !== undefined && { high_window: highWindowToJson(highWindow) }),
  };
}
