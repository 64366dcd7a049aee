/** Reads and writes the hardware addresses (MACs) that identify locks. Pure. */
import { ok, problem, type Result } from '../errors.js';

declare const macBrand: unique symbol;

/**
 * A lock's hardware address as on the wire: 12 upper-case hex digits without separators (protocol.md §1). It is the
 * client id and the user name of the lock's MQTT connection. Only this file makes values of this type, after checking
 * them.
 */
export type Mac = string & { readonly [macBrand]: true };

/** How much of a wrong MAC an error quotes. */
const MAX_QUOTED_CHARACTERS = 40;

const WIRE_SPELLING = /^[0-9A-F]{12}$/;

/** The accepted spellings: pairs separated by colons or dashes, fours separated by dots, or no separator. */
const TYPED_SPELLINGS = [
  /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i,
  /^[0-9a-f]{2}(?:-[0-9a-f]{2}){5}$/i,
  /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}$/i,
  /^[0-9a-f]{12}$/i,
];

/** Reads a MAC in any common spelling. The error's sentence quotes at most 40 characters of what was given. */
export function parseMac(text: string): Result<Mac> {
  const trimmed = text.trim();
  if (TYPED_SPELLINGS.some((spelling) => spelling.test(trimmed))) {
    return ok(trimmed.replace(/[^0-9a-f]/gi, '').toUpperCase() as Mac);
  }
  const isLong = text.length > MAX_QUOTED_CHARACTERS;
  const shown = JSON.stringify(isLong ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text);
  return problem('bad-mac', `${shown} is no MAC: expected 12 hex digits, such as A4:C1:38:F0:E1:D2`);
}

/** Reads a MAC as it is on the wire (client id, user name); undefined for any other spelling. */
export function macFromWire(text: string): Mac | undefined {
  return WIRE_SPELLING.test(text) ? (text as Mac) : undefined;
}

/** A MAC as the program writes it in JSON, tables and logs: `A4:C1:38:F0:E1:D2`. */
export function formatMac(mac: Mac): string {
  let text = mac.slice(0, 2);
  for (let start = 2; start < mac.length; start += 2) text += `:${mac.slice(start, start + 2)}`;
  return text;
}
