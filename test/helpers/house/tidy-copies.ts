// Finds copied code: a change to one copy would not change the other.
import type { SourceFile } from './tidy-text.js';

/** How many consecutive lines may be equal. Blank lines, comments, imports and single brackets are not counted. */
const MAX_EQUAL_LINES = 12;

/** A line of code, without its indentation. */
interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

/** A place in a file at which equal code starts. */
interface CodePosition {
  readonly file: SourceFile;
  readonly lines: readonly Line[];
  /** The index in `lines` at which the equal code starts. */
  readonly start: number;
}

/**
 * A sentence for each pair of positions, in one file or in two, from which over 12 lines are equal. A comment `Repeats
 * PATH: why` in one of the files allows the copy.
 */
export function findCopies(files: readonly SourceFile[]): string[] {
  const findings: string[] = [];
  /** Where each text of MAX_EQUAL_LINES + 1 lines occurs first. */
  const firstPositions = new Map<string, CodePosition>();
  for (const file of files) {
    const lines = codeLines(file.text);
    for (let start = 0; start + MAX_EQUAL_LINES < lines.length; start++) {
      const key = textAt(lines, start);
      const earlier = firstPositions.get(key);
      if (earlier === undefined) {
        firstPositions.set(key, { file, lines, start });
        continue;
      }
      if (isOverlap(earlier, { file, lines, start })) continue;
      const length = sharedLength(earlier, { file, lines, start });
      if (!isExplained(earlier.file, file)) findings.push(sentence(earlier, { file, lines, start }, length));
      // Continues after the copy.
      start += length - 1;
    }
  }
  return findings;
}

/** The lines that are compared: with a letter or digit, and neither comment nor import. */
function codeLines(text: string): Line[] {
  const lines = text.split('\n').map((line, index) => ({ text: line.trim(), number: index + 1 }));
  const isImport = importLines(lines);
  return lines.filter(({ text }, index) => !isImport[index] && !/^(\/\/|\/\*|\*|$)/.test(text) && /\w/.test(text));
}

/** Which lines are part of an import, which may have several lines. */
function importLines(lines: readonly Line[]): boolean[] {
  let inside = false;
  return lines.map(({ text }) => {
    inside ||= /^import\b/.test(text);
    const isPart = inside;
    if (/from '[^']+';$/.test(text) || /^import '/.test(text)) inside = false;
    return isPart;
  });
}

/** The text of as many lines as must be equal, from `start` on. */
function textAt(lines: readonly Line[], start: number): string {
  return lines
    .slice(start, start + MAX_EQUAL_LINES + 1)
    .map(({ text }) => text)
    .join('\n');
}

/** Whether the two equal texts share lines, as in a list of equal entries. */
function isOverlap(earlier: CodePosition, current: CodePosition): boolean {
  return earlier.file === current.file && current.start - earlier.start <= MAX_EQUAL_LINES;
}

/** How many lines from the two positions on are equal. */
function sharedLength(earlier: CodePosition, current: CodePosition): number {
  let length = 0;
  while (earlier.lines[earlier.start + length]?.text === current.lines[current.start + length]?.text) {
    if (current.lines[current.start + length] === undefined) break;
    length += 1;
  }
  return length;
}

/** Whether one of the files says why it repeats the other. */
function isExplained(earlier: SourceFile, current: SourceFile): boolean {
  return earlier.text.includes(`Repeats ${current.path}: `) || current.text.includes(`Repeats ${earlier.path}: `);
}

/** The finding about two equal pieces of code. */
function sentence(earlier: CodePosition, current: CodePosition, length: number): string {
  const at = ({ file, lines, start }: CodePosition) => `${file.path}:${lines[start]?.number}`;
  return (
    `${at(current)}: ${length} lines are the same as from ${at(earlier)}; ` +
    'share them, or say why: "Repeats PATH: why".'
  );
}
