/**
 * How many columns of a terminal a text takes, and how it is cut and folded there. Letters are what people see as one
 * (Unicode's grapheme clusters); East Asian wide ones and emoji take two columns, marks on a letter none.
 */

const PLAIN = /^[\u0020-\u007e]*$/;
/** Wide and Fullwidth of Unicode's East Asian Width (UAX 11), by blocks. */
const WIDE = new RegExp(
  '^[\\u1100-\\u115f\\u2329\\u232a\\u2e80-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff' +
    '\\ufe10-\\ufe19\\ufe30-\\ufe6f\\uff01-\\uff60\\uffe0-\\uffe6\\u{16fe0}-\\u{18dff}\\u{1aff0}-\\u{1b2ff}' +
    '\\u{1f200}-\\u{1f265}\\u{20000}-\\u{3fffd}]',
  'u',
);
/** Shown as a picture: by itself, by the selector that asks for it, or as the two letters of a flag. */
const EMOJI = /^(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2})/u;
/** Nothing but what stands on another letter, or is not seen at all. */
const UNSEEN = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]*$/u;

let segmenter: Intl.Segmenter | undefined;

/** What people see as one letter each. */
function lettersOf(text: string): string[] {
  if (PLAIN.test(text)) return [...text];
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function letterWidth(letter: string): number {
  if (UNSEEN.test(letter)) return 0;
  return WIDE.test(letter) || EMOJI.test(letter) ? 2 : 1;
}

/** The columns that a text without control characters takes. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return lettersOf(text).reduce((sum, letter) => sum + letterWidth(letter), 0);
}

/** The text, or as much of its beginning as goes into `width` columns together with `…`. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${beginning(lettersOf(text), width - 1)}…`;
}

function beginning(letters: readonly string[], width: number): string {
  let kept = '';
  let room = width;
  for (const letter of letters) {
    room -= letterWidth(letter);
    if (room < 0) break;
    kept += letter;
  }
  return kept;
}

/** The width of the widest word. */
export function longestWord(text: string): number {
  return Math.max(0, ...text.split(' ').map(widthOf));
}

/**
 * The line as lines of `width` columns at most, folded at blanks; those that follow are indented as the first is, by as
 * much as leaves room. A word that is longer than a line is left whole.
 */
export function fitWords(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line];
  const [indent = ''] = /^ */.exec(line) ?? [];
  const lines: string[] = [];
  let current = '';
  for (const word of line.trim().split(' ')) {
    const longer = current === '' ? indent + word : `${current} ${word}`;
    if (current === '' || widthOf(longer) <= width) current = longer;
    else {
      lines.push(current.trimEnd());
      current = indent + word;
    }
  }
  return [...lines, current];
}
