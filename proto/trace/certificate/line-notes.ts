/**
 * Remembers, in one byte for each line of a trace, the reason of the line's uplink, the power state that it reports,
 * and whether other firmware than the certified one made it. A finding (a broken rule) names only a line, which may
 * have been read long before. The note of that line tells which rows of the certificate (its requirements) the finding
 * concerns. Does no I/O.
 */
import type { EffectiveState, PowerModel } from '../../power/model.js';
import { type KnownReason, REASONS, type Reason } from '../../wire/reasons.js';

/** Lines in a chunk. A chunk without uplinks takes no memory. */
const LINES_PER_CHUNK = 65_536;

/** Maximum number of lines, and of bytes. A finding about a later line counts for every row that its rule can fail. */
const MAX_LINES = 64 * 1024 * 1024;

/** This bit marks an uplink that other firmware than the certified one made. */
const OTHER_FIRMWARE = 128;

/** What is remembered of an uplink. */
export interface LineNote {
  /** The power state in effect, by the lock's settings and battery. */
  readonly state: EffectiveState;
  /** Null for an acknowledgement, and for a reason outside the specification. */
  readonly reason: KnownReason | null;
  readonly isOtherFirmware: boolean;
}

/** The reasons of the specification. A lock may send others, which are noted as null. */
const REASON_NAMES: readonly Reason[] = REASONS.map(({ name }) => name);

/** See the top of this file. */
export class LineNotes {
  readonly #states: readonly EffectiveState[];
  readonly #chunks: (Uint8Array | undefined)[] = [];

  constructor(model: PowerModel) {
    this.#states = model.states.map(({ state }) => state);
  }

  /** Notes the uplink of a line. @param reason null for an acknowledgement */
  note(line: number, state: EffectiveState, reason: Reason | null, isOtherFirmware: boolean): void {
    if (line >= MAX_LINES) return;
    const index = Math.floor(line / LINES_PER_CHUNK);
    let chunk = this.#chunks[index];
    if (chunk === undefined) {
      chunk = new Uint8Array(LINES_PER_CHUNK);
      this.#chunks[index] = chunk;
    }
    // 0 means that nothing was noted. Reason and state together are one number: with 5 states and fewer than 24 reasons
    // it is below 128, the bit of other firmware.
    const reasonIndex = reason === null ? -1 : REASON_NAMES.indexOf(reason);
    const code = 1 + (reasonIndex + 1) * this.#states.length + this.#states.indexOf(state);
    chunk[line % LINES_PER_CHUNK] = code | (isOtherFirmware ? OTHER_FIRMWARE : 0);
  }

  /** What was noted of a line; null if nothing was. */
  of(line: number): LineNote | null {
    const byte = this.#chunks[Math.floor(line / LINES_PER_CHUNK)]?.[line % LINES_PER_CHUNK] ?? 0;
    if (byte === 0) return null;
    const code = (byte & ~OTHER_FIRMWARE) - 1;
    const reasonIndex = Math.floor(code / this.#states.length) - 1;
    return {
      state: this.#states[code % this.#states.length] as EffectiveState,
      reason: (REASON_NAMES[reasonIndex] ?? null) as KnownReason | null,
      isOtherFirmware: (byte & OTHER_FIRMWARE) !== 0,
    };
  }
}
