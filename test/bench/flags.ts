/** What the bench is asked for on its command line. */
import { parseArgs } from 'node:util';

export interface Flags {
  readonly names: readonly string[];
  readonly output: 'table' | 'json' | 'markdown';
  readonly quick: boolean;
  /** The gateway of this row is to be profiled. */
  readonly profile: string | null;
}

/** What was wrong with the flags, or a wish for help: `text` is to be printed instead of measuring. */
export interface NoFlags {
  readonly text: string;
  readonly isHelp: boolean;
}

const OPTIONS = {
  json: { type: 'boolean' },
  markdown: { type: 'boolean' },
  only: { type: 'string' },
  quick: { type: 'boolean' },
  profile: { type: 'string' },
  help: { type: 'boolean' },
} as const;

/** The usage, with the rows that there are. */
function usage(names: readonly string[]): string {
  return [
    'npm run bench -- [--only NAME[,NAME…]] [--quick] [--json | --markdown] [--profile NAME]',
    '',
    '  --only      these rows alone',
    '  --quick     fewer rounds of less: to see that all runs, not for a figure',
    '  --json      one JSON document: machine, versions, rows',
    '  --markdown  the table as docs/performance.md has it',
    '  --profile   this row alone, and a .cpuprofile of its gateway',
    '',
    `Rows: ${names.join(', ')}`,
  ].join('\n');
}

/** Reads the flags; `profiled` are the rows whose gateway can be profiled. */
export function readFlags(
  args: readonly string[],
  names: readonly string[],
  profiled: readonly string[],
): Flags | NoFlags {
  try {
    const { help, json, markdown, only, quick, profile } = parseArgs({ args: [...args], options: OPTIONS }).values;
    if (help === true) return { text: usage(names), isHelp: true };
    if (json === true && markdown === true) throw new Error('Of --json and --markdown only one can be had.');
    if (profile !== undefined && only !== undefined)
      throw new Error('--profile names its row itself: leave out --only.');
    if (profile !== undefined && !profiled.includes(profile))
      throw new Error(`There is no gateway to profile in ${profile}: expected one of ${profiled.join(', ')}.`);
    const chosen = (profile ?? only)?.split(',') ?? names;
    const unknown = chosen.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new Error(`There is no row named ${JSON.stringify(unknown)}.`);
    const output = json === true ? 'json' : markdown === true ? 'markdown' : 'table';
    return { names: chosen, output, quick: quick === true, profile: profile ?? null };
  } catch (error) {
    return { text: `${(error as Error).message}\n\n${usage(names)}`, isHelp: false };
  }
}
