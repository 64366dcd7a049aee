/**
 * A digest of values that are mixed in one after the other: two hashes side by side, of which 53 bits are used, which
 * is what fits a number exactly. One digest is made at a time: {@link startDigest}, then any `mix…`, then
 * {@link digest}.
 */

let first = 0;
let second = 0;

const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);

/** Starts a new digest, and gives up the one before. */
export function startDigest(): void {
  first = 0x811c9dc5;
  second = 0x9e3779b9;
}

/** The digest of all that was mixed in since it was started. */
export function digest(): number {
  return (first >>> 0) * 2 ** 21 + (second >>> 11);
}

/** Mixes in a whole number of 32 bits. */
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
