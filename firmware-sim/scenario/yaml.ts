/**
 * YAML into plain values, with the line of each: strangers write it, so aliases, tags, several documents, and files too
 * large or too deep are told of instead of followed.
 */
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';

/** A mistake in a file, and the line that it stands in. */
export interface Mistake {
  readonly line: number;
  /** What is wrong, and what was expected. */
  readonly message: string;
}

/** A file taken apart. */
export interface YamlText {
  readonly value: unknown;
  /** The line of a member by its JSON pointer, of the nearest member around it where it has none. */
  readonly lineOf: (pointer: string) => number;
  readonly mistakes: readonly Mistake[];
}

/** A scenario of a thousand events has some 60 KB. */
export const MOST_SCENARIO_BYTES = 256 * 1024;
const MOST_DEPTH = 12;
const MOST_NODES = 50_000;

/** Reads the text; where it has mistakes the value is not to be believed. It never throws. */
export function readYaml(text: string): YamlText {
  const lines = new LineCounter();
  const mistakes: Mistake[] = [];
  const lineAt = (offset: number | undefined): number => Math.max(1, lines.linePos(offset ?? 0).line);
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_SCENARIO_BYTES) {
    const message = `the file has ${bytes} bytes: expected at most ${MOST_SCENARIO_BYTES}`;
    return { value: null, lineOf: () => 1, mistakes: [{ line: 1, message }] };
  }
  const documents = parseAllDocuments(text, { lineCounter: lines, version: '1.2', schema: 'core', logLevel: 'silent' });
  const [document, second] = Array.isArray(documents) ? documents : [];
  if (second !== undefined)
    mistakes.push({ line: lineAt(second.range?.[0]), message: 'a second document begins: expected one' });
  for (const { pos, message } of [...(document?.errors ?? []), ...(document?.warnings ?? [])])
    mistakes.push({ line: lineAt(pos[0]), message: `${firstLine(message)}: expected YAML` });
  const walk = new Walk(lineAt, mistakes);
  const value = document === undefined ? null : walk.value(document.contents, '', 0);
  return { value, lineOf: (pointer) => walk.lineOf(pointer), mistakes };
}

function firstLine(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '').replace(/[:.]$/, '');
}

class Walk {
  readonly #lines = new Map<string, number>();
  readonly #lineAt: (offset: number | undefined) => number;
  readonly #mistakes: Mistake[];
  #nodes = 0;

  constructor(lineAt: (offset: number | undefined) => number, mistakes: Mistake[]) {
    this.#lineAt = lineAt;
    this.#mistakes = mistakes;
  }

  lineOf(pointer: string): number {
    for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
      const line = this.#lines.get(at);
      if (line !== undefined || at === '') return line ?? 1;
    }
  }

  value(node: Node | null | undefined, pointer: string, depth: number): unknown {
    if (node === null || node === undefined) return null;
    if (!this.#lines.has(pointer)) this.#lines.set(pointer, this.#lineAt(node.range?.[0]));
    this.#nodes += 1;
    if (depth > MOST_DEPTH || this.#nodes > MOST_NODES) {
      if (depth > MOST_DEPTH) this.#wrong(node, `more than ${MOST_DEPTH} levels: expected fewer`);
      else if (this.#nodes === MOST_NODES + 1) this.#wrong(node, `more than ${MOST_NODES} values: expected fewer`);
      return null;
    }
    if (isAlias(node)) return this.#wrong(node, 'an alias: expected what it stands for to be written out');
    if (node.tag?.startsWith('!') === true) return this.#wrong(node, `a tag, ${node.tag}: expected none`);
    if (isScalar(node)) return typeof node.value === 'bigint' ? String(node.value) : node.value;
    if (isSeq(node)) {
      return node.items.map((item, index) => this.value(item as Node, `${pointer}/${index}`, depth + 1));
    }
    return isMap(node) ? this.#members(node.items, pointer, depth) : null;
  }

  #members(items: readonly unknown[], pointer: string, depth: number): unknown {
    // Without a prototype: a key may be called anything.
    const members: Record<string, unknown> = Object.create(null);
    for (const pair of items) {
      if (!isPair(pair)) continue;
      const { key, value } = pair;
      if (!isScalar(key)) {
        this.#wrong(key as Node, 'a key that is no text: expected a name');
        continue;
      }
      const at = `${pointer}/${escaped(String(key.value))}`;
      this.#lines.set(at, this.#lineAt(key.range?.[0]));
      members[String(key.value)] = this.value(value as Node, at, depth + 1);
    }
    return members;
  }

  #wrong(node: Node, message: string): null {
    this.#mistakes.push({ line: this.#lineAt(node.range?.[0]), message });
    return null;
  }
}

/** A name as a part of a JSON pointer (RFC 6901). */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
