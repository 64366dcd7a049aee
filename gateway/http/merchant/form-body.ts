/** Parses form bodies, which OAuth clients send (RFC 6749, appendix B). */
import { LockgateError } from '../../../proto/errors.js';

/** OAuth forms have a handful of parameters. */
const MAX_PARAMETERS = 100;

/**
 * The parameters by name. A repeated one becomes a list, which the routes' schemas refuse, as OAuth forbids it.
 *
 * @throws LockgateError `input-form`
 */
export function readFormBody(bytes: Buffer): Record<string, string | string[]> {
  const text = bytes.toString('utf8');
  // Before parsing: half a million parameters would block the event loop for too long.
  if (text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS)
    throw new LockgateError('input-form', `the form has more than ${MAX_PARAMETERS} parameters, the maximum`);
  const parameters = new URLSearchParams(text);
  const form: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const name of new Set(parameters.keys())) {
    const [only = '', ...others] = parameters.getAll(name);
    form[name] = others.length === 0 ? only : [only, ...others];
  }
  return form;
}
