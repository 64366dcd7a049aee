/**
 * The answer to a request with a text that the store can't hold: PostgreSQL has no character U+0000 in texts. SQLite
 * has, so schemas allow it, and the store's refusal is answered here, naming the members at fault.
 */
import type { FastifyRequest } from 'fastify';
import { type Fault, MAX_REPORTED_FAULTS, RequestFaults } from '../../faults.js';
import { isUnstorableText } from '../../store/contract/errors.js';

const DETAIL = 'has the character U+0000, which the store can’t hold';

/** Returns the error to answer with: the thrown one, or one that names the texts that the store can’t hold. */
export function explainUnstorableText<E extends Error>(error: E, { body, query }: FastifyRequest): E | RequestFaults {
  if (!isUnstorableText(error)) return error;
  const faults: Fault[] = [];
  findIn(body, '', faults);
  findIn(query, '', faults);
  return new RequestFaults('input-text', `a text ${DETAIL}`, faults);
}

/**
 * Adds a fault for each text in a value, at any depth, that has the character; a member's name is a text too.
 * `pointer` is where the value is, as a JSON Pointer (RFC 6901), which writes `~` and `/` in names as `~0` and `~1`.
 */
function findIn(value: unknown, pointer: string, faults: Fault[]): void {
  if (faults.length >= MAX_REPORTED_FAULTS) return;
  if (typeof value === 'string') {
    if (value.includes('\0')) faults.push({ pointer, detail: DETAIL });
  } else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) {
      if (name.includes('\0')) faults.push({ pointer, detail: `a member’s name ${DETAIL}` });
      else findIn(member, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, faults);
    }
}
