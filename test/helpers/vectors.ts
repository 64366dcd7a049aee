// The wire samples of test/vectors: one JSON object a line, made from proto/lock.proto by hand and not by our codec, so
// that the codec is held to something else than itself. A bug report becomes a line here before it is fixed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Downlink, PowerChange, Uplink } from '../../proto/wire/ping.js';
import { highWindowToJson, pingToJson, powerToJson } from '../../proto/wire/ping-json.js';
import { root } from './house/our-files.js';

/** One sample: the bytes, and what they say or why they can't be taken. */
export interface Vector {
  readonly name: string;
  readonly hex: string;
  /** False where an encoder would write other bytes for the same; left out where it writes just these. */
  readonly canonical?: boolean;
  readonly uplink?: object;
  readonly downlink?: object;
  /** The code of the refusal. */
  readonly rejection?: string;
}

/** Reads a file of test/vectors. A line that is no JSON throws and says which it is. */
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

/** The bytes that hex digits stand for. */
export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

/** Bytes as lower-case hex digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** An uplink as a vector writes it: protocol.md §4's names, with the time in ms, since not every time is a date. */
export function uplinkToJson({ boot, sequence, timeMs, power, kept, dropped, body }: Uplink): object {
  const envelope = { boot, sequence, time_ms: timeMs, power: powerToJson(power), kept, dropped };
  if (body.kind !== 'ack') return { ...envelope, ping: pingToJson(body) };
  const { commandId, result, detail, highWindow } = body;
  return {
    ...envelope,
    ack: { id: commandId, result, detail, high_window: highWindow && highWindowToJson(highWindow) },
  };
}

/** A downlink as a vector writes it: protocol.md §4's command, with its expiry in ms. */
export function downlinkToJson({ id, expiresMs, command }: Downlink): object {
  const head = { id, expires_ms: expiresMs, type: command.type };
  if (command.type === 'siren') return { ...head, seconds: command.seconds };
  return command.type === 'set-power' ? { ...head, ...changeToJson(command) } : head;
}

function changeToJson({ mode, rideTracking, airplane, recovery, highWindow }: PowerChange): object {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
    ...(highWindow !== undefined && { high_window: highWindowToJson(highWindow) }),
  };
}
