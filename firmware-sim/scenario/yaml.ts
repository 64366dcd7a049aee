/**
 * Parses YAML into plain values, with the line of each value. Users write these files, so aliases, tags, multiple
 * documents, and excessive size or depth are reported as mistakes and not followed. Pure.
 */
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';

/** A mistake in a file, with its line. */
export interface Mistake {
  readonly line: number;
  /** What is wrong, and what was expected. */
  readonly message: string;
}

/** A parsed file. */
export interface YamlText {
  readonly value: unknown;
  /** The line of a value by its JSON pointer; for a missing value, the line of the nearest enclosing value. */
  readonly lineOf: (pointer: string) => number;
  readonly mistakes: readonly Mistake[];
}

/** A scenario with a thousand events has about 60 KB. */
export const MAX_SCENARIO_BYTES = 256 * 1024;
/** The deepest nesting that is read. The limit protects against stack overflows. */
const MAX_DEPTH = 12;
/** Maximum number of values that are read. The limit protects the memory. */
const MAX_NODES = 50_000;

/** Parses the text. The value is valid only if there are no mistakes. Never throws. */
export function readYaml(text: string): YamlText {
  const lines = new LineCounter();
  const mistakes: Mistake[] = [];
  const lineAt = (offset: number | undefined): number => Math.max(1, lines.linePos(offset ?? 0).line);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_SCENARIO_BYTES) {
    const message = `the file has ${bytes} bytes: expected at most ${MAX_SCENARIO_BYTES}`;
    return { value: null, lineOf: () => 1, mistakes: [{ line: 1, message }] };
  }
  const options = { lineCounter: lines, version: '1.2', schema: 'core', logLevel: 'silent' } as const;
  const [document, secondDocument] = parseAllDocuments(text, options);
  if (secondDocument !== undefined)
    mistakes.push({ line: lineAt(secondDocument.range?.[0]), message: 'a second document: expected one' });
  for (const { pos, message } of [...(document?.errors ?? []), ...(document?.warnings ?? [])])
    mistakes.push({ line: lineAt(pos[0]), message: `${firstLine(message)}: expected YAML` });
  const reader = new NodeReader(lineAt, mistakes);
  const value = document === undefined ? null : reader.value(document.contents, '', 0);
  return { value, lineOf: (pointer) => reader.lineOf(pointer), mistakes };
}

/** The first line of the YAML library's message, without its position and final punctuation. */
function firstLine(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '').replace(/[:.]$/, '');
}

/** Converts the nodes of the YAML library to plain values, and notes the line of each value by its JSON pointer. */
class NodeReader {
  readonly #lines = new Map<string, number>();
  readonly #lineAt: (offset: number | undefined) => number;
  readonly #mistakes: Mistake[];
  #nodes = 0;

  constructor(lineAt: (offset: number | undefined) => number, mistakes: Mistake[]) {
    this.#lineAt = lineAt;
    this.#mistakes = mistakes;
  }

  lineOf(pointer: string): number {
    for (let ancestor = pointer; ; ancestor = ancestor.slice(0, ancestor.lastIndexOf('/'))) {
      const line = this.#lines.get(ancestor);
      if (line !== undefined || ancestor === '') return line ?? 1;
    }
  }

  value(node: Node | null | undefined, pointer: string, depth: number): unknown {
    if (node === null || node === undefined) return null;
    if (!this.#lines.has(pointer)) this.#lines.set(pointer, this.#lineAt(node.range?.[0]));
    this.#nodes += 1;
    if (depth > MAX_DEPTH || this.#nodes > MAX_NODES) {
      // Too many values are reported once, at the first value above the limit.
      if (depth > MAX_DEPTH) this.#addMistake(node, `more than ${MAX_DEPTH} levels: expected fewer`);
      else if (this.#nodes === MAX_NODES + 1) this.#addMistake(node, `more than ${MAX_NODES} values: expected fewer`);
      return null;
    }
    if (isAlias(node)) return this.#addMistake(node, 'an alias: expected its value to be written out');
    // A tag of the author's own. The tags of YAML itself start with `tag:`.
    if (node.tag?.startsWith('!') === true) return this.#addMistake(node, `a tag, ${node.tag}: expected none`);
    if (isScalar(node)) return typeof node.value === 'bigint' ? String(node.value) : node.value;
    if (isSeq(node)) {
      return node.items.map((item, index) => this.value(item as Node, `${pointer}/${index}`, depth + 1));
    }
    return isMap(node) ? this.#members(node.items, pointer, depth) : null;
  }

  #members(items: readonly unknown[], pointer: string, depth: number): unknown {
    // The object has no prototype, since a key may have any name.
    const members: Record<string, unknown> = Object.create(null);
    for (const pair of items) {
      if (!isPair(pair)) continue;
      const { key, value } = pair;
      if (!isScalar(key)) {
        this.#addMistake(key as Node, 'a key that is not text: expected a name');
        continue;
      }
      const memberPointer = `${pointer}/${escaped(String(key.value))}`;
      this.#lines.set(memberPointer, this.#lineAt(key.range?.[0]));
      members[String(key.value)] = this.value(value as Node, memberPointer, depth + 1);
    }
    return members;
  }

  #addMistake(node: Node, message: string): null {
    this.#mistakes.push({ line: this.#lineAt(node.range?.[0]), message });
    return null;
  }
}

/** A name as a token of a JSON pointer (RFC 6901). */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
