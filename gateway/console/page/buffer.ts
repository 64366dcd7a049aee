/**
 * The part of Node's `Buffer` that proto/ uses, for browsers: bytes from base64, and UTF-8 text and base64 from bytes.
 * The build puts it into every bundle (cli/prepare/pages.mjs).
 */

class PageBuffer extends Uint8Array {
  override toString(encoding?: 'utf8' | 'base64'): string {
    if (encoding === 'base64') return btoa(Array.from(this, (byte) => String.fromCharCode(byte)).join(''));
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this);
  }
}

/** Bytes from base64 text (characters outside the alphabet are skipped, as Node.js does), or from other bytes. */
function from(
  source: string | ArrayBuffer | ArrayLike<number>,
  encodingOrStart?: string | number,
  length?: number,
): PageBuffer {
  if (typeof source === 'string') return fromText(source, encodingOrStart);
  if (source instanceof ArrayBuffer) return new PageBuffer(source, Number(encodingOrStart ?? 0), length);
  // The inherited `from` makes an object of this class; its type says only Uint8Array.
  return PageBuffer.from(source) as PageBuffer;
}

/**
 * @param encoding `base64`, which includes base64url; anything else means UTF-8, the only other one that proto/ uses
 */
function fromText(text: string, encoding: string | number | undefined): PageBuffer {
  if (encoding !== 'base64') return PageBuffer.from(new TextEncoder().encode(text)) as PageBuffer;
  const standard = text.replaceAll('-', '+').replaceAll('_', '/');
  const digits = standard.replace(/=.*$/s, '').replaceAll(/[^A-Za-z0-9+/]/g, '');
  // A single last digit has only 6 bits, which are no byte, and `atob` refuses it.
  const complete = digits.length % 4 === 1 ? digits.slice(0, -1) : digits;
  return PageBuffer.from(atob(complete), (letter: string) => letter.charCodeAt(0)) as PageBuffer;
}

export const Buffer = { from };
