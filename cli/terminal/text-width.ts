/**
 * Measures how many terminal columns a text occupies, and cuts text to a width. Texts are measured by grapheme: what
 * people see as one letter, which can consist of several Unicode characters. An East Asian wide letter or an emoji
 * occupies two columns, an accent on a letter none. Pure.
 */
import { eastAsianWidth } from 'get-east-asian-width';

/**
 * Text of characters that each occupy one column and are a grapheme of their own: printable ASCII, Latin letters with
 * accents, dashes, quotation marks, the ellipsis, ─, ✓ and ✗. Most text is of this kind, and needs no segmenter.
 */
const PLAIN_TEXT = /^[\u0020-\u007e\u00c0-\u017f\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2500\u2713\u2717]*$/;
/** A grapheme that starts with an emoji: an emoji by default or by the variation selector U+FE0F, or a flag. */
const EMOJI = /^(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2})/u;
/**
 * Characters that occupy no column: accents and other marks on the letter before, format characters, characters that
 * are not displayed, and U+1160–11FF and U+D7B0–D7FB, which are the later letters of a Korean syllable block.
 */
const ZERO_WIDTH_CHARACTERS =
  /[\p{Nonspacing_Mark}\p{Enclosing_Mark}\p{Default_Ignorable_Code_Point}\p{Format}\u1160-\u11ff\ud7b0-\ud7fb]/gu;

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into graphemes. Plain text needs no segmenter, whose construction takes some 8 ms. */
function graphemesOf(text: string): string[] {
  if (PLAIN_TEXT.test(text)) return [...text];
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function graphemeWidth(grapheme: string): number {
  if (EMOJI.test(grapheme)) return 2;
  const visibleCharacters = [...grapheme.replace(ZERO_WIDTH_CHARACTERS, '')];
  return visibleCharacters.reduce((sum, character) => sum + eastAsianWidth(character.codePointAt(0) as number), 0);
}

/** The number of columns that a text without control characters occupies. */
export function widthOf(text: string): number {
  if (PLAIN_TEXT.test(text)) return text.length;
  return graphemesOf(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0);
}

/** The greatest measure of any item; 0 for an empty list. `Math.max(...list)` fails for some 120,000 items. */
export function maxOf<Item>(items: readonly Item[], measure: (item: Item) => number): number {
  return items.reduce((max, item) => Math.max(max, measure(item)), 0);
}

/** The text if it fits into `width` columns; otherwise as much of its start as fits, and an `…`. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${fittingStart(graphemesOf(text), width - 1)}…`;
}

/** As many of the first graphemes as fit into `width` columns. */
function fittingStart(graphemes: readonly string[], width: number): string {
  let start = '';
  let remainingWidth = width;
  for (const grapheme of graphemes) {
    remainingWidth -= graphemeWidth(grapheme);
    if (remainingWidth < 0) break;
    start += grapheme;
  }
  return start;
}

/** The width in columns of the text's widest word; 0 for an empty text. */
export function widestWordWidth(text: string): number {
  return Math.max(0, ...text.split(' ').map(widthOf));
}
