/**
 * Measures how many terminal columns a text occupies, and cuts text to a width. A letter is a Unicode grapheme cluster:
 * what people see as one letter. East Asian wide letters and emoji occupy two columns, marks on a letter none.
 */
import { eastAsianWidth } from 'get-east-asian-width';

const PLAIN = /^[\u0020-\u007e]*$/;
/** A letter displayed as a picture: by default, by the emoji variation selector, or as the two letters of a flag. */
const EMOJI = /^(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2})/u;
/**
 * Characters that occupy no column: marks on another letter, vowels and final consonants inside a Hangul syllable,
 * format characters, and everything else that is not displayed.
 */
const INVISIBLE =
  /[\p{Nonspacing_Mark}\p{Enclosing_Mark}\p{Default_Ignorable_Code_Point}\p{Format}\u1160-\u11ff\ud7b0-\ud7fb]/gu;

let segmenter: Intl.Segmenter | undefined;

/** The grapheme clusters of a text. Plain ASCII needs no segmenter, whose construction takes some 8 ms. */
function lettersOf(text: string): string[] {
  if (PLAIN.test(text)) return [...text];
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function letterWidth(letter: string): number {
  if (EMOJI.test(letter)) return 2;
  const visible = [...letter.replace(INVISIBLE, '')];
  return visible.reduce((sum, each) => sum + eastAsianWidth(each.codePointAt(0) as number), 0);
}

/** The number of columns that a text without control characters occupies. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return lettersOf(text).reduce((sum, letter) => sum + letterWidth(letter), 0);
}

/** The text if it fits into `width` columns; otherwise as much of its start as fits, and an `…`. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${startOf(lettersOf(text), width - 1)}…`;
}

function startOf(letters: readonly string[], width: number): string {
  let start = '';
  let room = width;
  for (const letter of letters) {
    room -= letterWidth(letter);
    if (room < 0) break;
    start += letter;
  }
  return start;
}

/** The width of the widest word. */
export function longestWord(text: string): number {
  return Math.max(0, ...text.split(' ').map(widthOf));
}
