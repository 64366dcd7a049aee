/**
 * Remembers which uplinks of one lock have been seen: by key (boot and sequence), with a fingerprint of the content and
 * the line of the trace. It is for callers without a store. An uplink with a known key is a *repeat* if it has the same
 * content, and a *conflict* if it has other content (protocol.md §1).
 *
 * Sequence numbers are mostly consecutive, so they are stored in chunks. All locks of a trace share one limit on the
 * number of chunks. Beyond it the oldest chunk is forgotten, and its uplinks would count as new.
 */

import type { UplinkNovelty } from '../power/judge/event.js';
import { fingerprintOf } from './fingerprint.js';
import type { Uplink } from './ping.js';

/**
 * Sequence numbers in a chunk: 2 to the power of {@link CHUNK_BITS}. A number's upper bits are the index of its chunk,
 * its lower bits its place in the chunk.
 */
const NUMBERS_PER_CHUNK = 64;
const CHUNK_BITS = 6;

/** Conflicting contents remembered for each lock. Beyond that, a repeat of the oldest counts as a further conflict. */
const MAX_CONFLICTS = 1000;

/** Chunks of all locks together: about 8 million consecutive numbers, in about 150 MB. */
const MAX_CHUNKS = 131_072;

/** 64 consecutive sequence numbers of a boot. */
interface Chunk {
  readonly fingerprints: Float64Array;
  /** The line in which each number came first; 0 for a number that has not been seen. */
  readonly lines: Int32Array;
}

/** The limit on the number of chunks, which the {@link SeenUplinks} of all locks share. */
export class SeenUplinksLimit {
  readonly #forget: (() => void)[] = [];
  #oldest = 0;

  /** Counts one more chunk. If there are too many, calls the `forget` of the oldest. */
  add(forget: () => void): void {
    this.#forget.push(forget);
    if (this.#forget.length - this.#oldest <= MAX_CHUNKS) return;
    this.#forget[this.#oldest]?.();
    this.#oldest += 1;
    // The called functions are removed from the list many at once, because each removal moves the entire list.
    if (this.#oldest < MAX_CHUNKS) return;
    this.#forget.splice(0, this.#oldest);
    this.#oldest = 0;
  }
}

/** See the top of this file. */
export class SeenUplinks {
  readonly #limit: SeenUplinksLimit;
  /** The chunks by boot and by their index. */
  readonly #boots = new Map<number, Map<number, Chunk>>();
  readonly #conflicts = new Set<string>();
  /** The chunk that was used last, which the next uplink nearly always needs too. */
  #lastBoot = -1;
  #lastChunkIndex = -1;
  #lastChunk: Chunk | undefined;

  constructor(limit: SeenUplinksLimit) {
    this.#limit = limit;
  }

  /**
   * Notes the uplink of a `line`, and returns whether its key was used before: with the same content (repeat) or with
   * other content (conflict). Each conflicting content is remembered, so that its repeats are recognised too.
   */
  note(uplink: Uplink, line: number): UplinkNovelty {
    const { boot, sequence } = uplink;
    const chunk = this.#find(boot, sequence) ?? this.#addChunk(boot, sequence >>> CHUNK_BITS);
    const index = sequence & (NUMBERS_PER_CHUNK - 1);
    const fingerprint = fingerprintOf(uplink);
    if (chunk.lines[index] === 0) {
      chunk.lines[index] = line;
      chunk.fingerprints[index] = fingerprint;
      return 'new';
    }
    return chunk.fingerprints[index] === fingerprint ? 'repeat' : this.#noteConflict(boot, sequence, fingerprint);
  }

  /** Whether the key was used with the same content. */
  has(uplink: Uplink): boolean {
    const { boot, sequence } = uplink;
    const chunk = this.#find(boot, sequence);
    const index = sequence & (NUMBERS_PER_CHUNK - 1);
    if (chunk === undefined || chunk.lines[index] === 0) return false;
    const fingerprint = fingerprintOf(uplink);
    return chunk.fingerprints[index] === fingerprint || this.#conflicts.has(`${boot}/${sequence}/${fingerprint}`);
  }

  #noteConflict(boot: number, sequence: number, fingerprint: number): UplinkNovelty {
    const content = `${boot}/${sequence}/${fingerprint}`;
    if (this.#conflicts.has(content)) return 'repeat';
    this.#conflicts.add(content);
    if (this.#conflicts.size > MAX_CONFLICTS) this.#conflicts.delete(this.#conflicts.values().next().value as string);
    return 'conflict';
  }

  /** The line in which the key came first; undefined if the key has not been seen or has been forgotten. */
  lineOf(boot: number, sequence: number): number | undefined {
    return this.#find(boot, sequence)?.lines[sequence & (NUMBERS_PER_CHUNK - 1)] || undefined;
  }

  #find(boot: number, sequence: number): Chunk | undefined {
    const chunkIndex = sequence >>> CHUNK_BITS;
    if (chunkIndex === this.#lastChunkIndex && boot === this.#lastBoot) return this.#lastChunk;
    const chunk = this.#boots.get(boot)?.get(chunkIndex);
    if (chunk !== undefined) this.#setLastChunk(boot, chunkIndex, chunk);
    return chunk;
  }

  #addChunk(boot: number, chunkIndex: number): Chunk {
    let chunks = this.#boots.get(boot);
    if (chunks === undefined) {
      chunks = new Map();
      this.#boots.set(boot, chunks);
    }
    const chunk = { fingerprints: new Float64Array(NUMBERS_PER_CHUNK), lines: new Int32Array(NUMBERS_PER_CHUNK) };
    chunks.set(chunkIndex, chunk);
    this.#setLastChunk(boot, chunkIndex, chunk);
    this.#limit.add(() => this.#forget(boot, chunkIndex));
    return chunk;
  }

  #setLastChunk(boot: number, chunkIndex: number, chunk: Chunk): void {
    this.#lastBoot = boot;
    this.#lastChunkIndex = chunkIndex;
    this.#lastChunk = chunk;
  }

  #forget(boot: number, chunkIndex: number): void {
    const chunks = this.#boots.get(boot);
    chunks?.delete(chunkIndex);
    if (chunks?.size === 0) this.#boots.delete(boot);
    if (boot === this.#lastBoot && chunkIndex === this.#lastChunkIndex) this.#lastChunkIndex = -1;
  }
}
