/**
 * Finds the line at which a text that JSON.parse refuses stops being JSON, and what was expected there. The messages of
 * JSON.parse differ between versions of Node and don't contain the line.
 */

/** The first error in a text: its line, counted from 1, and what was expected there. */
export interface JsonError {
  readonly line: number;
  readonly expected: string;
}

/** What the syntax of JSON allows at a position. `more`: a comma or the closing bracket. */
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
  const openBrackets: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  const expectedAfterValue = (): Expected => (openBrackets.length === 0 ? 'end' : 'more');
  let position = skipBlanks(text, 0);
  for (; position < text.length; position = skipBlanks(text, position)) {
    const character = text[position];
    const takesValue: boolean = expected === 'value' || expected === 'value or ]';
    let end = position + 1;
    if (takesValue && (character === '{' || character === '[')) {
      openBrackets.push(character);
      expected = character === '{' ? 'name or }' : 'value or ]';
    } else if (character === ']' && openBrackets.at(-1) === '[' && (expected === 'value or ]' || expected === 'more')) {
      openBrackets.pop();
      expected = expectedAfterValue();
    } else if (character === '}' && openBrackets.at(-1) === '{' && (expected === 'name or }' || expected === 'more')) {
      openBrackets.pop();
      expected = expectedAfterValue();
    } else if (character === ',' && expected === 'more') expected = openBrackets.at(-1) === '{' ? 'name' : 'value';
    else if (character === ':' && expected === ':') expected = 'value';
    else if (character === '"' && (takesValue || expected === 'name' || expected === 'name or }')) {
      end = stringEnd(text, position);
      if (text[end - 1] !== '"' || end === position + 1)
        return { line: lineOf(text, end - 1), expected: 'a string that ends' };
      expected = takesValue ? expectedAfterValue() : ':';
    } else if (takesValue && matchEnd(SCALAR, text, position) > position) {
      end = matchEnd(SCALAR, text, position);
      expected = expectedAfterValue();
    } else break;
    position = end;
  }
  return { line: lineOf(text, position), expected: EXPECTED[expected] };
}

function skipBlanks(text: string, from: number): number {
  let position = from;
  while (position < text.length && ' \t\n\r'.includes(text[position] as string)) position += 1;
  return position;
}

/** The index after the closing quote. For an invalid string, the index of the mistake; no quote precedes it then. */
function stringEnd(text: string, from: number): number {
  let position = from + 1;
  while (position < text.length && text[position] !== '"' && text.charCodeAt(position) >= 0x20) {
    const next = text[position] === '\\' ? matchEnd(ESCAPE, text, position) : position + 1;
    if (next === position) return position;
    position = next;
  }
  return text[position] === '"' ? position + 1 : position;
}

/** The end of the pattern's match at a position; the position itself if the pattern does not match there. */
function matchEnd(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

function lineOf(text: string, position: number): number {
  let line = 1;
  for (let index = text.indexOf('\n'); index !== -1 && index < position; index = text.indexOf('\n', index + 1))
    line += 1;
  return line;
}
