// Finds copied code: a change to one copy would not change the other.
import type { SourceFile } from './tidy-text.js';

/** How many consecutive lines may be equal. Blank lines, comments, imports and single brackets are not counted. */
const MAX_EQUAL_LINES = 12;

interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
}

interface CodePosition {
  readonly file: SourceFile;
  readonly lines: readonly Line[];
  /** The index in `lines` at which the copied code starts. */
  readonly from: number;
}

/**
 * A sentence for each pair of positions, in one file or in two, from which over 12 lines are equal. A comment `Repeats
 * PATH: why` in one of the files allows the copy.
 */
export function findCopies(files: readonly SourceFile[]): string[] {
  const findings: string[] = [];
  const first = new Map<string, CodePosition>();
  for (const file of files) {
    const lines = codeLines(file.text);
    for (let from = 0; from + MAX_EQUAL_LINES < lines.length; from++) {
      const key = textAt(lines, from);
      const other = first.get(key);
      if (other === undefined) {
        first.set(key, { file, lines, from });
        continue;
      }
      if (isOverlap(other, { file, lines, from })) continue;
      const length = sharedLength(other, { file, lines, from });
      if (!isExplained(file, other.file)) findings.push(sentence(other, { file, lines, from }, length));
      from += length - 1;
    }
  }
  return findings;
}

function codeLines(text: string): Line[] {
  const lines = text.split('\n').map((line, index) => ({ text: line.trim(), number: index + 1 }));
  const isImport = importLines(lines);
  return lines.filter(({ text }, index) => !isImport[index] && !/^(\/\/|\/\*|\*|$)/.test(text) && /\w/.test(text));
}

/** Which lines are part of an import or an `export … from`, which may have several lines. */
function importLines(lines: readonly Line[]): boolean[] {
  let inside = false;
  return lines.map(({ text }) => {
    inside ||= /^import\b/.test(text);
    const isPart = inside;
    if (/from '[^']+';$/.test(text) || /^import '/.test(text)) inside = false;
    return isPart;
  });
}

function textAt(lines: readonly Line[], from: number): string {
  return lines
    .slice(from, from + MAX_EQUAL_LINES + 1)
    .map(({ text }) => text)
    .join('\n');
}

function isOverlap(one: CodePosition, other: CodePosition): boolean {
  return one.file === other.file && other.from - one.from <= MAX_EQUAL_LINES;
}

function sharedLength(one: CodePosition, other: CodePosition): number {
  let length = 0;
  while (one.lines[one.from + length]?.text === other.lines[other.from + length]?.text) {
    if (other.lines[other.from + length] === undefined) break;
    length += 1;
  }
  return length;
}

function isExplained(one: SourceFile, other: SourceFile): boolean {
  return one.text.includes(`Repeats ${other.path}: `) || other.text.includes(`Repeats ${one.path}: `);
}

function sentence(one: CodePosition, other: CodePosition, length: number): string {
  const at = ({ file, lines, from }: CodePosition) => `${file.path}:${lines[from]?.number}`;
  return `${at(other)}: ${length} lines are the same as from ${at(one)}; share them, or say why: "Repeats PATH: why".`;
}
