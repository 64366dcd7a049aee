/** Files that are kept under another name, for whoever wants to know afterwards what was wrong. */
import { existsSync } from 'node:fs';
import { systemClock } from '../../../../proto/clock.js';

/** A name that is free, for what `file` holds: with the time (UTC) at its end. */
export function asideName(file: string): string {
  const time = new Date(systemClock.now()).toISOString().replaceAll(':', '-').replace(/\.\d+/, '');
  const name = `${file}.failed.${time}`;
  let free = name;
  for (let number = 2; existsSync(free); number += 1) free = `${name}-${number}`;
  return free;
}
