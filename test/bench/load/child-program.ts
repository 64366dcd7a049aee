/** A program of the bench in a separate process, so that its work does not count as that of the measured process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Seconds, systemClock } from '../../../proto/clock.js';

/** How long the program may take to end after its stdin is closed; then the bench kills it. */
const STOP_TIMEOUT_MS = Seconds(5);

/** A program that answers each line of its stdin with one line of JSON, and ends when its stdin is closed. */
export class ChildProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  readonly #name: string;

  constructor(command: string, args: readonly string[]) {
    this.#name = [command, ...args].join(' ').slice(0, 100);
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('no stdout');
    // If the program has ended, `readAnswer` throws.
    this.#child.stdin?.on('error', () => undefined);
    this.#reader = createInterface({ input: this.#child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** Starts a script of the bench with `argument` as JSON; `script` is the path of the compiled file in test/bench. */
  static startScript(script: string, argument: unknown): ChildProgram {
    const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
    return new ChildProgram(process.execPath, ['--expose-gc', file, JSON.stringify(argument)]);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a line and resolves with the program's next answer. @throws Error if the program has ended */
  ask<T>(line: string): Promise<T> {
    this.#child.stdin?.write(`${line}\n`);
    return this.readAnswer();
  }

  /** The program's next answer, or the line that it prints when it is ready. @throws Error if the program has ended */
  async readAnswer<T>(): Promise<T> {
    const next = await this.#lines.next();
    if (next.done === true) throw new Error(`a program of the bench has ended: ${this.#name}`);
    return JSON.parse(next.value) as T;
  }

  /** Closes the program's stdin and waits until the program has ended. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise<void>((resolve) => this.#child.once('close', () => resolve()));
      this.#child.stdin?.end();
      const grace = systemClock.after(STOP_TIMEOUT_MS, () => this.#child.kill('SIGKILL'));
      await ended;
      grace.cancel();
    }
    this.#reader.close();
  }
}
