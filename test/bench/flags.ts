/** Parses the command line of the bench. */
import { parseArgs } from 'node:util';

/** The command line, checked. */
export interface Flags {
  /** The bench rows to measure. */
  readonly names: readonly string[];
  readonly output: 'table' | 'json' | 'markdown';
  readonly quick: boolean;
  /** The row whose gateway is profiled; null for none. */
  readonly profile: string | null;
  /** Of the row `neighbour`, only the floods whose names contain this text; null for all. */
  readonly flood: string | null;
}

/** The text to print instead of measuring: help, or an error in the flags. */
export interface UsageMessage {
  readonly text: string;
  readonly isHelp: boolean;
}

const OPTIONS = {
  json: { type: 'boolean' },
  markdown: { type: 'boolean' },
  only: { type: 'string' },
  quick: { type: 'boolean' },
  profile: { type: 'string' },
  flood: { type: 'string' },
  help: { type: 'boolean' },
} as const;

/** The help text, with the names of all rows. */
function usage(names: readonly string[]): string {
  return [
    'npm run bench -- [--only NAME[,NAME…]] [--quick] [--json | --markdown] [--profile NAME] [--flood TEXT]',
    '',
    '  --only      only these rows',
    '  --quick     fewer and shorter rounds: to see that everything runs, not for figures',
    '  --json      one JSON document: machine, versions, rows',
    '  --markdown  the table for docs/performance.md',
    '  --profile   only this row, with a .cpuprofile of its gateway',
    '  --flood     of the row neighbour, only floods whose names contain this text, such as "/v1/events"',
    '',
    `Rows: ${names.join(', ')}`,
  ].join('\n');
}

/** Parses the flags; `names` are all bench rows, `profiled` those whose gateway can be profiled. */
export function readFlags(
  args: readonly string[],
  names: readonly string[],
  profiled: readonly string[],
): Flags | UsageMessage {
  try {
    const { values } = parseArgs({ args: [...args], options: OPTIONS });
    const { help, json, markdown, only, quick, profile, flood } = values;
    if (help === true) return { text: usage(names), isHelp: true };
    if (json === true && markdown === true) throw new Error('Choose --json or --markdown, not both.');
    if (profile !== undefined && only !== undefined) throw new Error('--profile selects the row: leave out --only.');
    if (profile !== undefined && !profiled.includes(profile))
      throw new Error(`There is no gateway to profile in ${profile}: expected one of ${profiled.join(', ')}.`);
    const chosen = (profile ?? only)?.split(',') ?? names;
    const unknown = chosen.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new Error(`There is no row named ${JSON.stringify(unknown)}.`);
    const output = json === true ? 'json' : markdown === true ? 'markdown' : 'table';
    return { names: chosen, output, quick: quick === true, profile: profile ?? null, flood: flood ?? null };
  } catch (error) {
    return { text: `${(error as Error).message}\n\n${usage(names)}`, isHelp: false };
  }
}
