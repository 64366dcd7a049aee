/**
 * The command line within the test's own process: a command costs some milliseconds rather than a process. What it
 * writes is caught, stdout and stderr in their order; its standard input, terminal, folder and environment are those
 * that the test says. One runs at a time, since a process has one of each.
 */
import { Readable } from 'node:stream';
import { runCommandLine } from '../../../cli/terminal/command-line.js';
import { Bell } from '../clocks/bell.js';

/** One write, as it came. */
interface Written {
  readonly to: 'stdout' | 'stderr';
  readonly text: string;
}

/** How a command ended, and what it said. */
export interface CommandEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly written: readonly Written[];
}

/** A command that runs. */
export interface RunningCommand {
  /** Resolves when what it has written so far fits. */
  until(fits: RegExp): Promise<void>;
  /** Ctrl-C. */
  interrupt(): void;
}

export interface CommandPlace {
  /** The columns of the terminal that stdout is; in a pipe where it is left out. */
  readonly columns?: number;
  readonly stdin?: string | Buffer;
  /** The environment, beside PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly folder?: string;
  /** What happens while it runs. */
  readonly during?: (running: RunningCommand) => Promise<void>;
}

/** How long it may be silent before a test gives up on it. */
const PATIENCE_SECONDS = 30;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Undo = () => void;

let last: Promise<unknown> = Promise.resolve();

/** Runs it to its end. */
export async function runCommand(words: readonly string[], place: CommandPlace = {}): Promise<CommandEnd> {
  const mine = last.then(() => runNow(words, place));
  last = mine.catch(() => undefined);
  return await mine;
}

async function runNow(words: readonly string[], place: CommandPlace): Promise<CommandEnd> {
  const written: Written[] = [];
  const bell = new Bell();
  const undo: Undo[] = [
    catchWrites('stdout', written, bell),
    catchWrites('stderr', written, bell),
    replace(process.stdout, 'isTTY', place.columns === undefined ? undefined : true),
    replace(process.stdout, 'columns', place.columns),
    replace(process.stderr, 'isTTY', undefined),
    replace(process, 'stdin', Readable.from(place.stdin === undefined ? [] : [place.stdin])),
    replace(process, 'env', { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...place.environment }),
    keepListeners(),
    enter(place.folder),
  ];
  const before = process.exitCode;
  process.exitCode = undefined;
  const all = (): string => written.map(({ text }) => text).join('');
  const running: RunningCommand = {
    until: (fits) =>
      bell.until(
        () => fits.test(all()),
        PATIENCE_SECONDS,
        () => `${fits} in ${all()}`,
      ),
    interrupt: () => void process.emit('SIGINT', 'SIGINT'),
  };
  try {
    await Promise.all([runCommandLine(words), place.during?.(running)]);
    return {
      code: Number(process.exitCode ?? 0),
      stdout: of(written, 'stdout'),
      stderr: of(written, 'stderr'),
      written,
    };
  } finally {
    process.exitCode = before;
    for (const each of undo.reverse()) each();
  }
}

function of(written: readonly Written[], name: Written['to']): string {
  return written.flatMap(({ to, text }) => (to === name ? [text] : [])).join('');
}

function catchWrites(name: Written['to'], written: Written[], bell: Bell): Undo {
  return replace(process[name], 'write', (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    written.push({ to: name, text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    bell.ring();
    const done = rest.at(-1);
    if (typeof done === 'function') queueMicrotask(() => done());
    return true;
  });
}

/** Gives a member another value. @returns what gives it back the one it had */
function replace(target: object, name: string, value: unknown): Undo {
  const own = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
  return () => {
    if (own === undefined) Reflect.deleteProperty(target, name);
    else Object.defineProperty(target, name, own);
  };
}

/** A command listens to signals for as long as its process lives; here it ends before that. */
function keepListeners(): Undo {
  const before = new Map(SIGNALS.map((name) => [name, new Set(process.listeners(name))]));
  return () => {
    for (const name of SIGNALS)
      for (const listener of process.listeners(name)) if (!before.get(name)?.has(listener)) process.off(name, listener);
  };
}

function enter(folder: string | undefined): Undo {
  if (folder === undefined) return () => undefined;
  const before = process.cwd();
  process.chdir(folder);
  return () => process.chdir(before);
}
