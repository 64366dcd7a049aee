/** Describes a run of the simulator: its options with the seed first, and the command that repeats the run. */
import type { SimFlags } from './flags.js';

/** The default number of locks. */
export const DEFAULT_LOCKS = 12;
/** The default length of a virtual run. */
export const DEFAULT_DAYS = 1;
/** The default start of virtual runs: a fixed Monday, so that runs can be repeated. */
export const DEFAULT_START = '2026-01-05T00:00:00Z';

/** Seed and options in a few words. */
export function describeRun(flags: SimFlags, locks: number): string {
  const parts = [`seed ${flags.seed}`, plural(locks, 'lock')];
  if (flags.virtual) parts.push(plural(flags.days ?? DEFAULT_DAYS, 'day'), `from ${flags.start ?? DEFAULT_START}`);
  else parts.push(flags.days === undefined ? 'until Ctrl-C' : plural(flags.days, 'day'), `${flags.speed} × speed`);
  parts.push(flags.pace);
  if (flags.mix !== undefined) parts.push(`mix ${flags.mix}`);
  if (flags.route !== undefined) parts.push(`along ${flags.route}`);
  if (flags.around !== undefined) parts.push(`around ${flags.around}`);
  if (flags.bug.length > 0) parts.push(`bugs ${flags.bug.join(' ')}`);
  if (flags.fault.length > 0) parts.push(`faults ${flags.fault.join(' ')}`);
  return parts.join(', ');
}

/** A number and its noun, with an s unless the number is 1. */
export function plural(count: number, noun: string): string {
  // The number may be a fraction, such as of a day.
  return `${count.toLocaleString('en-US', { maximumFractionDigits: 10 })} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * The command that repeats the run.
 *
 * @param includeOut whether to include --out, which does not affect the trace's content
 */
export function repeatCommand(flags: SimFlags, includeOut = true): string {
  const words = ['lockgate sim run'];
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) words.push(`${flag} ${quoteForShell(String(value))}`);
  };
  if (flags.virtual) words.push('--virtual');
  add('--from-trace', flags.fromTrace);
  // What happens to the locks comes from the trace, or else from the seed and its options.
  if (flags.fromTrace === undefined) {
    add('--locks', flags.locks ?? (flags.secrets === undefined ? DEFAULT_LOCKS : undefined));
    add('--days', flags.days ?? (flags.virtual ? DEFAULT_DAYS : undefined));
    add('--seed', flags.seed);
    if (flags.pace !== 'everyday') add('--pace', flags.pace);
    add('--mix', flags.mix);
    add('--route', flags.route);
    add('--around', flags.around);
    for (const bug of flags.bug) add('--bug', bug);
    for (const fault of flags.fault) add('--fault', fault);
    add('--start', flags.start);
  }
  if (flags.world) words.push('--world');
  if (!flags.virtual) {
    if (flags.speed !== 1) add('--speed', flags.speed);
    add('--gateway', flags.gateway);
    add('--data', flags.data);
    add('--secrets', flags.secrets);
    add('--merchant', flags.merchant);
    add('--ca', flags.ca);
  }
  if (includeOut) add('--out', flags.out);
  return words.join(' ');
}

/** Quoted for a shell where necessary. */
export function quoteForShell(text: string): string {
  return /^[\w.,:=@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The options for `--json`, the seed first. */
export function runToJson(flags: SimFlags, locks: number): Record<string, unknown> {
  return {
    seed: flags.seed,
    virtual: flags.virtual ?? false,
    locks,
    days: flags.days ?? (flags.virtual ? DEFAULT_DAYS : null),
    ...(flags.virtual ? { start: flags.start ?? DEFAULT_START } : { speed: flags.speed }),
    pace: flags.pace,
    mix: flags.mix ?? null,
    route: flags.route ?? null,
    around: flags.around ?? null,
    bugs: flags.bug,
    faults: flags.fault,
  };
}
