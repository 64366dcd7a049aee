/**
 * Finds the line at which a text that JSON.parse refuses stops being JSON, and what was expected there. The messages of
 * JSON.parse differ between versions of Node and don't contain the line.
 */

/** The first error in a text: its line, counted from 1, and what was expected there. */
export interface JsonError {
  readonly line: number;
  readonly expected: string;
}

type Expected = 'value' | 'value or ]' | 'name or }' | 'name' | ':' | 'more' | 'end';

const EXPECTED: Readonly<Record<Expected, string>> = {
  value: 'a value',
  'value or ]': 'a value or ]',
  'name or }': 'a name in double quotes or }',
  name: 'a name in double quotes',
  ':': 'a colon after the name',
  more: 'a comma or the closing bracket',
  end: 'nothing after the end',
};

/** A number or a keyword, at the current position. */
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/** Finds the first error. For a text without an error it returns the last line. */
export function findJsonError(text: string): JsonError {
  const open: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  const after = (): Expected => (open.length === 0 ? 'end' : 'more');
  let at = skipBlanks(text, 0);
  for (; at < text.length; at = skipBlanks(text, at)) {
    const letter = text[at];
    const takesValue: boolean = expected === 'value' || expected === 'value or ]';
    let end = at + 1;
    if (takesValue && (letter === '{' || letter === '[')) {
      open.push(letter);
      expected = letter === '{' ? 'name or }' : 'value or ]';
    } else if (letter === ']' && open.at(-1) === '[' && (expected === 'value or ]' || expected === 'more')) {
      open.pop();
      expected = after();
    } else if (letter === '}' && open.at(-1) === '{' && (expected === 'name or }' || expected === 'more')) {
      open.pop();
      expected = after();
    } else if (letter === ',' && expected === 'more') expected = open.at(-1) === '{' ? 'name' : 'value';
    else if (letter === ':' && expected === ':') expected = 'value';
    else if (letter === '"' && (takesValue || expected === 'name' || expected === 'name or }')) {
      end = stringEnd(text, at);
      if (text[end - 1] !== '"' || end === at + 1)
        return { line: lineOf(text, end - 1), expected: 'a string that ends' };
      expected = takesValue ? after() : ':';
    } else if (takesValue && matchEnd(SCALAR, text, at) > at) {
      end = matchEnd(SCALAR, text, at);
      expected = after();
    } else break;
    at = end;
  }
  return { line: lineOf(text, at), expected: EXPECTED[expected] };
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1;
  return at;
}

/** The index after the closing quote. For an invalid string, the index of the mistake; no quote precedes it then. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"' && text.charCodeAt(at) >= 0x20) {
    const next = text[at] === '\\' ? matchEnd(ESCAPE, text, at) : at + 1;
    if (next === at) return at;
    at = next;
  }
  return text[at] === '"' ? at + 1 : at;
}

function matchEnd(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

function lineOf(text: string, at: number): number {
  let line = 1;
  for (let index = text.indexOf('\n'); index !== -1 && index < at; index = text.indexOf('\n', index + 1)) line += 1;
  return line;
}
