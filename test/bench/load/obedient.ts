/** A program of the bench in a process of its own, so that what it does is not done by what is measured. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Seconds, systemClock } from '../../../proto/clock.js';

/** How long it may take to end once it is told nothing more. */
const END_GRACE = Seconds(5);

/** It is told one line and answers with one, in JSON, and ends when there is nobody any more to tell it something. */
export class Obedient {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  readonly #name: string;

  constructor(command: string, args: readonly string[]) {
    this.#name = [command, ...args].join(' ').slice(0, 100);
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('no stdout');
    // One that ended is found out by the answer that does not come.
    this.#child.stdin?.on('error', () => undefined);
    this.#reader = createInterface({ input: this.#child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** One of the bench's own: `script` is its compiled file's path in test/bench. It takes its argument as JSON. */
  static script(script: string, argument: unknown): Obedient {
    const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
    return new Obedient(process.execPath, ['--expose-gc', file, JSON.stringify(argument)]);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws Error where it has ended instead of answering */
  async answer<T>(line?: string): Promise<T> {
    if (line !== undefined) this.#child.stdin?.write(`${line}\n`);
    const next = await this.#lines.next();
    if (next.done === true) throw new Error(`a program of the bench has ended: ${this.#name}`);
    return JSON.parse(next.value) as T;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise<void>((resolve) => this.#child.once('close', () => resolve()));
      this.#child.stdin?.end();
      const grace = systemClock.after(END_GRACE, () => this.#child.kill('SIGKILL'));
      await ended;
      grace.cancel();
    }
    this.#reader.close();
  }
}
