/**
 * Computes a digest of a series of values: {@link startDigest}, then any `mix…`, then {@link digest}. It runs two
 * 32-bit hashes and uses 53 bits of them, which fit a number exactly. The first hash has the constants of FNV-1a, the
 * second those of the golden ratio and MurmurHash3. The state is global, so only one digest can be computed at a time.
 */

let first = 0;
let second = 0;

const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);

/** Starts a new digest and discards the last one. */
export function startDigest(): void {
  first = 0x811c9dc5;
  second = 0x9e3779b9;
}

/** The digest of everything mixed in since the start: an integer below 2⁵³. */
export function digest(): number {
  // All 32 bits of the first hash, then the upper 21 of the second.
  return (first >>> 0) * 2 ** 21 + (second >>> 11);
}

/** Mixes in a 32-bit integer. */
export function mix(value: number): void {
  first = Math.imul(first ^ value, 0x01000193);
  first ^= first >>> 15;
  second = Math.imul(second + value, 0x85ebca6b);
  second ^= second >>> 13;
}

/** Mixes in any number. */
export function mixNumber(value: number): void {
  double[0] = value;
  mix(halves[0] as number);
  mix(halves[1] as number);
}

/** Mixes in a text. */
export function mixText(text: string): void {
  mix(text.length);
  for (let index = 0; index < text.length; index++) mix(text.charCodeAt(index));
}
