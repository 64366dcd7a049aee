/**
 * Reads a lock's ping in our own spelling: the very bytes that writer.ts makes of one without `raw`. Nearly all
 * lines of a recorded or simulated trace are such, and reading them member by member is several times as fast as
 * JSON.parse, which knows nothing of what comes next. Whatever is spelled otherwise is left to the long way: this never
 * says that a line is wrong, and what it reads is what the long way would read.
 *
 * Here are the line and the envelope; the members of the ping itself are read by generated code (gen/ping-line.ts).
 */
import { readPingLine } from '../gen/ping-line.js';
import type { Ping, PingUplink, PowerMode, PowerSettings } from '../wire/ping.js';
import { LineCursor, lettersOf, wordsOf } from './line-cursor.js';

/** What stands between the values, in the order of ping-json.ts. A word that is a value has its closing quote. */
const TO_AT = lettersOf('{"at":"');
const TO_MAC = lettersOf('","mac":"');
const TO_TYPE = lettersOf('","event":"ping","source":"lock","ping":{"ping_type":"');
const TO_BOOT = lettersOf(',"boot":');
const TO_SEQUENCE = lettersOf(',"sequence":');
const TO_DATE = lettersOf(',"date":"');
const TO_MODE = lettersOf('","power":{"mode":"');
const TO_RIDE_TRACKING = lettersOf(',"ride_tracking":');
const TO_AIRPLANE = lettersOf(',"airplane":');
const TO_RECOVERY = lettersOf(',"recovery":');
const TO_KEPT = lettersOf(',"kept":');
const TO_DROPPED = lettersOf(',"dropped":');

const MODES = wordsOf<PowerMode>('MID', 'HIGH');

/** One line at a time; what was read stands in its members until the next. */
export class OwnLine {
  /** Ms since the epoch. */
  atMs = 0;
  /** The 48 bits of the MAC, and where its text begins. */
  macNumber = 0;
  macStart = 0;

  readonly #cursor = new LineCursor();
  #dateStart = 0;
  readonly #powers = new Map<number, PowerSettings>();

  /** Reads the line from `start` to before `end`; undefined where it is not in our own spelling. */
  read(bytes: Uint8Array, start: number, end: number): PingUplink | undefined {
    const cursor = this.#cursor;
    cursor.start(bytes, start, end);
    if (!cursor.skip(TO_AT)) return undefined;
    this.#dateStart = cursor.at;
    this.atMs = cursor.date();
    cursor.pass(TO_MAC);
    this.macStart = cursor.at;
    this.macNumber = cursor.mac();
    cursor.pass(TO_TYPE);
    if (!cursor.isOwn) return undefined;
    const ping = readPingLine(cursor);
    if (ping === undefined) return undefined;
    const uplink = this.#envelope(ping);
    return cursor.isOwn && cursor.at === end ? uplink : undefined;
  }

  #envelope(body: Ping): PingUplink {
    const cursor = this.#cursor;
    cursor.pass(TO_BOOT);
    const boot = cursor.count();
    cursor.pass(TO_SEQUENCE);
    const sequence = cursor.count();
    cursor.pass(TO_DATE);
    const timeMs = cursor.dateLike(this.#dateStart, this.atMs);
    cursor.pass(TO_MODE);
    const power = this.#power();
    const kept = cursor.skip(TO_KEPT) ? cursor.count() : 0;
    const dropped = cursor.skip(TO_DROPPED) ? cursor.count() : 0;
    cursor.close();
    cursor.close();
    return { boot, sequence, timeMs, power, kept, dropped, body };
  }

  /** There are 16 of them, so that each need be made once. */
  #power(): PowerSettings {
    const cursor = this.#cursor;
    const mode = cursor.word(MODES) ?? 'MID';
    cursor.pass(TO_RIDE_TRACKING);
    const rideTracking = cursor.flag();
    cursor.pass(TO_AIRPLANE);
    const airplane = cursor.flag();
    cursor.pass(TO_RECOVERY);
    const recovery = cursor.flag();
    cursor.close();
    const key = (mode === 'HIGH' ? 8 : 0) + (rideTracking ? 4 : 0) + (airplane ? 2 : 0) + (recovery ? 1 : 0);
    const known = this.#powers.get(key);
    if (known !== undefined) return known;
    const made = Object.freeze({ mode, rideTracking, airplane, recovery });
    this.#powers.set(key, made);
    return made;
  }
}
