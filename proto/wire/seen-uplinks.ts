/**
 * Which uplinks of one lock have been seen: by key, with a fingerprint of the content and the line of the trace. It is
 * for callers without a store, and distinguishes a repeat from a conflict (protocol.md §1).
 *
 * Numbers mostly follow each other, so they are held in chunks of neighbours. All locks of a trace share one bound on
 * chunks; beyond it the oldest chunk is forgotten, and an uplink of it would count as new.
 */

import type { UplinkCopy } from '../power/judge/event.js';
import { fingerprintOf } from './fingerprint.js';
import type { Uplink } from './ping.js';

/** Numbers in a chunk; a power of two. */
const CHUNK_NUMBERS = 64;
const CHUNK_BITS = 6;

/** Conflicting contents remembered for each lock; beyond them, a repeat of the oldest counts as one more conflict. */
const CONFLICTS_MOST = 1000;

/** Chunks in all: some 8 million numbers that follow each other, in some 150 MB. */
const CHUNKS_MOST = 131_072;

interface Chunk {
  readonly digests: Float64Array;
  /** 0 where the number has not been seen. */
  readonly lines: Int32Array;
}

/** The bound that several {@link SeenUplinks} share. */
export class SeenUplinksBound {
  readonly #forget: (() => void)[] = [];
  #oldest = 0;

  /** Counts one more chunk, and has the oldest forgotten where there are too many. */
  add(forget: () => void): void {
    this.#forget.push(forget);
    if (this.#forget.length - this.#oldest <= CHUNKS_MOST) return;
    this.#forget[this.#oldest]?.();
    this.#oldest += 1;
    if (this.#oldest < CHUNKS_MOST) return;
    this.#forget.splice(0, this.#oldest);
    this.#oldest = 0;
  }
}

/** See the head of this file. */
export class SeenUplinks {
  readonly #bound: SeenUplinksBound;
  readonly #boots = new Map<number, Map<number, Chunk>>();
  readonly #conflicts = new Set<string>();
  #boot = -1;
  #place = -1;
  #chunk: Chunk | undefined;

  constructor(bound: SeenUplinksBound) {
    this.#bound = bound;
  }

  /**
   * Notes the uplink of a `line`, and returns whether its key was used before. Each content of a key is one event
   * (protocol.md §3), and the same content again is a repeat, whichever came first.
   */
  note(uplink: Uplink, line: number): UplinkCopy {
    const { boot, sequence } = uplink;
    const chunk = this.#find(boot, sequence) ?? this.#make(boot, sequence >>> CHUNK_BITS);
    const index = sequence & (CHUNK_NUMBERS - 1);
    const digest = fingerprintOf(uplink);
    if (chunk.lines[index] === 0) {
      chunk.lines[index] = line;
      chunk.digests[index] = digest;
      return 'new';
    }
    return chunk.digests[index] === digest ? 'repeat' : this.#noteOther(boot, sequence, digest);
  }

  /** Whether the key was used with the same content. */
  has(uplink: Uplink): boolean {
    const { boot, sequence } = uplink;
    const chunk = this.#find(boot, sequence);
    const index = sequence & (CHUNK_NUMBERS - 1);
    if (chunk === undefined || chunk.lines[index] === 0) return false;
    const digest = fingerprintOf(uplink);
    return chunk.digests[index] === digest || this.#conflicts.has(`${boot}/${sequence}/${digest}`);
  }

  #noteOther(boot: number, sequence: number, digest: number): UplinkCopy {
    const content = `${boot}/${sequence}/${digest}`;
    if (this.#conflicts.has(content)) return 'repeat';
    this.#conflicts.add(content);
    if (this.#conflicts.size > CONFLICTS_MOST) this.#conflicts.delete(this.#conflicts.values().next().value as string);
    return 'conflict';
  }

  /** The line in which the key came first; undefined where it has not been seen, or is forgotten. */
  lineOf(boot: number, sequence: number): number | undefined {
    return this.#find(boot, sequence)?.lines[sequence & (CHUNK_NUMBERS - 1)] || undefined;
  }

  #find(boot: number, sequence: number): Chunk | undefined {
    const place = sequence >>> CHUNK_BITS;
    if (place === this.#place && boot === this.#boot) return this.#chunk;
    const chunk = this.#boots.get(boot)?.get(place);
    if (chunk !== undefined) this.#remember(boot, place, chunk);
    return chunk;
  }

  #make(boot: number, place: number): Chunk {
    let chunks = this.#boots.get(boot);
    if (chunks === undefined) {
      chunks = new Map();
      this.#boots.set(boot, chunks);
    }
    const chunk = { digests: new Float64Array(CHUNK_NUMBERS), lines: new Int32Array(CHUNK_NUMBERS) };
    chunks.set(place, chunk);
    this.#remember(boot, place, chunk);
    this.#bound.add(() => this.#forget(boot, place));
    return chunk;
  }

  #remember(boot: number, place: number, chunk: Chunk): void {
    this.#boot = boot;
    this.#place = place;
    this.#chunk = chunk;
  }

  #forget(boot: number, place: number): void {
    const chunks = this.#boots.get(boot);
    chunks?.delete(place);
    if (chunks?.size === 0) this.#boots.delete(boot);
    if (boot === this.#boot && place === this.#place) this.#place = -1;
  }
}
