/**
 * Runs commands inside the test's own process, which is much faster than starting a new process for each command.
 * What a command writes to stdout and stderr is captured in order; the test sets its standard input, terminal, working
 * folder and environment. The process has only one of each, so commands run one at a time.
 */
import { Readable } from 'node:stream';
import { runCommandLine } from '../../../cli/terminal/command-line.js';
import { ChangeSignal } from '../clocks/change-signal.js';

/** One write to an output stream. */
interface OutputWrite {
  readonly to: 'stdout' | 'stderr';
  readonly text: string;
}

/** A finished command: its exit code and its output. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly writes: readonly OutputWrite[];
}

/** A command that is running. */
export interface RunningCommand {
  /** Resolves when stdout and stderr so far, together, match. */
  waitUntil(pattern: RegExp): Promise<void>;
  /** Sends Ctrl-C. */
  interrupt(): void;
}

/** The environment of a command. */
export interface CommandEnvironment {
  /** The width of the terminal that stdout writes to; undefined if stdout is a pipe. */
  readonly columns?: number;
  readonly stdin?: string | Buffer;
  /** Environment variables in addition to PATH, HOME and NO_COLOR. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The working folder; by default the test's. */
  readonly folder?: string;
  /** Called when the command starts; the test interacts with the command. */
  readonly whileRunning?: (running: RunningCommand) => Promise<void>;
}

/** How long a test waits for output that matches before it fails. */
const TIMEOUT_SECONDS = 30;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Puts back what was replaced. */
type Undo = () => void;

/** Resolves when the last command has ended: commands run one after another, since each replaces parts of `process`. */
let previousCommand: Promise<unknown> = Promise.resolve();

/** Runs a command to its end, once all earlier calls are finished. `args` is the command line without `lockgate`. */
export async function runCommand(
  args: readonly string[],
  environment: CommandEnvironment = {},
): Promise<CommandResult> {
  const result = previousCommand.then(() => runNow(args, environment));
  previousCommand = result.catch(() => undefined);
  return await result;
}

/** Runs a command in this process: replaces what it uses of `process`, and puts everything back at its end. */
async function runNow(args: readonly string[], environment: CommandEnvironment): Promise<CommandResult> {
  const writes: OutputWrite[] = [];
  const changeSignal = new ChangeSignal();
  const undoList: Undo[] = [
    captureWrites('stdout', writes, changeSignal),
    captureWrites('stderr', writes, changeSignal),
    replace(process.stdout, 'isTTY', environment.columns === undefined ? undefined : true),
    replace(process.stdout, 'columns', environment.columns),
    replace(process.stderr, 'isTTY', undefined),
    replace(process, 'stdin', Readable.from(environment.stdin === undefined ? [] : [environment.stdin])),
    replace(process, 'env', {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NO_COLOR: '1',
      ...environment.environment,
    }),
    restoreSignalListeners(),
    changeFolder(environment.folder),
  ];
  const before = process.exitCode;
  process.exitCode = undefined;
  const output = (): string => writes.map(({ text }) => text).join('');
  const running: RunningCommand = {
    waitUntil: (pattern) =>
      changeSignal.waitUntil(
        () => pattern.test(output()),
        TIMEOUT_SECONDS,
        () => `${pattern} in ${output()}`,
      ),
    interrupt: () => void process.emit('SIGINT', 'SIGINT'),
  };
  try {
    await Promise.all([runCommandLine(args), environment.whileRunning?.(running)]);
    return {
      code: Number(process.exitCode ?? 0),
      stdout: outputOf('stdout', writes),
      stderr: outputOf('stderr', writes),
      writes,
    };
  } finally {
    process.exitCode = before;
    for (const undo of undoList.reverse()) undo();
  }
}

function outputOf(name: OutputWrite['to'], writes: readonly OutputWrite[]): string {
  return writes.flatMap(({ to, text }) => (to === name ? [text] : [])).join('');
}

/** Collects what is written to stdout or stderr; nothing is printed. */
function captureWrites(name: OutputWrite['to'], writes: OutputWrite[], changeSignal: ChangeSignal): Undo {
  return replace(process[name], 'write', (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    writes.push({ to: name, text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    changeSignal.notify();
    // Node's `write` takes a callback as its last argument, after an optional encoding.
    const done = rest.at(-1);
    if (typeof done === 'function') queueMicrotask(() => done());
    return true;
  });
}

/** Replaces a property's value. Returns a function that restores it. */
function replace(target: object, name: string, value: unknown): Undo {
  const originalProperty = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
  return () => {
    if (originalProperty === undefined) Reflect.deleteProperty(target, name);
    else Object.defineProperty(target, name, originalProperty);
  };
}

/** Commands leave their signal listeners in place, since their process ends with them. Here they must be removed. */
function restoreSignalListeners(): Undo {
  const before = new Map(SIGNALS.map((name) => [name, new Set(process.listeners(name))]));
  return () => {
    for (const name of SIGNALS)
      for (const listener of process.listeners(name)) if (!before.get(name)?.has(listener)) process.off(name, listener);
  };
}

/** Changes the working directory, if a folder is given. */
function changeFolder(folder: string | undefined): Undo {
  if (folder === undefined) return () => undefined;
  const before = process.cwd();
  process.chdir(folder);
  return () => process.chdir(before);
}
