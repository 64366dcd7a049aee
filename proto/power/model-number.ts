/** Writes a number of the power model with its unit, for people. Pure. */
import type { Milliseconds } from '../clock.js';
import { describeSpan } from './judge/words.js';

/** A time or bound of the model, such as `5 min`. @param name its name in the model, which says what it counts */
export function describeModelNumber(name: string, value: number | readonly Milliseconds[]): string {
  if (typeof value !== 'number') return value.map(describeSpan).join(', ');
  if (name === 'retryJitter') return `± ${value * 100} %`;
  if (name === 'gapPatienceUplinks') return `${value} uplinks`;
  if (name === 'frozenPings') return `${value} pings`;
  return name.endsWith('Speed') ? `${value} m/s` : describeSpan(value);
}
