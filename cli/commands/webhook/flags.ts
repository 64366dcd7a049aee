/** Parsers of flags, mainly of `lockgate webhook`. Each throws commander's InvalidArgumentError. */
import { InvalidArgumentError } from 'commander';

/** Collects the values of a flag that can be repeated. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

/** Parses a port; 0 lets the system choose one. */
export function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new InvalidArgumentError('Expected a port, 0 to 65535.');
}

/** Parses a number or an id from 1 on. */
export function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number, 1 or more.');
}

/** Parses a switch; true for `on`. */
export function readOnOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new InvalidArgumentError('Expected on or off.');
}

const SECONDS_PER_UNIT = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Parses a span such as 90s, 15m, 1h or 2d. Returns seconds. */
export function readSpan(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Number(count) * SECONDS_PER_UNIT[unit as keyof typeof SECONDS_PER_UNIT];
  throw new InvalidArgumentError('Expected a span such as 90s, 15m, 1h or 2d.');
}
