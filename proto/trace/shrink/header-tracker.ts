/**
 * Follows one lock through the events of a trace. From that it makes the lock's entry in the header of a trace that
 * starts later. Does no I/O and does not judge the events.
 */
import type { EarlierCommand } from '../../power/judge/belief.js';
import { POWER_MODEL } from '../../power/model.js';
import type { CommandAck, PingUplink, Uplink } from '../../wire/ping.js';
import type { TraceEvent, TraceLock } from '../trace.js';

const { periodSequenceSpan, locateWithin, locateSlack } = POWER_MODEL.bounds;
/** A day's period pings come in one burst of at most this length, called a sequence (protocol.md §3). */
const MAX_PERIOD_BURST_MS = periodSequenceSpan;
/**
 * For this long after it was sent, a command can explain a position (locate-unasked): the slack counts once for the
 * lock's clock, and once for a ping that arrives late. A header lists these commands, and those that have not expired.
 */
const EXPLAINS_POSITION_MS = locateWithin + 2 * locateSlack;
/** Maximum number of commands that are remembered; the judge remembers no more. */
const MAX_COMMANDS = 64;

/** See the top of this file. */
export class HeaderTracker {
  #lock: TraceLock;
  #commands: EarlierCommand[];
  /** Whether the original header lists the commands sent before the trace. */
  #hasCommands: boolean;
  /** The time of the first event. */
  #fromMs: number | null = null;
  #boot = 0;
  #sequence = 0;

  /** @param lock the lock before the first event */
  constructor(lock: TraceLock) {
    this.#lock = lock;
    this.#commands = [...(lock.commands ?? [])];
    this.#hasCommands = lock.commands !== undefined;
  }

  /** The header's entry for a trace that starts at `atMs`. Omits the commands if not all that can matter are known. */
  lockAt(atMs: number): TraceLock {
    const { commands: _, ...lock } = this.#lock;
    // If the trace began that long ago, every command that can explain a position was sent in it. A command from before
    // the trace may live longer; its acknowledgement is then an ack-unasked that the whole trace does not have, for
    // which shrink.ts rejects the header.
    const knowsLocates = this.#fromMs !== null && atMs - this.#fromMs >= EXPLAINS_POSITION_MS;
    if (!this.#hasCommands && !knowsLocates) return lock;
    const commands = this.#commands.filter(
      (command) => atMs - command.atMs <= EXPLAINS_POSITION_MS || (command.expiresMs ?? 0) > atMs,
    );
    return { ...lock, commands };
  }

  /** Takes the next event of the lock, or the next event that is about no lock. */
  note(event: TraceEvent): void {
    this.#fromMs ??= event.atMs;
    if ('source' in event && event.source === 'phone') return;
    switch (event.event) {
      case 'connect':
        this.#lock = { ...this.#lock, connected: true };
        break;
      case 'disconnect':
        this.#lock = { ...this.#lock, connected: false };
        break;
      case 'gateway':
        this.#lock = { ...this.#lock, connected: false };
        break;
      case 'ping':
      case 'ack':
        this.#noteUplink(event.uplink);
        break;
      case 'command': {
        const { id, command, atMs, expiresMs } = event;
        this.#commands.push({ id, command, atMs, ...(expiresMs !== undefined && { expiresMs }) });
        if (this.#commands.length > MAX_COMMANDS) this.#commands.shift();
        break;
      }
      case 'tick':
      case 'world':
        break;
    }
  }

  #noteUplink(uplink: PingUplink | Uplink<CommandAck>): void {
    const { boot, sequence, body, timeMs, power } = uplink;
    if (body.kind !== 'ack' && body.reason === 'REASON_PERIOD_TRACKING') {
      const lastMs = this.#lock.lastPeriodMs ?? Number.NEGATIVE_INFINITY;
      if (timeMs - lastMs > MAX_PERIOD_BURST_MS) this.#lock = { ...this.#lock, lastPeriodMs: timeMs };
    }
    // A late uplink says nothing about the present.
    if (boot < this.#boot || (boot === this.#boot && sequence < this.#sequence)) return;
    this.#boot = boot;
    this.#sequence = sequence;
    this.#lock = { ...this.#lock, power };
    if (body.kind !== 'ack') this.#lock = { ...this.#lock, lockState: body.lockState };
    else if (body.result === 'ok' && body.highWindow !== null)
      this.#lock = { ...this.#lock, highWindow: body.highWindow };
  }
}
