/**
 * Wraps text between words. It measures by number of characters unless it is given {@link widthOf} of text-width.ts:
 * our own help texts have only narrow letters, and `--help` starts faster without the table of widths.
 */

/**
 * Splits a line into lines of at most `width` columns. They keep the indentation of the first. A word that is longer
 * than a line stays whole, so that it can be copied.
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
