/** A program of the bench in a process of its own, so that what it does is not done by what is measured. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** It is told one line and answers with one, in JSON. `script` is a file beside this one. */
export class Obedient {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;

  constructor(script: string, argument: unknown) {
    const file = fileURLToPath(new URL(script, import.meta.url));
    this.#child = spawn(process.execPath, ['--expose-gc', file, JSON.stringify(argument)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#child.stdout === null) throw new Error('no stdout');
    this.#reader = createInterface({ input: this.#child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async answer<T>(line?: string): Promise<T> {
    if (line !== undefined) this.#child.stdin?.write(`${line}\n`);
    const next = await this.#lines.next();
    if (next.done === true) throw new Error('a program of the bench has ended');
    return JSON.parse(next.value) as T;
  }

  async end(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#child.once('close', () => resolve()));
    this.#child.stdin?.end();
    await ended;
    this.#reader.close();
  }
}
