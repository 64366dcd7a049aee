/**
 * The three kinds of errors.
 *
 * - Wrong input from outside (an uplink, a trace line, a MAC that a user typed) is a value: a {@link Result}.
 * - A mistake of the caller (a flag, a setting, a file name) throws a {@link LockgateError} with a code and a sentence.
 * - A bug in this program throws any other error, which must not be caught and hidden.
 */

/** The outcome of reading untrusted input: the value, or what is wrong with it. */
export type Result<T, E = Problem> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

/** What is wrong: a stable code for programs, and a sentence for users that also says what was expected. */
export interface Problem {
  readonly code: string;
  readonly message: string;
}

/** A success that carries `value`. */
export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** A failure with a code for programs and a sentence for users. */
export function problem<C extends string>(
  code: C,
  message: string,
): { readonly ok: false; readonly error: { readonly code: C; readonly message: string } } {
  return { ok: false, error: { code, message } };
}

/**
 * A mistake of the caller, such as a wrong setting or flag, or a call that the current state doesn't allow. The message
 * is one sentence that can be shown to users; `code` is stable and kebab-case.
 */
export class LockgateError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LockgateError';
    this.code = code;
  }
}
