/**
 * The mix of a fleet: which shares of its locks start with which settings. Reads a mix as an operator types it, and
 * assigns its parts to locks. Pure.
 */
import { LockgateError } from '../../proto/errors.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { InitialSettings } from '../world/planned-world.js';

/** One part of a mix, such as `high+ride=20`. */
export interface MixPart {
  /** As typed. */
  readonly name: string;
  /** The part's share, relative to the weights of all parts. */
  readonly weight: number;
  readonly initial: InitialSettings;
}

/** The words that make up a part's name, and their settings. */
const WORDS: Readonly<Record<string, Partial<PowerSettings> & { readonly batteryPercent?: number }>> = {
  mid: { mode: 'MID' },
  high: { mode: 'HIGH' },
  ride: { rideTracking: true },
  recovery: { recovery: true },
  airplane: { airplane: true },
  // Low until the owner charges the battery.
  'low-battery': { batteryPercent: 7 },
};

const EXPECTED = `expected parts such as mid=60,high+ride=20, of the words ${Object.keys(WORDS).join(', ')}`;

/**
 * Reads `mid=60,high+ride=20,recovery=5`: words joined by +, and a share. Shares need not add up to 100; a
 * missing share is 1.
 *
 * @throws LockgateError `input-mix` that says what is wrong and what was expected
 */
export function parseMix(text: string): readonly MixPart[] {
  const parts = text.split(',').map(parsePart);
  if (!parts.some(({ weight }) => weight > 0)) throw new LockgateError('input-mix', `no share is above 0: ${EXPECTED}`);
  return parts;
}

function parsePart(text: string): MixPart {
  const [name = '', shareText = '1', ...excess] = text.trim().split('=');
  const weight = Number(shareText);
  if (shareText.trim() === '' || !(weight >= 0 && weight <= 1e6) || excess.length > 0)
    throw new LockgateError('input-mix', `${JSON.stringify(text)} has no share of 0 or more: ${EXPECTED}`);
  let power: PowerSettings = DEFAULT_POWER;
  let batteryPercent: number | undefined;
  const words = name.split('+');
  if (words.includes('mid') && words.includes('high'))
    throw new LockgateError('input-mix', `${JSON.stringify(name)} has two modes: ${EXPECTED}`);
  for (const word of words) {
    const settings = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (settings === undefined) throw new LockgateError('input-mix', `${JSON.stringify(word)} is unknown: ${EXPECTED}`);
    const { batteryPercent: wordBatteryPercent, ...change } = settings;
    power = { ...power, ...change };
    batteryPercent = wordBatteryPercent ?? batteryPercent;
  }
  return { name, weight, initial: { power, ...(batteryPercent !== undefined && { batteryPercent }) } };
}

/**
 * Assigns the parts to locks, deterministically and evenly: after any number of locks the shares are as close as
 * possible to the wanted shares.
 */
export function assignMix(mix: readonly MixPart[], locks: number): readonly MixPart[] {
  const totalWeight = mix.reduce((subtotal, { weight }) => subtotal + weight, 0);
  // By how many locks each part has fewer than its exact share. The part with the largest shortfall gets the next lock.
  const shortfalls = mix.map(() => 0);
  return Array.from({ length: locks }, () => {
    let largest = 0;
    for (const [index, { weight }] of mix.entries()) {
      shortfalls[index] = (shortfalls[index] ?? 0) + weight / totalWeight;
      // Sums of shares are not exact: a rounding error must not change the order.
      if ((shortfalls[index] ?? 0) > (shortfalls[largest] ?? 0) + 1e-9) largest = index;
    }
    shortfalls[largest] = (shortfalls[largest] ?? 0) - 1;
    return mix[largest] as MixPart;
  });
}
