/**
 * Runs a tutorial as its reader would: the shell blocks of the Markdown in real shells, with the real program, and
 * compares what they print with the text blocks.
 *
 * - A block `sh` runs in the reader's shell, to its end. What it prints must match the block `text` that follows; if
 *   none follows, its last command must succeed.
 * - A block `sh NAME` starts a program in a terminal of its own, where it stays. A block `text NAME` waits until the
 *   terminal has printed it.
 * - In a text, `…` stands for any characters, and a line `…` for any lines. In a command, `lgs_…` stands for the
 *   last printed secret that begins with `lgs_`.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { LOCKGATE, Program } from '../cli/program.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** How long a step may take on a busy machine. */
const PATIENCE_SECONDS = 120;

/** A block of a tutorial: a command or what is printed. */
export interface TutorialBlock {
  readonly kind: 'sh' | 'text';
  /** The terminal; empty for the reader's shell. */
  readonly terminal: string;
  readonly text: string;
  /** The line of the document at which the block begins. */
  readonly line: number;
}

/** The blocks of a document, in order. */
export function tutorialBlocks(document: string): TutorialBlock[] {
  return [...document.matchAll(/^```(sh|text)(?: (\w+))?\n([\s\S]*?)^```$/gm)].map((match) => ({
    kind: match[1] as 'sh' | 'text',
    terminal: match[2] ?? '',
    text: match[3] ?? '',
    line: document.slice(0, match.index).split('\n').length,
  }));
}

/** The pattern of an expected text: `…` is any characters, and alone on its line any lines. */
export function patternOf(text: string): string {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      if (line === '…') return '(?:.*\\n)*?';
      const parts = line.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
      return `${parts.join('.*')}\\n`;
    })
    .join('');
}

/** Ports of the tutorial by those that this run uses instead. */
export type Ports = ReadonlyMap<number, number>;

/**
 * A text with other ports. Whole numbers are replaced, all in one pass: one of the new ports may contain another's
 * digits, as 49000 contains 9000.
 */
export function withPorts(text: string, ports: Ports): string {
  return text.replace(/\d+/g, (digits) => String(ports.get(Number(digits)) ?? digits));
}

/** A tutorial that is being followed. */
export class TutorialRun {
  readonly #test: Teardown;
  readonly #folder: string;
  readonly #ports: Ports;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #terminals = new Map<string, { readonly program: Program; seen: number }>();
  readonly #shell: Program;
  #step = 0;

  constructor(test: Teardown, ports: Ports, environment: Readonly<Record<string, string>>) {
    this.#test = test;
    this.#folder = tempFolder(test);
    this.#ports = ports;
    this.#environment = environment;
    this.#shell = this.#bash('npx() { shift; "$NODE" "$LOCKGATE" "$@"; }');
  }

  /** Follows the tutorial up to the first difference. Returns the difference as a sentence; empty if there is none. */
  async follow(blocks: readonly TutorialBlock[]): Promise<string[]> {
    for (const [index, block] of blocks.entries()) {
      const next = blocks[index + 1];
      const expected = next?.kind === 'text' && next.terminal === '' ? next.text : null;
      const fault = await this.#take(block, expected);
      if (fault !== null) return [`line ${block.line}: ${fault}`];
    }
    return [];
  }

  async #take(block: TutorialBlock, expected: string | null): Promise<string | null> {
    if (block.terminal === '') return block.kind === 'sh' ? await this.#runBlock(block.text, expected) : null;
    if (block.kind === 'text') return await this.#waitFor(block.terminal, block.text);
    const program = this.#bash('npx() { shift; exec "$NODE" "$LOCKGATE" "$@"; }');
    this.#terminals.set(block.terminal, { program, seen: 0 });
    program.writeStdin(`exec 2>&1\n${this.#typed(block.text)}`);
    return null;
  }

  /** A shell in the reader's folder that reads its commands from the standard input. */
  #bash(prelude: string): Program {
    const environment = { ...this.#environment, NODE: process.execPath, LOCKGATE };
    const bash = new Program(this.#test, 'bash', ['-s'], environment);
    bash.writeStdin(`cd '${this.#folder}'\n${prelude}\n`);
    return bash;
  }

  /** Runs commands to their end in the reader's shell. */
  async #runBlock(text: string, expected: string | null): Promise<string | null> {
    this.#step += 1;
    const script = path.join(this.#folder, `.step-${this.#step}`);
    writeFileSync(script, this.#typed(text));
    const from = this.#shell.stdout.length;
    this.#shell.writeStdin(`source '${script}' < /dev/null 2>&1; printf '\\n::done %s\\n' $?\n`);
    const isDone = (lines: readonly string[]) => lines.slice(from).some((line) => line.startsWith('::done '));
    await this.#shell.waitUntil(isDone, PATIENCE_SECONDS);
    const lines = this.#shell.stdout.slice(from);
    const code = lines.pop()?.replace('::done ', '');
    // The script prints a line break before `::done`, which is an empty line unless the output lacked its last one.
    if (lines.at(-1) === '') lines.pop();
    const printed = this.#shown(lines);
    if (expected === null) return code === '0' ? null : `exit code ${code}, and printed:\n${printed}`;
    return new RegExp(`^${patternOf(expected)}$`).test(printed) ? null : `printed\n${printed}instead of\n${expected}`;
  }

  /** Waits until a terminal has printed the text, after what was found there before. */
  async #waitFor(name: string, text: string): Promise<string | null> {
    const terminal = this.#terminals.get(name);
    if (terminal === undefined) return `there is no terminal ${name}`;
    const pattern = new RegExp(`^${patternOf(text)}`, 'm');
    const printed = (lines: readonly string[]) => this.#shown(lines.slice(terminal.seen));
    try {
      await terminal.program.waitUntil((lines) => pattern.test(printed(lines)), PATIENCE_SECONDS);
    } catch {
      return `the terminal ${name} printed\n${printed(terminal.program.stdout)}instead of\n${text}`;
    }
    terminal.seen = terminal.program.stdout.length;
    return null;
  }

  /** Commands with this run's ports, and with the secrets that were printed. */
  #typed(text: string): string {
    return withPorts(text, this.#ports).replace(/\b(lgs|lgk|whsec)_…/g, (_, prefix: string) =>
      this.#lastPrinted(prefix),
    );
  }

  /** The last secret with this prefix that the reader's shell has printed. */
  #lastPrinted(prefix: string): string {
    const all = this.#shell.stdout.join('\n').match(new RegExp(`\\b${prefix}_[A-Za-z0-9_+/=-]+`, 'g'));
    return all?.at(-1) ?? `${prefix}_nothing-printed`;
  }

  /** Printed lines, with the ports that the tutorial names. */
  #shown(lines: readonly string[]): string {
    const text = lines.map((line) => `${line}\n`).join('');
    return withPorts(text, new Map([...this.#ports].map(([port, used]) => [used, port])));
  }
}
