/**
 * Runs a program as a separate process, and collects its output line by line and its exit code.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { Bell } from '../clocks/bell.js';
import { root } from '../house/our-files.js';
import type { Teardown } from '../store/temp-folder.js';
import { runCommand } from './command-line.js';

/** The compiled command line. */
export const LOCKGATE = path.join(root, 'dist/program/main.js');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Program {
  readonly name: string;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  /** Undefined while it runs. */
  ended: Ended | undefined;
  readonly #child: ChildProcess;
  readonly #bell = new Bell();

  /** Starts the program. The end of the test kills it if it still runs. */
  constructor(test: Teardown, command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    this.name = `${path.basename(command)} ${args.join(' ')}`.slice(0, 120);
    this.#child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, NO_COLOR: '1', ...environment } });
    this.#follow('stdout');
    this.#follow('stderr');
    // A program may end without reading its input; then the test checks how it ended.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.on('error', (error) => this.stderr.push(error.message));
    this.#child.on('close', (code, signal) => {
      this.ended = { code, signal };
      this.#bell.ring();
    });
    test.teardown(async () => {
      this.kill('SIGKILL');
      await this.end();
    });
  }

  #follow(name: 'stdout' | 'stderr'): void {
    let rest = '';
    this.#child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      this[name].push(...lines);
      this.#bell.ring();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.ended === undefined) this.#child.kill(signal);
  }

  /** Writes to its standard input, which stays open. */
  tell(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Writes to its standard input and closes it. */
  say(text: Buffer | string): void {
    this.#child.stdin?.end(text);
  }

  /** The first matching line of stdout or stderr. @throws Error if the program ends before, or after a timeout */
  async line(fits: RegExp, from: 'stdout' | 'stderr' = 'stdout', seconds = 60): Promise<string> {
    const find = (): string | undefined => this[from].find((line) => fits.test(line));
    const isOver = (): boolean => find() !== undefined || this.ended !== undefined;
    await this.#bell.until(isOver, seconds, () => `${fits} from ${this.#account()}`);
    const line = find();
    if (line === undefined) throw new Error(`no ${fits} from ${this.#account()}`);
    return line;
  }

  /** Resolves when there are `count` matching lines. @throws Error after a timeout */
  async lines(fits: RegExp, count: number, from: 'stdout' | 'stderr' = 'stdout', seconds = 60): Promise<void> {
    const isOver = (): boolean => this[from].filter((line) => fits.test(line)).length >= count;
    await this.#bell.until(isOver, seconds, () => `${count} lines ${fits} from ${this.#account()}`);
  }

  /** Resolves when the output `fits`. @throws Error if the program ends before, or after a timeout */
  async until(fits: (stdout: readonly string[]) => boolean, seconds = 60): Promise<void> {
    const isOver = (): boolean => fits(this.stdout) || this.ended !== undefined;
    await this.#bell.until(isOver, seconds, () => `more from ${this.#account()}`);
    if (!fits(this.stdout)) throw new Error(`no more from ${this.#account()}`);
  }

  /** Waits for the end of the program. @throws Error after a timeout */
  async end(seconds = 60): Promise<Ended> {
    const isOver = (): boolean => this.ended !== undefined;
    await this.#bell.until(isOver, seconds, () => `the end of ${this.#account()}`);
    return this.ended as Ended;
  }

  #account(): string {
    return `${this.name}, which said\n${[...this.stdout.slice(-5), ...this.stderr.slice(-20)].join('\n')}`;
  }
}

/** Runs a program to its end. */
export async function runProgram(
  test: Teardown,
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Program> {
  const program = new Program(test, command, args, environment);
  program.say('');
  await program.end();
  return program;
}

/** The end of a command: the parts of a {@link Program} that ended which tests read. */
export type CommandOutput = Pick<Program, 'name' | 'stdout' | 'stderr'> & { readonly ended: Ended };

/**
 * Runs a lockgate command to its end in the test's own process, since a process for each command costs a third of a
 * second of CPU time. Commands run one at a time; a command that a signal ends needs a {@link Program}.
 */
export async function runLockgate(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandOutput> {
  const { code, stdout, stderr } = await runCommand(args, { environment });
  const lines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
  return {
    name: `lockgate ${args.join(' ')}`,
    stdout: lines(stdout),
    stderr: lines(stderr),
    ended: { code, signal: null },
  };
}

/** Runs a lockgate command to its end, and returns its JSON output. @throws Error if the command failed */
export async function lockgateJson<T>(args: readonly string[]): Promise<T> {
  const command = await runLockgate([...args, '--json']);
  if (command.ended.code !== 0) throw new Error(`${command.name}: ${command.stderr.join('\n')}`);
  return JSON.parse(command.stdout.join('\n')) as T;
}
