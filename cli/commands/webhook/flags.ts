/** Parsers of flags of `lockgate webhook`. Each throws commander's InvalidArgumentError. */
import { InvalidArgumentError } from 'commander';

/** For a flag that can be repeated. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

export function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new InvalidArgumentError('Expected a port, 0 to 65535.');
}

export function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a number from 1 on.');
}

export function readOnOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new InvalidArgumentError('Expected on or off.');
}

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** A span such as 90s, 15m, 1h or 2d, in seconds. */
export function readSpan(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Number(count) * SECONDS[unit as keyof typeof SECONDS];
  throw new InvalidArgumentError('Expected a span such as 90s, 15m, 1h or 2d.');
}
