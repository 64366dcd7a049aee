// What the cases of commands have in common: their type, and parts of arguments and output.
import type { RunningCommand } from '../../cli/command-line.js';
import type { CommandSite } from '../command-site.js';

/** The calls of one command. */
export interface CommandCase {
  readonly command: string;
  /** The arguments of the call for people, on a terminal of 80 columns; or why there is no such call. */
  readonly shows: string | { readonly reason: string };
  /** The arguments of the call with --json; by default those of `shows`; null for a command without --json. */
  readonly json?: string | null;
  /** Wrong arguments (exit code 2), and the expected error. */
  readonly wrong: readonly [args: string, error: RegExp];
  /** Arguments with a negative answer: exit code 1. */
  readonly negative?: string;
  /** Arguments that the gateway refuses: exit code 3. */
  readonly refused?: string;
  /** The arguments of the call without a gateway; by default those of `shows`, for commands with --gateway. */
  readonly withoutGateway?: string;
  /** What the calls read from their standard input. */
  readonly stdin?: string;
  /** Runs before the call for people, and again before the call with --json. */
  readonly before?: (site: CommandSite) => Promise<void> | void;
  /** Runs during the call with the negative answer. */
  readonly duringNegative?: (running: RunningCommand, site: CommandSite) => Promise<void>;
  /** Runs during the other calls. */
  readonly during?: (running: RunningCommand, site: CommandSite) => Promise<void>;
  /** Parts of the output that vary from run to run, and their replacements in the snapshot. */
  readonly varies?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** A value of the JSON output that later calls use as `{name}`. */
  readonly remembers?: { readonly name: string; readonly from: RegExp };
}

/** The lock of the site that has sent pings. */
export const LOCK = 'A4:C1:38:F0:E1:D2';
/** The error about the argument `A4:C1`. */
export const NOT_A_MAC = /"A4:C1" is no MAC: expected 12 hex digits/;
/** The errors about a word in place of a number. */
export const NOT_A_NUMBER = /Expected a (whole )?number|expected a number/;
/** A price list, as flags. */
export const PRICE = '--per-mb 0.12 --per-sim 0.80 --currency EUR';

/** Interrupts a running command once its output matches. */
export const interruptAfter =
  (started: RegExp) =>
  async (running: RunningCommand): Promise<void> => {
    await running.waitUntil(started);
    running.interrupt();
  };
