/** Parses form bodies, which OAuth clients send (RFC 6749, appendix B). */
import { LockgateError } from '../../../proto/errors.js';

/** More than any OAuth form has; a longer form would block the event loop. */
const MAX_PARAMETERS = 100;

/**
 * Returns the parameters by name. A repeated parameter becomes a list, which the routes' schemas refuse, since OAuth
 * forbids repetition.
 *
 * @throws LockgateError `input-form`
 */
export function readFormBody(bytes: Buffer): Record<string, string | string[]> {
  const text = bytes.toString('utf8');
  // Counted before parsing: half a million parameters would block the event loop for too long.
  if (text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS)
    throw new LockgateError('input-form', `the form has more than ${MAX_PARAMETERS} parameters, the maximum`);
  const parameters = new URLSearchParams(text);
  const form: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name);
    form[name] = values.length > 1 ? values : (values[0] ?? '');
  }
  return form;
}
