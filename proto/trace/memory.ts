/**
 * What a trace reader remembers about each lock, to fill in members that a line omits: the next sequence number and the
 * power settings in force (protocol.md §4).
 */

import type { Command, CommandAck, PowerChange, PowerSettings, Source, Uplink } from '../wire/ping.js';
import type { EnvelopeDefaults } from '../wire/ping-from-json.js';
import { FIRST_CREDENTIAL } from './trace.js';

/** Boots whose greatest sequence number is remembered, for each sender. */
const MAX_BOOTS = 64;

/** Senders remembered besides the first credential of the lock. */
const MAX_SENDERS = 64;

/** Commands remembered for their acknowledgements. */
const MAX_COMMANDS = 1024;

/** The boot of an uplink if no line of the lock has given a boot. */
const FIRST_BOOT = 1;

/** Who sent an uplink: the lock or a phone, with which of its credentials. */
export interface Sender {
  readonly source: Source;
  /** From {@link FIRST_CREDENTIAL}. */
  readonly credential: number;
}

/**
 * The sequence numbers that one sender of uplinks has used. {@link TraceMemory.defaults} returns this same object for
 * every line, with the other members set, instead of a new one.
 */
class SequenceNumbers implements EnvelopeDefaults {
  boot = FIRST_BOOT;
  timeMs = 0;
  power: PowerSettings;
  #greatestOfBoot = 0;
  readonly #greatestOfOtherBoots = new Map<number, number>();

  constructor(power: PowerSettings) {
    this.power = power;
  }

  /** The number after the greatest one used in that boot. */
  nextSequence(boot: number): number {
    return 1 + (boot === this.boot ? this.#greatestOfBoot : (this.#greatestOfOtherBoots.get(boot) ?? 0));
  }

  noteUsed(boot: number, sequence: number): void {
    if (boot !== this.boot) {
      this.#greatestOfOtherBoots.set(this.boot, this.#greatestOfBoot);
      if (this.#greatestOfOtherBoots.size > MAX_BOOTS)
        this.#greatestOfOtherBoots.delete(this.#greatestOfOtherBoots.keys().next().value as number);
      this.boot = boot;
      this.#greatestOfBoot = this.#greatestOfOtherBoots.get(boot) ?? 0;
    }
    if (sequence > this.#greatestOfBoot) this.#greatestOfBoot = sequence;
  }
}

/** See the top of this file. Each map drops its oldest key, which comes first, when it has too many. */
export class TraceMemory {
  #power: PowerSettings;
  readonly #lockNumbers: SequenceNumbers;
  /** The numbers of phones, and of all but the first credential of the lock. */
  readonly #otherNumbers = new Map<string, SequenceNumbers>();
  readonly #commands = new Map<number, Command>();

  /** @param power the settings of the trace's header, or the default ones */
  constructor(power: PowerSettings) {
    this.#power = power;
    this.#lockNumbers = new SequenceNumbers(power);
  }

  /** The values of omitted members for an uplink of that sender, received at `atMs`. Valid until the next call. */
  defaults(sender: Sender, atMs: number): EnvelopeDefaults {
    const sequenceNumbers = this.#numbersOf(sender);
    sequenceNumbers.timeMs = atMs;
    sequenceNumbers.power = this.#power;
    return sequenceNumbers;
  }

  /** The same for the acknowledgement of `commandId`. If that is a set-power that succeeded, its settings apply. */
  ackDefaults(sender: Sender, atMs: number, commandId: unknown, result: unknown): EnvelopeDefaults {
    // What `defaults` returns is always of this class.
    const defaults = this.defaults(sender, atMs) as SequenceNumbers;
    const change = this.changeOf(commandId);
    if (result === 'ok' && change !== undefined) defaults.power = applyChange(this.#power, change);
    return defaults;
  }

  /** The change that a set-power command asked for; undefined for any other command and for an unknown id. */
  changeOf(commandId: unknown): PowerChange | undefined {
    const command = typeof commandId === 'number' ? this.#commands.get(commandId) : undefined;
    return command?.type === 'set-power' ? command : undefined;
  }

  noteUplink(sender: Sender, boot: number, sequence: number): void {
    this.#numbersOf(sender).noteUsed(boot, sequence);
  }

  #numbersOf({ source, credential }: Sender): SequenceNumbers {
    if (source === 'lock' && credential === FIRST_CREDENTIAL) return this.#lockNumbers;
    const key = `${source} ${credential}`;
    const known = this.#otherNumbers.get(key);
    if (known !== undefined) return known;
    const added = new SequenceNumbers(this.#power);
    this.#otherNumbers.set(key, added);
    if (this.#otherNumbers.size > MAX_SENDERS)
      this.#otherNumbers.delete(this.#otherNumbers.keys().next().value as string);
    return added;
  }

  noteCommand(id: number, command: Command): void {
    this.#commands.set(id, command);
    if (this.#commands.size > MAX_COMMANDS) this.#commands.delete(this.#commands.keys().next().value as number);
  }

  /** If the lock acknowledges a set-power, its settings apply from now on. A phone can't report the lock's power. */
  noteAck(source: Source, ack: Uplink<CommandAck>): void {
    if (source === 'lock' && ack.body.result === 'ok' && this.changeOf(ack.body.commandId) !== undefined)
      this.#power = ack.power;
  }
}

function applyChange(power: PowerSettings, change: PowerChange): PowerSettings {
  return {
    mode: change.mode ?? power.mode,
    rideTracking: change.rideTracking ?? power.rideTracking,
    airplane: change.airplane ?? power.airplane,
    recovery: change.recovery ?? power.recovery,
  };
}
