/**
 * What a trace reader remembers about each lock: the number that comes next where a line leaves its own out, and the
 * power settings in force (protocol.md §4).
 */

import type { Command, CommandAck, PowerChange, PowerSettings, Source, Uplink } from '../wire/ping.js';
import type { EnvelopeDefaults } from '../wire/ping-from-json.js';

/** Boots of which the greatest number is remembered, for each source. */
const BOOTS_REMEMBERED = 64;

/** Commands that may still be acknowledged. */
const COMMANDS_REMEMBERED = 1024;

/** The boot of a lock that has never named one. */
const FIRST_BOOT = 1;

/** The numbers that one source of uplinks has used. */
class Numbers implements EnvelopeDefaults {
  boot = FIRST_BOOT;
  timeMs = 0;
  power: PowerSettings;
  #greatest = 0;
  readonly #others = new Map<number, number>();

  constructor(power: PowerSettings) {
    this.power = power;
  }

  /** The number after the greatest one used in that boot. */
  nextSequence(boot: number): number {
    return 1 + (boot === this.boot ? this.#greatest : (this.#others.get(boot) ?? 0));
  }

  used(boot: number, sequence: number): void {
    if (boot !== this.boot) {
      this.#others.set(this.boot, this.#greatest);
      if (this.#others.size > BOOTS_REMEMBERED) this.#others.delete(this.#others.keys().next().value as number);
      this.boot = boot;
      this.#greatest = this.#others.get(boot) ?? 0;
    }
    if (sequence > this.#greatest) this.#greatest = sequence;
  }
}

/** See the head of this file. */
export class TraceMemory {
  #power: PowerSettings;
  readonly #lock: Numbers;
  readonly #phone: Numbers;
  readonly #commands = new Map<number, Command>();

  /** @param power of the header, or the default */
  constructor(power: PowerSettings) {
    this.#power = power;
    this.#lock = new Numbers(power);
    this.#phone = new Numbers(power);
  }

  /** What stands for what a line of that source, received at `atMs`, leaves out. It holds until the next call. */
  defaults(source: Source, atMs: number): EnvelopeDefaults {
    const numbers = source === 'lock' ? this.#lock : this.#phone;
    numbers.timeMs = atMs;
    numbers.power = this.#power;
    return numbers;
  }

  /** The same for the acknowledgement of `commandId`: a lock that has carried out a set-power has its settings. */
  ackDefaults(source: Source, atMs: number, commandId: unknown, result: unknown): EnvelopeDefaults {
    const defaults = this.defaults(source, atMs) as Numbers;
    const change = this.changeOf(commandId);
    if (result === 'ok' && change !== undefined) defaults.power = changed(this.#power, change);
    return defaults;
  }

  /** What a command that was sent sets; undefined where it was no set-power. */
  changeOf(commandId: unknown): PowerChange | undefined {
    const command = typeof commandId === 'number' ? this.#commands.get(commandId) : undefined;
    return command?.type === 'set-power' ? command : undefined;
  }

  noteUplink(source: Source, boot: number, sequence: number): void {
    (source === 'lock' ? this.#lock : this.#phone).used(boot, sequence);
  }

  noteCommand(id: number, command: Command): void {
    this.#commands.set(id, command);
    if (this.#commands.size > COMMANDS_REMEMBERED) this.#commands.delete(this.#commands.keys().next().value as number);
  }

  /** The settings of a set-power that the lock acknowledged hold from here on; a phone can't speak for its power. */
  noteAck(source: Source, ack: Uplink<CommandAck>): void {
    if (source === 'lock' && ack.body.result === 'ok' && this.changeOf(ack.body.commandId) !== undefined)
      this.#power = ack.power;
  }
}

function changed(power: PowerSettings, change: PowerChange): PowerSettings {
  return {
    mode: change.mode ?? power.mode,
    rideTracking: change.rideTracking ?? power.rideTracking,
    airplane: change.airplane ?? power.airplane,
    recovery: change.recovery ?? power.recovery,
  };
}
