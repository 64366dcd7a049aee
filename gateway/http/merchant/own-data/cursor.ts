/**
 * Cursors: opaque texts that mark a position in a list (interfaces.md §2). A cursor names the list that it belongs to
 * by a checksum, so that a damaged cursor, or one of another list, is recognised. It is not a secret and grants
 * nothing: the read behind a cursor must always be limited to the caller's own data.
 */
import { createHash } from 'node:crypto';

/** A position: the values that the list is ordered by. */
export type Position = readonly (string | number | null)[];

/** A longer text is no cursor. A position in a log that 64 gateways write, with an id for each, takes some 1,700. */
export const MAX_CURSOR_CHARS = 2_048;
/** The length of the checksum: enough to recognise a damaged cursor. */
const CHECK_BYTES = 6;

/**
 * Returns the cursor of a position.
 *
 * @param listKey the name of the list, with everything that its order depends on
 */
export function encodeCursor(listKey: string, position: Position): string {
  const values = Buffer.from(JSON.stringify(position), 'utf8');
  return Buffer.concat([checkOf(listKey, values), values]).toString('base64url');
}

/** Returns the position of a cursor; undefined if the text is not a cursor of this list. */
export function decodeCursor(listKey: string, text: string): Position | undefined {
  if (text.length > MAX_CURSOR_CHARS || !/^[\w-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // base64url has several spellings of the same bytes.
  if (bytes.length <= CHECK_BYTES || bytes.toString('base64url') !== text) return undefined;
  const values = bytes.subarray(CHECK_BYTES);
  if (!bytes.subarray(0, CHECK_BYTES).equals(checkOf(listKey, values))) return undefined;
  return positionOf(values.toString('utf8'));
}

/** Parses and checks the values. Anyone can compute the checksum, so a correct one does not make the values valid. */
function positionOf(text: string): Position | undefined {
  try {
    const values: unknown = JSON.parse(text);
    if (!Array.isArray(values)) return undefined;
    const isPlain = values.every((value) => value === null || typeof value === 'string' || Number.isFinite(value));
    return isPlain ? (values as Position) : undefined;
  } catch {
    return undefined;
  }
}

function checkOf(listKey: string, values: Buffer): Buffer {
  return createHash('sha256').update(listKey).update('\0').update(values).digest().subarray(0, CHECK_BYTES);
}
