/**
 * `--watch`: runs a list command repeatedly. On a terminal the list is redrawn in the alternate screen, so that the
 * previous content of the terminal returns at the end. In a pipe `--watch` requires `--json` and prints a JSON line per
 * refresh, because programs can't read redrawn tables.
 *
 * If the gateway can't be reached, the headline says so above the last result, and the list is requested again: people
 * leave a watch open while they restart the gateway.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { Seconds, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { type Interruption, untilInterrupted } from './interrupt.js';
import { type CapturedOutput, captureOutput, oneLine, paint, printJsonLine } from './output.js';
import { cutToWidth } from './text-width.js';

const DEFAULT_SECONDS = 2;
const MIN_SECONDS = 0.5;
const MAX_SECONDS = 3600;

/** Escape sequences: enter the alternate screen, hide the cursor, don't wrap lines; and the reverse. */
const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE_SCREEN = '\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Flags of a command with `--watch`. */
interface WatchFlags {
  readonly json?: boolean;
  readonly watch?: true | number;
}

/** Adds `--watch` to a command. */
export function withWatch(command: Command): Command {
  return command.option(
    '--watch [seconds]',
    `Refresh every ${DEFAULT_SECONDS} s, or at this interval, until Ctrl-C; in a pipe only with --json.`,
    readSeconds,
  );
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return seconds;
  throw new InvalidArgumentError(`Expected seconds, ${MIN_SECONDS} to ${MAX_SECONDS}.`);
}

/** Wraps the action of a list command: it runs once or, with `--watch`, repeatedly. */
export function withWatching<Words extends unknown[]>(
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

/** A watch in progress. */
class Watch {
  readonly #list: () => Promise<void>;
  readonly #title: string;
  readonly #interrupted: Interruption;
  /** The last result. */
  #lastOutput: CapturedOutput = { lines: [], documents: [] };
  /** Why the last request failed; empty if it succeeded. */
  #failure = '';
  /** Ends the wait between two requests. */
  #wake: () => void = () => undefined;

  constructor(list: () => Promise<void>, title: string, interrupted: Interruption) {
    this.#list = list;
    this.#title = title;
    this.#interrupted = interrupted;
    interrupted.signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  async printLines(every: number): Promise<void> {
    await this.#request();
    while (!this.#interrupted.signal.aborted) {
      if (this.#failure === '') for (const document of this.#lastOutput.documents) printJsonLine(document);
      else process.stderr.write(`${this.#failure}\n`);
      await this.#wait(every);
      await this.#requestAgain();
    }
  }

  async draw(every: number): Promise<void> {
    // A failure of the first request is reported as without --watch.
    await this.#request();
    const resized = (): void => this.#wake();
    const leave = (): void => void process.stdout.write(LEAVE_SCREEN);
    process.stdout.write(ENTER_SCREEN);
    // Restores the terminal however the process ends.
    process.once('exit', leave);
    process.stdout.on('resize', resized);
    try {
      while (!this.#interrupted.signal.aborted) {
        process.stdout.write(this.#frame());
        await this.#wait(every);
        await this.#requestAgain();
      }
    } finally {
      process.stdout.off('resize', resized);
      process.off('exit', leave);
      leave();
    }
  }

  async #request(): Promise<void> {
    const look = captureOutput(this.#list);
    // After Ctrl-C the answer is ignored.
    look.catch(() => undefined);
    const said = await Promise.race([look, this.#interrupted.happened]);
    if (said !== undefined) this.#lastOutput = said;
    this.#failure = '';
  }

  /** Requests the list again. Only a failure of the gateway may be temporary; other errors end the watch. */
  async #requestAgain(): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    try {
      await this.#request();
    } catch (error) {
      if (exitCodeOf(error) !== EXIT.gateway) throw error;
      this.#failure = oneLine(`${(error as Error).message}. Trying again.`);
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

  /** The content of the screen: a headline, and as many lines as fit. */
  #frame(): string {
    const { columns = 80, rows = 24 } = process.stdout;
    const time = new Date(systemClock.now()).toISOString().slice(11, 19);
    const head = this.#failure === '' ? `${this.#title}. Ctrl-C quits. ${time}Z` : `${time}Z ${this.#failure}`;
    const style = this.#failure === '' ? 'dim' : 'red';
    const room = Math.max(rows - 2, 1);
    const { lines } = this.#lastOutput;
    const hidden = lines.length - room;
    const shown = hidden > 0 ? [...lines.slice(0, room - 1), paint('dim', `… and ${hidden + 1} more lines`)] : lines;
    const all = [paint(style, cutToWidth(head, columns || 80)), '', ...shown];
    return `\u001b[H${all.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`;
  }
}
