/**
 * Parses a bash command line for completion: its words without quotes, and how a completed word must be written at the
 * cursor. bash splits words at colons, which MACs and URLs contain, so its own word list is not usable.
 */

/** The words up to the cursor; the last word, possibly empty, is being typed. */
export interface BashLine {
  readonly words: string[];
  /** Converts a value to the text that bash must get, because bash replaces only the part that it considers a word. */
  readonly inShell: (value: string) => string;
}

/** The characters of COMP_WORDBREAKS that occur in lockgate's values and flags. */
const BREAKS = /[:=]/g;

/** Parses the line; shell expansions ($, *, ~) are not expanded. */
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

/** bash replaces the text after an open quote, or else the text after the last break. */
function writeWord(value: string, raw: string, quote: '"' | "'" | undefined): string {
  if (quote === '"') return value.replace(/["\\$`]/g, '\\$&');
  if (quote === "'") return value.replaceAll("'", "'\\''");
  const breaks = raw.replace(/\\./g, '').match(BREAKS)?.length ?? 0;
  const skipped = [...value.matchAll(BREAKS)][breaks - 1];
  const rest = skipped === undefined ? value : value.slice(skipped.index + 1);
  return rest.replace(/[^\p{L}\p{N}@%+=:,./_-]/gu, '\\$&');
}
