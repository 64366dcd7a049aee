/**
 * The flags of `lockgate trace check`, in the order of its help. A new flag is a member of `CheckFlags` and an option.
 */
import { type Command, Option } from 'commander';
import { appendValue } from '../command-line.js';

/** The formats of the report. */
export const FORMATS = ['text', 'json', 'junit', 'github', 'html'] as const;
/** The name of a format. */
export type FormatName = (typeof FORMATS)[number];

/** The flags as commander parses them. */
export interface CheckFlags {
  readonly coverage?: boolean;
  readonly format?: FormatName;
  readonly json?: boolean;
  readonly junit?: boolean;
  /** Undefined if not given: then a text report with many findings has a summary. */
  readonly summary?: boolean;
  readonly failOn: 'violation' | 'warning';
  readonly ignore: readonly string[];
  /** Rows of the certificate that the traces must show: ids separated by commas. */
  readonly require: readonly string[];
  /** A file of known findings. */
  readonly baseline?: string;
  /** A trace with events of the simulated world: what truly happened around the locks. */
  readonly world?: string;
}

/** The format of the report that the flags select. */
export function formatOf({ format, json, junit }: CheckFlags): FormatName {
  return json ? 'json' : junit ? 'junit' : (format ?? 'text');
}

/** Adds the flags to the command, and returns the command. */
export function addCheckOptions(command: Command): Command {
  return command
    .option('--coverage', 'Show which states, triggers and reasons the traces cover.')
    .addOption(
      new Option('--format <format>', 'The report: github prints workflow commands, html one page (default: text).')
        .choices([...FORMATS])
        .conflicts(['json', 'junit']),
    )
    .addOption(new Option('--json', 'Print one JSON document; the same as --format json.').conflicts('junit'))
    .addOption(new Option('--junit', 'Print JUnit XML: a suite per file, a case per rule.'))
    .option('--summary', 'Count findings by rule, lock and firmware (text: on if there are many).')
    .option('--no-summary', 'Print no summary.')
    .addOption(
      new Option('--fail-on <severity>', 'Exit with 1 for findings of at least this severity.')
        .choices(['violation', 'warning'])
        .default('violation'),
    )
    .option('--ignore <rule>', 'Ignore findings of this rule; can be repeated.', appendValue, [])
    .option('--require <rows>', 'Exit with 1 unless these rows are seen, by id: see "trace certify".', appendValue, [])
    .option('--baseline <file>', 'Leave out the findings of this file, which --json printed before.')
    .option(
      '--world <trace>',
      'Find uplinks that are missing, given the world events of this trace (may be the same file).',
    );
}
