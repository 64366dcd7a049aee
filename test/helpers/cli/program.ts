/**
 * Runs a program as a separate process, and collects its output line by line and its exit code.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { ChangeSignal } from '../clocks/change-signal.js';
import { root } from '../house/our-files.js';
import type { Teardown } from '../store/temp-folder.js';
import { runCommand } from './command-line.js';

/** The compiled `lockgate` program. */
export const LOCKGATE = path.join(root, 'dist/program/main.js');

/** How a process exited: its exit code, or the signal that killed it. */
export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program in a separate process. */
export class Program {
  /** The command line, shortened, for error messages. */
  readonly name: string;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  /** How the program exited; undefined while it runs. */
  exit: ProgramExit | undefined;
  readonly #child: ChildProcess;
  readonly #changeSignal = new ChangeSignal();

  /** Starts the program. If it still runs at the end of the test, it is killed then. */
  constructor(test: Teardown, command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    this.name = `${path.basename(command)} ${args.join(' ')}`.slice(0, 120);
    this.#child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, NO_COLOR: '1', ...environment } });
    this.#collectLines('stdout');
    this.#collectLines('stderr');
    // A program may exit without reading its input; then the test checks how it exited.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.on('error', (error) => this.stderr.push(error.message));
    this.#child.on('close', (code, signal) => {
      this.exit = { code, signal };
      this.#changeSignal.notify();
    });
    test.teardown(async () => {
      this.kill('SIGKILL');
      await this.waitForExit();
    });
  }

  #collectLines(name: 'stdout' | 'stderr'): void {
    let incompleteLine = '';
    this.#child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      const newLines = (incompleteLine + chunk).split('\n');
      incompleteLine = newLines.pop() ?? '';
      this[name].push(...newLines);
      this.#changeSignal.notify();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.exit === undefined) this.#child.kill(signal);
  }

  /** Writes to the program's standard input, which stays open. */
  writeStdin(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Writes to the program's standard input and closes it. */
  endStdin(text: Buffer | string): void {
    this.#child.stdin?.end(text);
  }

  /** Waits for a matching line, and returns the first. @throws Error if the program exits before, or after a timeout */
  async waitForLine(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout', seconds = 60): Promise<string> {
    const find = (): string | undefined => this[stream].find((text) => pattern.test(text));
    const isDone = (): boolean => find() !== undefined || this.exit !== undefined;
    await this.#changeSignal.waitUntil(isDone, seconds, () => `${pattern} from ${this.#describeOutput()}`);
    const found = find();
    if (found === undefined) throw new Error(`no ${pattern} from ${this.#describeOutput()}`);
    return found;
  }

  /** Waits for `count` matching lines. @throws Error after a timeout */
  async waitForLines(
    pattern: RegExp,
    count: number,
    stream: 'stdout' | 'stderr' = 'stdout',
    seconds = 60,
  ): Promise<void> {
    const isDone = (): boolean => this[stream].filter((text) => pattern.test(text)).length >= count;
    await this.#changeSignal.waitUntil(
      isDone,
      seconds,
      () => `${count} lines ${pattern} from ${this.#describeOutput()}`,
    );
  }

  /** Waits until `holds` accepts the output. @throws Error if the program exits before, or after a timeout */
  async waitUntil(holds: (stdout: readonly string[]) => boolean, seconds = 60): Promise<void> {
    const isDone = (): boolean => holds(this.stdout) || this.exit !== undefined;
    await this.#changeSignal.waitUntil(isDone, seconds, () => `more from ${this.#describeOutput()}`);
    if (!holds(this.stdout)) throw new Error(`no more from ${this.#describeOutput()}`);
  }

  /** Waits until the program has exited. @throws Error after a timeout */
  async waitForExit(seconds = 60): Promise<ProgramExit> {
    const isDone = (): boolean => this.exit !== undefined;
    await this.#changeSignal.waitUntil(isDone, seconds, () => `the exit of ${this.#describeOutput()}`);
    return this.exit as ProgramExit;
  }

  #describeOutput(): string {
    return `${this.name}, which printed\n${[...this.stdout.slice(-5), ...this.stderr.slice(-20)].join('\n')}`;
  }
}

/** Runs a program, with an empty standard input, until it has exited. */
export async function runProgram(
  test: Teardown,
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Program> {
  const program = new Program(test, command, args, environment);
  program.endStdin('');
  await program.waitForExit();
  return program;
}

/** The output and the exit of a command that has finished, with the same names as in {@link Program}. */
export type CommandOutput = Pick<Program, 'name' | 'stdout' | 'stderr'> & { readonly exit: ProgramExit };

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
    exit: { code, signal: null },
  };
}

/** Runs a lockgate command to its end, and returns its JSON output. @throws Error if the command failed */
export async function lockgateJson<T>(args: readonly string[]): Promise<T> {
  const command = await runLockgate([...args, '--json']);
  if (command.exit.code !== 0) throw new Error(`${command.name}: ${command.stderr.join('\n')}`);
  return JSON.parse(command.stdout.join('\n')) as T;
}
