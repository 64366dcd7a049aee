/**
 * Parses a bash command line for completion into words without quotes, and quotes a completed word for the cursor. bash
 * itself splits words at colons, which MACs and URLs contain, so its word list is not usable. Pure.
 */

/** The words up to the cursor; the last word, possibly empty, is being typed. */
export interface BashLine {
  readonly words: string[];
  /** Converts a completed word to the text for bash, which replaces only the part after a colon or quote. */
  readonly toShellText: (value: string) => string;
}

/** The characters at which bash splits words (COMP_WORDBREAKS) that occur in lockgate's values and flags. */
const WORD_BREAKS = /[:=]/g;

/** Parses the line; shell expansions ($, *, ~) are not expanded. */
export function readBashLine(line: string): BashLine {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  // The current word as it was typed, with quotes and backslashes.
  let typedWord = '';
  for (let index = 0; index < line.length; index += 1) {
    const character = line.charAt(index);
    if (quote === undefined && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      typedWord = '';
      continue;
    }
    typedWord += character;
    word ??= '';
    if (character === quote) quote = undefined;
    else if (quote === undefined && (character === '"' || character === "'")) quote = character;
    else if (character === '\\' && quote !== "'" && index + 1 < line.length) {
      index += 1;
      typedWord += line.charAt(index);
      word += line.charAt(index);
    } else word += character;
  }
  return { words: [...words, word ?? ''], toShellText: (value) => toShellText(value, typedWord, quote) };
}

/**
 * The part of the value that bash inserts, with special characters escaped. bash replaces the text after an open quote,
 * or else the text after the last word break.
 */
function toShellText(value: string, typedWord: string, quote: '"' | "'" | undefined): string {
  if (quote === '"') return value.replace(/["\\$`]/g, '\\$&');
  if (quote === "'") return value.replaceAll("'", "'\\''");
  // How many word breaks were typed, without escaped ones. The value has at least as many.
  const breaks = typedWord.replace(/\\./g, '').match(WORD_BREAKS)?.length ?? 0;
  const lastTypedBreak = [...value.matchAll(WORD_BREAKS)][breaks - 1];
  const inserted = lastTypedBreak === undefined ? value : value.slice(lastTypedBreak.index + 1);
  return inserted.replace(/[^\p{L}\p{N}@%+=:,./_-]/gu, '\\$&');
}
