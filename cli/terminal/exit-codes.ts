/**
 * Exit codes (interfaces.md §4).
 */
import { LockgateError } from '../../proto/errors.js';

export const EXIT_CODE = {
  /** Done. */
  done: 0,
  /** The command ran, and its answer is no: violations found, a webhook failed, traces differ. */
  negativeAnswer: 1,
  /** The command line or an input file is wrong. */
  badInput: 2,
  /** The gateway can't be reached, or refuses. */
  gatewayFailure: 3,
  /** A bug in lockgate. */
  bug: 4,
} as const;

/** Codes of the gateway that blame the command line. */
const INPUT_CODES = new Set(['merchant-needed', 'bad-mac']);

/** The exit code for an error that a command threw. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof LockgateError)) return EXIT_CODE.bug;
  const { code } = error;
  if (code.startsWith('input-') || INPUT_CODES.has(code)) return EXIT_CODE.badInput;
  return EXIT_CODE.gatewayFailure;
}
