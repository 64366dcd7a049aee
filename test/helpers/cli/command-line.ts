/**
 * Runs commands inside the test's own process, which is much faster than starting a new process for each command.
 * What a command writes to stdout and stderr is captured in order; the test sets its standard input, terminal, working
 * folder and environment. The process has only one of each, so commands run one at a time.
 */
import { Readable } from 'node:stream';
import { runCommandLine } from '../../../cli/terminal/command-line.js';
import { Bell } from '../clocks/bell.js';

/** One write to an output stream. */
interface Written {
  readonly to: 'stdout' | 'stderr';
  readonly text: string;
}

/** A command's exit code, and what it wrote. */
export interface CommandEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly written: readonly Written[];
}

/** A command that is running. */
export interface RunningCommand {
  /** Resolves when the output so far matches. */
  until(pattern: RegExp): Promise<void>;
  /** Sends Ctrl-C. */
  interrupt(): void;
}

/** The environment of a command. */
export interface CommandPlace {
  /** The width of the terminal that stdout writes to; undefined if stdout is a pipe. */
  readonly columns?: number;
  readonly stdin?: string | Buffer;
  /** Environment variables in addition to PATH, HOME and NO_COLOR. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The working folder; by default the test's. */
  readonly folder?: string;
  /** Called when the command starts; the test interacts with the command. */
  readonly during?: (running: RunningCommand) => Promise<void>;
}

/** How long a test waits for output that matches before it fails. */
const TIMEOUT_SECONDS = 30;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Undo = () => void;

let last: Promise<unknown> = Promise.resolve();

/** Runs a command to its end, after all earlier calls. `args` is the command line without `lockgate`. */
export async function runCommand(args: readonly string[], place: CommandPlace = {}): Promise<CommandEnd> {
  const mine = last.then(() => runNow(args, place));
  last = mine.catch(() => undefined);
  return await mine;
}

async function runNow(args: readonly string[], place: CommandPlace): Promise<CommandEnd> {
  const written: Written[] = [];
  const bell = new Bell();
  const undo: Undo[] = [
    captureWrites('stdout', written, bell),
    captureWrites('stderr', written, bell),
    replace(process.stdout, 'isTTY', place.columns === undefined ? undefined : true),
    replace(process.stdout, 'columns', place.columns),
    replace(process.stderr, 'isTTY', undefined),
    replace(process, 'stdin', Readable.from(place.stdin === undefined ? [] : [place.stdin])),
    replace(process, 'env', { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...place.environment }),
    restoreSignalListeners(),
    changeFolder(place.folder),
  ];
  const before = process.exitCode;
  process.exitCode = undefined;
  const output = (): string => written.map(({ text }) => text).join('');
  const running: RunningCommand = {
    until: (pattern) =>
      bell.until(
        () => pattern.test(output()),
        TIMEOUT_SECONDS,
        () => `${pattern} in ${output()}`,
      ),
    interrupt: () => void process.emit('SIGINT', 'SIGINT'),
  };
  try {
    await Promise.all([runCommandLine(args), place.during?.(running)]);
    return {
      code: Number(process.exitCode ?? 0),
      stdout: textTo('stdout', written),
      stderr: textTo('stderr', written),
      written,
    };
  } finally {
    process.exitCode = before;
    for (const each of undo.reverse()) each();
  }
}

function textTo(name: Written['to'], written: readonly Written[]): string {
  return written.flatMap(({ to, text }) => (to === name ? [text] : [])).join('');
}

function captureWrites(name: Written['to'], written: Written[], bell: Bell): Undo {
  return replace(process[name], 'write', (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    written.push({ to: name, text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    bell.ring();
    const done = rest.at(-1);
    if (typeof done === 'function') queueMicrotask(() => done());
    return true;
  });
}

/** Replaces a property's value. Returns a function that restores it. */
function replace(target: object, name: string, value: unknown): Undo {
  const own = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
  return () => {
    if (own === undefined) Reflect.deleteProperty(target, name);
    else Object.defineProperty(target, name, own);
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

function changeFolder(folder: string | undefined): Undo {
  if (folder === undefined) return () => undefined;
  const before = process.cwd();
  process.chdir(folder);
  return () => process.chdir(before);
}
