/**
 * Whose fault it is, in the type.
 *
 * What a stranger sends (an uplink, a trace line, a MAC someone typed) is a value: a {@link Result}. What the caller of
 * ours got wrong (a flag, a setting, a file name) is a {@link LockgateError} with a code and a sentence. What we got
 * wrong ourselves is any other thrown error, and is never caught to be hidden.
 */

/** The outcome of reading something that a stranger made: the value, or what was wrong with it. It never throws. */
export type Result<T, E = Problem> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

/** What was wrong: a stable code for programs, and a sentence that names what, where and what was expected. */
export interface Problem {
  readonly code: string;
  readonly message: string;
}

/** A success that carries `value`. */
export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** A failure with a `code` for programs and a sentence for people. */
export function problem<C extends string>(
  code: C,
  message: string,
): { readonly ok: false; readonly error: { readonly code: C; readonly message: string } } {
  return { ok: false, error: { code, message } };
}

/**
 * What the caller got wrong, such as a setting, a flag or a state that doesn't allow the call. The message is one
 * sentence that can be shown as it is; `code` is stable and kebab-case.
 */
export class LockgateError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LockgateError';
    this.code = code;
  }
}
