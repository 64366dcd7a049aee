/**
 * Whether bytes are a text as MQTT has them (MQTT 3.1.1, 1.5.3): well-formed UTF-8, without surrogates and without
 * U+0000. It takes the bytes as they come and keeps none of them.
 */

const NUL = 'has U+0000 in it';
const ILL_FORMED = 'is not UTF-8';

export class Utf8Check {
  /** How many bytes the character under way still lacks. */
  #lacking = 0;
  /** What its next byte is to be between. */
  #least = 0x80;
  #most = 0xbf;

  /** Takes some bytes of the text; says what is wrong with them, if anything is. */
  pass(piece: Uint8Array, from: number, to: number): string | undefined {
    for (let at = from; at < to; at++) {
      const byte = piece[at] as number;
      if (this.#lacking > 0) {
        if (byte < this.#least || byte > this.#most) return ILL_FORMED;
        this.#least = 0x80;
        this.#most = 0xbf;
        this.#lacking -= 1;
      } else if (byte >= 0x80) {
        if (!this.#begin(byte)) return ILL_FORMED;
      } else if (byte === 0) return NUL;
    }
    return undefined;
  }

  /** Ends the text, and is ready for the next one; says what is wrong with it, if anything is. */
  end(): string | undefined {
    const isWhole = this.#lacking === 0;
    this.#lacking = 0;
    this.#least = 0x80;
    this.#most = 0xbf;
    return isWhole ? undefined : ILL_FORMED;
  }

  /** Begins a character of several bytes. The bounds leave out overlong forms, surrogates and what Unicode lacks. */
  #begin(byte: number): boolean {
    if (byte < 0xc2 || byte > 0xf4) return false;
    this.#lacking = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte === 0xe0) this.#least = 0xa0;
    else if (byte === 0xed) this.#most = 0x9f;
    else if (byte === 0xf0) this.#least = 0x90;
    else if (byte === 0xf4) this.#most = 0x8f;
    return true;
  }
}

/** What is wrong with a text that is all there; undefined where nothing is. */
export function textFault(bytes: Uint8Array): string | undefined {
  const check = new Utf8Check();
  return check.pass(bytes, 0, bytes.length) ?? check.end();
}
