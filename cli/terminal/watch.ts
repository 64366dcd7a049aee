/**
 * `--watch`: repeats a list. On a terminal it is redrawn in the alternate screen, which restores the previous content
 * at the end. In a pipe it requires `--json` and prints a JSON line per round, because programs can't read redrawn
 * tables.
 *
 * If the gateway goes away, the headline says so above the last result, and the list is requested again: people leave a
 * watch open while they restart things.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { Seconds, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { type Interruption, untilInterrupted } from './interrupt.js';
import { listenTo, oneLine, paint, printJsonLine, type Said } from './output.js';
import { cutToWidth } from './text-width.js';

const DEFAULT_SECONDS = 2;
const LEAST_SECONDS = 0.5;
const MOST_SECONDS = 3600;

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Flags of a command with `--watch`. */
interface WatchFlags {
  readonly json?: boolean;
  readonly watch?: true | number;
}

/** Adds `--watch` to a command. */
export function withWatch(command: Command): Command {
  return command.option(
    '--watch [seconds]',
    `Refresh every ${DEFAULT_SECONDS} s, or so many seconds, until Ctrl-C; in a pipe only with --json.`,
    readSeconds,
  );
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds >= LEAST_SECONDS && seconds <= MOST_SECONDS) return seconds;
  throw new InvalidArgumentError(`Expected seconds, ${LEAST_SECONDS} to ${MOST_SECONDS}.`);
}

/** The action of a command, run once or, with `--watch`, repeatedly. */
export function watched<Words extends unknown[]>(
  list: (...words: Words) => Promise<void>,
): (...words: Words) => Promise<void> {
  return async (...words) => {
    // commander passes the flags and the command after the arguments.
    const command = words.at(-1) as unknown as Command;
    const flags = words.at(-2) as unknown as WatchFlags;
    if (flags.watch === undefined) return await list(...words);
    if (!process.stdout.isTTY && !flags.json)
      throw new LockgateError(
        'input-watch',
        '--watch redraws a terminal: in a pipe add --json, for one line per refresh',
      );
    const seconds = flags.watch === true ? DEFAULT_SECONDS : flags.watch;
    const interrupted = untilInterrupted();
    const watch = new Watch(async () => await list(...words), `${pathOf(command)}, every ${seconds} s`, interrupted);
    if (flags.json) await watch.printLines(Seconds(seconds));
    else await watch.draw(Seconds(seconds));
    process.exitCode = interrupted.exitCode;
  };
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

class Watch {
  readonly #list: () => Promise<void>;
  readonly #title: string;
  readonly #interrupted: Interruption;
  /** The last result. */
  #seen: Said = { lines: [], documents: [] };
  /** Why there is no newer result; empty if there is. */
  #fault = '';
  /** Ends the wait between two rounds. */
  #wake: () => void = () => undefined;

  constructor(list: () => Promise<void>, title: string, interrupted: Interruption) {
    this.#list = list;
    this.#title = title;
    this.#interrupted = interrupted;
    interrupted.signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  async printLines(every: number): Promise<void> {
    await this.#look();
    while (!this.#interrupted.signal.aborted) {
      if (this.#fault === '') for (const document of this.#seen.documents) printJsonLine(document);
      else process.stderr.write(`${this.#fault}\n`);
      await this.#wait(every);
      await this.#lookAgain();
    }
  }

  async draw(every: number): Promise<void> {
    // A failure of the first request is reported as without --watch.
    await this.#look();
    const resized = (): void => this.#wake();
    const leave = (): void => void process.stdout.write(LEAVE);
    process.stdout.write(ENTER);
    // However the process ends.
    process.once('exit', leave);
    process.stdout.on('resize', resized);
    try {
      while (!this.#interrupted.signal.aborted) {
        process.stdout.write(this.#frame());
        await this.#wait(every);
        await this.#lookAgain();
      }
    } finally {
      process.stdout.off('resize', resized);
      process.off('exit', leave);
      leave();
    }
  }

  async #look(): Promise<void> {
    const look = listenTo(this.#list);
    // After Ctrl-C the answer is ignored.
    look.catch(() => undefined);
    const said = await Promise.race([look, this.#interrupted.happened]);
    if (said !== undefined) this.#seen = said;
    this.#fault = '';
  }

  /** A failure of the gateway may be temporary; one of the command line, or of ours, is not. */
  async #lookAgain(): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    try {
      await this.#look();
    } catch (error) {
      if (exitCodeOf(error) !== EXIT.gateway) throw error;
      this.#fault = oneLine(`${(error as Error).message}. Trying again.`);
    }
  }

  async #wait(every: number): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = systemClock.after(every, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** The whole screen: a headline, and as many lines as fit. */
  #frame(): string {
    const { columns = 80, rows = 24 } = process.stdout;
    const time = new Date(systemClock.now()).toISOString().slice(11, 19);
    const head = this.#fault === '' ? `${this.#title}. Ctrl-C quits. ${time}Z` : `${time}Z ${this.#fault}`;
    const style = this.#fault === '' ? 'dim' : 'red';
    const room = Math.max(rows - 2, 1);
    const { lines } = this.#seen;
    const hidden = lines.length - room;
    const shown = hidden > 0 ? [...lines.slice(0, room - 1), paint('dim', `… and ${hidden + 1} more lines`)] : lines;
    const all = [paint(style, cutToWidth(head, columns || 80)), '', ...shown];
    return `\u001b[H${all.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`;
  }
}
