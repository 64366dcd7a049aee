/**
 * The fast path for trace lines. It reads a lock's ping, connect or disconnect in the canonical spelling: exactly the
 * bytes that writer.ts writes for it (a ping without `raw`). Nearly all lines of a recorded or simulated trace are like
 * this, and reading them member by member is several times as fast as JSON.parse, which can't expect a certain member
 * next. Lines in any other spelling are left to the slow path in reader.ts. This file reports no errors, and reads the
 * same as the slow path.
 *
 * This file reads the line and the uplink's *envelope*, the members besides those of the ping. Generated code reads the
 * members of the ping itself (gen/ping-line.ts).
 */
import { readPingLine } from '../gen/ping-line.js';
import type { DisconnectCause } from '../power/judge/event.js';
import type { Ping, PingUplink, PowerMode, PowerSettings } from '../wire/ping.js';
import { bytePattern, LineCursor, tokensOf } from './line-cursor.js';
import { FIRST_CREDENTIAL, MAX_CREDENTIAL } from './trace.js';

/** The bytes between the values, in the order of ping-json.ts: each `TO_…` is what comes before a value. */
const TO_AT = bytePattern('{"at":"');
const TO_MAC = bytePattern('","mac":"');
const TO_TYPE = bytePattern('","event":"ping","source":"lock","ping":{"ping_type":"');
/** In a line that names a credential, these two take the place of {@link TO_TYPE}. */
const TO_CREDENTIAL = bytePattern('","event":"ping","source":"lock","credential":');
const CREDENTIAL_TO_TYPE = bytePattern(',"ping":{"ping_type":"');
const TO_BOOT = bytePattern(',"boot":');
const TO_SEQUENCE = bytePattern(',"sequence":');
const TO_DATE = bytePattern(',"date":"');
const TO_MODE = bytePattern('","power":{"mode":"');
const TO_RIDE_TRACKING = bytePattern(',"ride_tracking":');
const TO_AIRPLANE = bytePattern(',"airplane":');
const TO_RECOVERY = bytePattern(',"recovery":');
const TO_KEPT = bytePattern(',"kept":');
const TO_DROPPED = bytePattern(',"dropped":');

/** What follows the MAC of the lock's own connect, and what comes before the cause of its disconnect. */
const CONNECT = bytePattern('","event":"connect","source":"lock"}');
const TO_CAUSE = bytePattern('","event":"disconnect","source":"lock","cause":"');

const CAUSES = tokensOf<DisconnectCause>('closed', 'dropped', 'keepalive', 'takeover', 'gateway');
const MODES = tokensOf<PowerMode>('MID', 'HIGH');

/** Reads one line at a time. The members have the values of the last line that was read. */
export class CanonicalLine {
  /** The event's time, ms since the epoch. */
  atMs = 0;
  /** The 48 bits of the MAC, and the position of its text. */
  macNumber = 0;
  macStart = 0;
  /** The number of the credential; 0 if the line names none. */
  credential = 0;
  /** What the line says if it is no ping: `connect`, or the cause of a disconnect; null if it is neither. */
  connection: 'connect' | DisconnectCause | null = null;

  readonly #cursor = new LineCursor();
  /** The position of the line's `at`, which the uplink's own date usually equals. */
  #dateStart = 0;
  readonly #powers = new Map<number, PowerSettings>();

  /**
   * Reads the line from `start` up to `end`, exclusive; undefined if it is no ping in the canonical spelling. Then
   * `connection` says whether it is a connect or a disconnect in that spelling.
   */
  read(bytes: Uint8Array, start: number, end: number): PingUplink | undefined {
    const cursor = this.#cursor;
    this.connection = null;
    cursor.start(bytes, start, end);
    if (!cursor.skip(TO_AT)) return undefined;
    this.#dateStart = cursor.at;
    this.atMs = cursor.date();
    cursor.pass(TO_MAC);
    this.macStart = cursor.at;
    this.macNumber = cursor.mac();
    this.credential = 0;
    if (!cursor.skip(TO_TYPE)) {
      if (this.#readConnection(end)) return undefined;
      this.credential = this.#credential();
    }
    if (!cursor.isCanonical) return undefined;
    const ping = readPingLine(cursor);
    if (ping === undefined) return undefined;
    const uplink = this.#envelope(ping);
    return cursor.isCanonical && cursor.at === end ? uplink : undefined;
  }

  /** Returns whether the rest of the line is that of a connect or a disconnect. */
  #readConnection(end: number): boolean {
    const cursor = this.#cursor;
    if (cursor.skip(CONNECT)) {
      if (cursor.isCanonical && cursor.at === end) this.connection = 'connect';
      return true;
    }
    if (!cursor.skip(TO_CAUSE)) return false;
    const cause = cursor.word(CAUSES);
    cursor.close();
    if (cause !== undefined && cursor.isCanonical && cursor.at === end) this.connection = cause;
    return true;
  }

  #credential(): number {
    const cursor = this.#cursor;
    cursor.pass(TO_CREDENTIAL);
    if (!cursor.isCanonical) return 0;
    const credential = cursor.count();
    if (credential < FIRST_CREDENTIAL || credential > MAX_CREDENTIAL) cursor.isCanonical = false;
    cursor.pass(CREDENTIAL_TO_TYPE);
    return credential;
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
    // The ping ends, and then the line.
    cursor.close();
    cursor.close();
    return { boot, sequence, timeMs, power, kept, dropped, body };
  }

  /** There are only 16 different power settings, so each is made once and shared. */
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
    const knownPower = this.#powers.get(key);
    if (knownPower !== undefined) return knownPower;
    const newPower = Object.freeze({ mode, rideTracking, airplane, recovery });
    this.#powers.set(key, newPower);
    return newPower;
  }
}
