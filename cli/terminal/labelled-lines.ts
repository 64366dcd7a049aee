/** Prints labels with a text each, as in `lockgate status`. A text that is too wide continues below its start. */
import { print, terminalWidth } from './output.js';
import { widthOf } from './text-width.js';
import { wrapWords } from './word-wrap.js';

/** The least width to which texts are wrapped, columns, even if the terminal has fewer. */
const MIN_TEXT_WIDTH = 20;
/** The colour codes that `paint` writes; they occupy no column. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the codes start with a control character
const COLOUR_CODES = /\u001b\[\d+m/g;

/**
 * Prints a label and its text, which is wrapped between words and indented by the label's width.
 *
 * @param labelWidth the columns of the label, blanks included
 */
export function printLabelled(label: string, text: string, labelWidth: number): void {
  const width = Math.max(terminalWidth() - labelWidth, MIN_TEXT_WIDTH);
  const lines = wrapWords(text, width, (part) => widthOf(part.replace(COLOUR_CODES, '')));
  for (const [index, line] of lines.entries()) print((index === 0 ? label : '').padEnd(labelWidth) + line);
}
