/**
 * Checks that bytes are a string as MQTT defines it (MQTT 3.1.1, 1.5.3): well-formed UTF-8, without surrogates and
 * without U+0000. The check takes the bytes as they arrive and buffers none of them.
 */

const NUL = 'contains U+0000';
const ILL_FORMED = 'is not UTF-8';

/** Checks one string after the other, each in chunks of any size. */
export class Utf8Check {
  /** How many bytes of the current character are still missing. */
  #missingBytes = 0;
  /* The range that the character's next byte must be in. */
  #lowest = 0x80;
  #highest = 0xbf;

  /** Takes the next bytes. Returns their fault, if any. */
  pass(chunk: Uint8Array, from: number, to: number): string | undefined {
    for (let at = from; at < to; at++) {
      const byte = chunk[at] as number;
      if (this.#missingBytes > 0) {
        if (byte < this.#lowest || byte > this.#highest) return ILL_FORMED;
        this.#lowest = 0x80;
        this.#highest = 0xbf;
        this.#missingBytes -= 1;
      } else if (byte >= 0x80) {
        if (!this.#begin(byte)) return ILL_FORMED;
      } else if (byte === 0) return NUL;
    }
    return undefined;
  }

  /** Ends the string and prepares for the next one. Returns the string's fault, if any. */
  end(): string | undefined {
    const isComplete = this.#missingBytes === 0;
    this.#missingBytes = 0;
    this.#lowest = 0x80;
    this.#highest = 0xbf;
    return isComplete ? undefined : ILL_FORMED;
  }

  /** Starts a multi-byte character. The ranges exclude overlong forms, surrogates and code points beyond Unicode. */
  #begin(byte: number): boolean {
    if (byte < 0xc2 || byte > 0xf4) return false;
    this.#missingBytes = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte === 0xe0) this.#lowest = 0xa0;
    else if (byte === 0xed) this.#highest = 0x9f;
    else if (byte === 0xf0) this.#lowest = 0x90;
    else if (byte === 0xf4) this.#highest = 0x8f;
    return true;
  }
}

/** The fault of a complete string, as the end of a sentence; undefined if it is valid. */
export function textFault(bytes: Uint8Array): string | undefined {
  const check = new Utf8Check();
  return check.pass(bytes, 0, bytes.length) ?? check.end();
}
