/** The exit codes of lockgate (interfaces.md §4), and which of them an error leads to. Pure. */
import { LockgateError } from '../../proto/errors.js';

/** The exit codes by meaning. */
export const EXIT_CODE = {
  /** Done. */
  done: 0,
  /** The command ran with a negative result: violations found, a webhook failed, traces differ. */
  negativeAnswer: 1,
  /** The command line or an input file is wrong. */
  badInput: 2,
  /** The gateway can't be reached, or refuses. */
  gatewayFailure: 3,
  /** A bug in lockgate. */
  bug: 4,
} as const;

/** Error codes of the gateway that mean a wrong command line. */
const GATEWAY_INPUT_CODES = new Set(['merchant-needed', 'bad-mac']);

/** The exit code for an error that a command threw. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof LockgateError)) return EXIT_CODE.bug;
  const { code } = error;
  if (code.startsWith('input-') || GATEWAY_INPUT_CODES.has(code)) return EXIT_CODE.badInput;
  return EXIT_CODE.gatewayFailure;
}
