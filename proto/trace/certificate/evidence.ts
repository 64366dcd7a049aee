/**
 * Reports which rows of a certificate (row.ts) a trace shows to hold, and in which line. It never reports that a row is
 * broken; the judge's rules do that. Does no I/O: the caller passes a trace's events in order.
 */
import { Minutes } from '../../clock.js';
import { stateRow } from '../../power/judge/state.js';
import type { EffectiveState, PowerModel } from '../../power/model.js';
import type { Mac } from '../../wire/mac.js';
import type { Uplink } from '../../wire/ping.js';
import { SeenUplinksLimit } from '../../wire/seen-uplinks.js';
import { PLAUSIBLE_FROM_MS } from '../../wire/uplink-life.js';
import type { TraceAck, TraceDisconnect, TraceEvent, TraceHeader, TracePing } from '../trace.js';
import { isAsAsked, LockMemory } from './lock-memory.js';
import { notePingOrder } from './order-evidence.js';
import { notePingContent } from './ping-evidence.js';

/** Receives the id of a row that a line shows to hold, and the lock's firmware version; null if not yet reported. */
export type NoteEvidence = (row: string, line: number, firmware: string | null) => void;

/** A lock that sends nothing for this long after it announced its silence counts as silent. */
const SILENCE_MS = Minutes(10);

/** See the top of this file. One for each trace. */
export class Evidence {
  readonly #model: PowerModel;
  readonly #header: TraceHeader;
  readonly #note: NoteEvidence;
  readonly #seenLimit = new SeenUplinksLimit();
  readonly #locks = new Map<Mac, LockMemory>();

  constructor(model: PowerModel, header: TraceHeader, note: NoteEvidence) {
    this.#model = model;
    this.#header = header;
    this.#note = note;
  }

  /** Takes the event of a line. Returns the state in which an uplink of a lock was made; otherwise null. */
  observe(event: TraceEvent, line: number): EffectiveState | null {
    switch (event.event) {
      case 'ping':
        return this.#observePing(event, line);
      case 'ack':
        return this.#observeAck(event, line);
      case 'connect':
        if (event.source === 'lock') this.#lockOf(event.mac).connect();
        return null;
      case 'disconnect':
        if (event.source === 'lock') this.#observeDisconnect(event, line);
        return null;
      case 'command':
        this.#lockOf(event.mac).noteCommand(event.id, event);
        return null;
      case 'gateway':
        for (const lock of this.#locks.values()) lock.isConnected = false;
        return null;
      default:
        return null;
    }
  }

  /** The state in which the lock made its last ping; null if none. @param mac in the form `A4:C1:38:F0:E1:D2` */
  stateOf(mac: string): EffectiveState | null {
    return this.#knownLock(mac)?.state ?? null;
  }

  /** The firmware version that a lock reported last; null if none. @param mac in the form `A4:C1:38:F0:E1:D2` */
  firmwareOf(mac: string): string | null {
    return this.#knownLock(mac)?.firmware ?? null;
  }

  /** Called at the end of the trace: silences that last until then count. */
  end(atMs: number): void {
    for (const lock of this.#locks.values()) this.#noteSilence(lock, atMs);
  }

  /** What is remembered of a lock, by its MAC with colons; undefined if it has had no event. */
  #knownLock(mac: string): LockMemory | undefined {
    // A `Mac` has no colons.
    return this.#locks.get(mac.replaceAll(':', '') as Mac);
  }

  #lockOf(mac: Mac): LockMemory {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      lock = new LockMemory(this.#seenLimit, this.#header.locks.get(mac));
      this.#locks.set(mac, lock);
    }
    return lock;
  }

  #observePing({ mac, source, atMs, uplink }: TracePing, line: number): EffectiveState | null {
    const lock = this.#lockOf(mac);
    const { body } = uplink;
    if (source === 'phone') {
      const isPhonePing = body.kind === 'cellular' && body.reason === 'PHONE' && body.position !== null;
      if (isPhonePing) this.#note('phone-ping', line, lock.firmware);
      return null;
    }
    const { state } = stateRow(this.#model, uplink.power, body.batteryPercent);
    if (lock.seen.note(uplink, line) !== 'new') return state;
    if (body.kind === 'cellular' && body.firmwareVersion !== '') lock.firmware = body.firmwareVersion;
    const note = (row: string): void => this.#note(row, line, lock.firmware);
    this.#noteUplink(lock, atMs, uplink, note);
    notePingContent(state, uplink.power, body, note);
    notePingOrder({ model: this.#model, lock, state, uplink, body, note });
    this.#noteSilence(lock, atMs);
    // `promised` is the lock state that the next ping must report after an acknowledged unlock or lock.
    if (lock.promised !== null && lock.promised === body.lockState) note('acks-true');
    lock.promised = null;
    if (body.kind === 'close_connection') {
      lock.hasClosePing = true;
      this.#announce(lock, state, line, atMs);
    }
    lock.isClosePingLast = body.kind === 'close_connection';
    if (lock.silence !== null && lock.silence.state !== state) lock.silence = null;
    lock.state = state;
    lock.lockState = body.lockState;
    lock.batteryPercent = body.batteryPercent;
    return state;
  }

  #observeAck({ mac, source, atMs, uplink }: TraceAck, line: number): EffectiveState | null {
    const lock = this.#lockOf(mac);
    if (source === 'phone') return null;
    const { state } = stateRow(this.#model, uplink.power, lock.batteryPercent);
    if (lock.seen.note(uplink, line) !== 'new') return state;
    const note = (row: string): void => this.#note(row, line, lock.firmware);
    this.#noteUplink(lock, atMs, uplink, note);
    lock.isClosePingLast = false;
    const { commandId, result } = uplink.body;
    const sent = lock.commands.get(commandId);
    if (sent === undefined) return state;
    const { command, expiresMs } = sent;
    note('acks-asked');
    note(`command-${command.type}`);
    if (expiresMs === undefined || uplink.timeMs <= expiresMs) note('commands-answered');
    if (result !== 'ok') return state;
    if (isAsAsked(uplink.power, command)) note('acks-true');
    if (command.type === 'unlock') lock.promised = 'unlocked';
    if (command.type === 'lock') lock.promised = 'locked';
    return state;
  }

  /** Reports the rows that any uplink can show: about its number, boot, clock and connection. */
  #noteUplink(lock: LockMemory, atMs: number, uplink: Uplink, note: (row: string) => void): void {
    const { before: previous } = lock;
    const { boot, sequence, timeMs } = uplink;
    const { bufferedOver } = this.#model.bounds;
    if (previous?.boot === boot && sequence === previous.sequence + 1) note('sequence-numbers');
    if (previous !== null && boot > previous.boot) note('boot-counter');
    lock.before = { boot, sequence };
    const ageMs = atMs - timeMs;
    if (Math.abs(ageMs) <= bufferedOver) note('clock-true');
    else if (ageMs > bufferedOver && timeMs >= PLAUSIBLE_FROM_MS) note('late-data');
    if (lock.isConnected && lock.hasSeenConnect) note('connected-first');
    lock.uplinkAtMs = atMs;
  }

  #observeDisconnect({ mac, atMs, cause }: TraceDisconnect, line: number): void {
    const lock = this.#lockOf(mac);
    const wasConnected = lock.isConnected;
    lock.isConnected = false;
    lock.networkPingMs = Number.NEGATIVE_INFINITY;
    // A connection that was open before the trace began may have had uplinks that the trace lacks.
    if (!wasConnected || !lock.hasSeenConnect) return;
    const note = (row: string): void => this.#note(row, line, lock.firmware);
    if (lock.isClosePingLast) note('quiet-after-close');
    if (cause !== 'closed') return;
    if (lock.hasClosePing) note('close-announced');
    const isSoon = atMs - lock.uplinkAtMs <= this.#model.bounds.connectionUnexplainedOver;
    if (isSoon && lock.state === 'MID') note('connection-let-go');
  }

  /** Notes a close-connection ping that announces a silent state. */
  #announce(lock: LockMemory, state: EffectiveState, line: number, atMs: number): void {
    if (state !== 'AIRPLANE' && state !== 'LOW_BATTERY') return;
    if (lock.state === null || lock.state === state) return;
    this.#note(state === 'AIRPLANE' ? 'airplane-announced' : 'low-battery-announced', line, lock.firmware);
    lock.silence = { state, line, sinceMs: atMs, isNoted: false };
  }

  /** Reports a silence that has lasted long enough when an uplink or the end of the trace interrupts it at `atMs`. */
  #noteSilence({ silence, firmware }: LockMemory, atMs: number): void {
    if (silence === null || silence.isNoted) return;
    if (atMs - silence.sinceMs >= SILENCE_MS) {
      silence.isNoted = true;
      this.#note(silence.state === 'AIRPLANE' ? 'airplane-silence' : 'low-battery-silence', silence.line, firmware);
    }
    silence.sinceMs = atMs;
  }
}
