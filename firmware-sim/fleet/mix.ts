/** Which settings the locks of a fleet begin with: shares of modes and switches, as somebody who runs a fleet types. */
import { LockgateError } from '../../proto/errors.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { Begins } from '../world/planned-world.js';

/** One part of a mix, such as `high+ride=20`. */
export interface MixPart {
  /** As it was typed. */
  readonly name: string;
  /** Its share is this, of the sum of all. */
  readonly weight: number;
  readonly begins: Begins;
}

/** The words of which a part's name is made, and what each says. */
const WORDS: Readonly<Record<string, Partial<PowerSettings> & { readonly batteryPercent?: number }>> = {
  mid: { mode: 'MID' },
  high: { mode: 'HIGH' },
  ride: { rideTracking: true },
  recovery: { recovery: true },
  airplane: { airplane: true },
  // Low until somebody charges it, as people do now and then.
  'low-battery': { batteryPercent: 7 },
};

const EXPECTED = `expected parts such as mid=60,high+ride=20, of the words ${Object.keys(WORDS).join(', ')}`;

/**
 * Reads `mid=60,high+ride=20,recovery=5`: names of words joined by +, each with its share. Shares need not sum to 100;
 * one that is left out is 1.
 *
 * @throws LockgateError `input-mix` with what is wrong and what was expected
 */
export function parseMix(text: string): readonly MixPart[] {
  const parts = text.split(',').map(parsePart);
  if (!parts.some(({ weight }) => weight > 0)) throw new LockgateError('input-mix', `no share is above 0: ${EXPECTED}`);
  return parts;
}

function parsePart(text: string): MixPart {
  const [name = '', share = '1', ...more] = text.trim().split('=');
  const weight = Number(share);
  if (share.trim() === '' || !(weight >= 0 && weight <= 1e6) || more.length > 0)
    throw new LockgateError('input-mix', `${JSON.stringify(text)} has no share of 0 or more: ${EXPECTED}`);
  let power: PowerSettings = DEFAULT_POWER;
  let batteryPercent: number | undefined;
  const words = name.split('+');
  if (words.includes('mid') && words.includes('high'))
    throw new LockgateError('input-mix', `${JSON.stringify(name)} is in two modes: ${EXPECTED}`);
  for (const word of words) {
    const says = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (says === undefined) throw new LockgateError('input-mix', `there is no ${JSON.stringify(word)}: ${EXPECTED}`);
    const { batteryPercent: battery = batteryPercent, ...change } = says;
    power = { ...power, ...change };
    batteryPercent = battery;
  }
  return { name, weight, begins: { power, ...(batteryPercent !== undefined && { batteryPercent }) } };
}

/**
 * Deals the parts out to `locks` locks, so that at each point the shares are as near to those wanted as can be: no
 * chance is in it, and the parts are spread over the fleet.
 */
export function dealMix(mix: readonly MixPart[], locks: number): readonly MixPart[] {
  const sum = mix.reduce((total, { weight }) => total + weight, 0);
  const credits = mix.map(() => 0);
  return Array.from({ length: locks }, () => {
    let richest = 0;
    for (const [index, { weight }] of mix.entries()) {
      credits[index] = (credits[index] ?? 0) + weight / sum;
      // A hair's breadth is not worth more than the order: sums of shares are not exact.
      if ((credits[index] ?? 0) > (credits[richest] ?? 0) + 1e-9) richest = index;
    }
    credits[richest] = (credits[richest] ?? 0) - 1;
    return mix[richest] as MixPart;
  });
}
