/**
 * Wraps text between words. By default the width of a text is its number of characters, which is right for lockgate's
 * help texts. Text from users and devices may have wide letters: pass `widthOf` of text-width.ts as the measure. This
 * file must not import text-width.ts, which loads slowly, because `--help` uses this file. Pure.
 */

/**
 * Splits a line into lines of at most `width` columns, all with the indentation of the first. A word that is longer
 * than a line is not split, so that it can be copied.
 */
export function wrapWords(line: string, width: number, measure = (text: string): number => text.length): string[] {
  if (measure(line) <= width) return [line];
  const [indent = ''] = /^ */.exec(line) ?? [];
  const lines: string[] = [];
  let current = '';
  for (const word of line.trim().split(' ')) {
    const longer = current === '' ? indent + word : `${current} ${word}`;
    if (current === '' || measure(longer) <= width) current = longer;
    else {
      lines.push(current.trimEnd());
      current = indent + word;
    }
  }
  return [...lines, current];
}
