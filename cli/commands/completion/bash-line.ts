/**
 * A line as bash has it before it is run, as far as completion needs it: its words without quotes, and how a word has
 * to be written at the cursor. bash hands its own words over split at colons, which MACs and URLs are full of.
 */

/** The words up to the cursor; the last, maybe empty, is the one being typed. */
export interface BashLine {
  readonly words: string[];
  /** A value as it must be offered, so that bash puts it in place of what it takes for the word. */
  readonly inShell: (value: string) => string;
}

/** bash ends a word of its own at these (COMP_WORDBREAKS), of which our values and flags have these two. */
const BREAKS = /[:=]/g;

/** Reads the line; what shells expand ($, *, ~) stays as it is typed. */
export function readBashLine(line: string): BashLine {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  let raw = '';
  for (let at = 0; at < line.length; at += 1) {
    const letter = line.charAt(at);
    if (quote === undefined && /\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      raw = '';
      continue;
    }
    raw += letter;
    word ??= '';
    if (letter === quote) quote = undefined;
    else if (quote === undefined && (letter === '"' || letter === "'")) quote = letter;
    else if (letter === '\\' && quote !== "'" && at + 1 < line.length) {
      at += 1;
      raw += line.charAt(at);
      word += line.charAt(at);
    } else word += letter;
  }
  return { words: [...words, word ?? ''], inShell: (value) => writeWord(value, raw, quote) };
}

/** In an open quote bash replaces what is behind the quote, else what is behind the last break. */
function writeWord(value: string, raw: string, quote: '"' | "'" | undefined): string {
  if (quote === '"') return value.replace(/["\\$`]/g, '\\$&');
  if (quote === "'") return value.replaceAll("'", "'\\''");
  const breaks = raw.replace(/\\./g, '').match(BREAKS)?.length ?? 0;
  const skipped = [...value.matchAll(BREAKS)][breaks - 1];
  const rest = skipped === undefined ? value : value.slice(skipped.index + 1);
  return rest.replace(/[^\p{L}\p{N}@%+=:,./_-]/gu, '\\$&');
}
