/**
 * The flag `--watch`, which runs a list command repeatedly until Ctrl-C: `addWatchFlag` declares the flag, and
 * `repeatIfWatched` wraps the command's action. On a terminal the list is redrawn in the alternate screen, so that the
 * terminal's previous content returns at the end. In a pipe `--watch` requires `--json` and prints a JSON line per
 * refresh, because programs can't read redrawn tables.
 *
 * If a refresh can't reach the gateway, the headline says so above the last result, and the next refresh tries again:
 * people leave a watched list open while they restart the gateway.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { Seconds, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { EXIT_CODE, exitCodeOf } from './exit-codes.js';
import { type Interruption, untilInterrupted } from './interrupt.js';
import { type CapturedOutput, captureOutput, paint, printJsonLine, sanitizeLine } from './output.js';
import { cutToWidth } from './text-width.js';

const DEFAULT_SECONDS = 2;
const MIN_SECONDS = 0.5;
const MAX_SECONDS = 3600;

/** Escape sequences that enter the alternate screen, hide the cursor and stop wrapping lines; and the reverse. */
const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE_SCREEN = '\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Flags of a command with `--watch`. */
interface WatchFlags {
  readonly json?: boolean;
  readonly watch?: true | number;
}

/** Adds `--watch` to a command. */
export function addWatchFlag(command: Command): Command {
  return command.option(
    '--watch [seconds]',
    `Refresh every ${DEFAULT_SECONDS} s, or at this interval, until Ctrl-C; in a pipe only with --json.`,
    parseInterval,
  );
}

function parseInterval(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return seconds;
  throw new InvalidArgumentError(`Expected seconds, ${MIN_SECONDS} to ${MAX_SECONDS}.`);
}

/**
 * Wraps the action of a list command: the returned action runs `printList` once or, if `--watch` is given, repeatedly.
 *
 * @throws LockgateError `input-watch` from the returned action, for `--watch` in a pipe without `--json`
 */
export function repeatIfWatched<Arguments extends unknown[]>(
  printList: (...actionArguments: Arguments) => Promise<void>,
): (...actionArguments: Arguments) => Promise<void> {
  return async (...actionArguments) => {
    // commander calls an action with the command's arguments, then the flags, then the command.
    const command = actionArguments.at(-1) as unknown as Command;
    const flags = actionArguments.at(-2) as unknown as WatchFlags;
    if (flags.watch === undefined) return await printList(...actionArguments);
    if (!process.stdout.isTTY && !flags.json)
      throw new LockgateError(
        'input-watch',
        '--watch redraws a terminal: in a pipe add --json, for one line per refresh',
      );
    const seconds = flags.watch === true ? DEFAULT_SECONDS : flags.watch;
    const interrupted = untilInterrupted();
    const title = `${commandPath(command)}, every ${seconds} s`;
    const watch = new WatchedList(async () => await printList(...actionArguments), title, interrupted);
    if (flags.json) await watch.printJsonLines(Seconds(seconds));
    else await watch.redraw(Seconds(seconds));
    process.exitCode = interrupted.exitCode;
  };
}

/** The command as a user types it, such as `lockgate key list`. */
function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}

/** A list command that is being repeated. */
class WatchedList {
  readonly #printList: () => Promise<void>;
  readonly #title: string;
  readonly #interrupted: Interruption;
  /** What the last successful run printed. */
  #lastOutput: CapturedOutput = { lines: [], documents: [] };
  /** Why the last run failed; empty if it succeeded. */
  #failure = '';
  /** Ends the current wait between two runs. */
  #endWait: () => void = () => undefined;

  constructor(printList: () => Promise<void>, title: string, interrupted: Interruption) {
    this.#printList = printList;
    this.#title = title;
    this.#interrupted = interrupted;
    interrupted.signal.addEventListener('abort', () => this.#endWait(), { once: true });
  }

  /** Prints a JSON line per run on stdout, and failures on stderr, until interrupted. */
  async printJsonLines(intervalMs: number): Promise<void> {
    await this.#run();
    while (!this.#interrupted.signal.aborted) {
      if (this.#failure === '') for (const document of this.#lastOutput.documents) printJsonLine(document);
      else process.stderr.write(`${this.#failure}\n`);
      await this.#wait(intervalMs);
      await this.#runAgain();
    }
  }

  /** Redraws the list on the alternate screen until interrupted. */
  async redraw(intervalMs: number): Promise<void> {
    // Before the alternate screen: a failure of the first run is reported as without --watch.
    await this.#run();
    const onResize = (): void => this.#endWait();
    const leaveScreen = (): void => void process.stdout.write(LEAVE_SCREEN);
    process.stdout.write(ENTER_SCREEN);
    // Restores the terminal however the process ends.
    process.once('exit', leaveScreen);
    process.stdout.on('resize', onResize);
    try {
      while (!this.#interrupted.signal.aborted) {
        process.stdout.write(this.#frame());
        await this.#wait(intervalMs);
        await this.#runAgain();
      }
    } finally {
      process.stdout.off('resize', onResize);
      process.off('exit', leaveScreen);
      leaveScreen();
    }
  }

  /** Runs the command and stores its output, or returns without it at Ctrl-C. */
  async #run(): Promise<void> {
    const running = captureOutput(this.#printList);
    // After Ctrl-C nobody awaits `running`, so its failure would be an unhandled rejection.
    running.catch(() => undefined);
    const output = await Promise.race([running, this.#interrupted.happened]);
    if (output !== undefined) this.#lastOutput = output;
    this.#failure = '';
  }

  /** Runs the command again. Only a failure to reach the gateway may be temporary; other errors end the watch. */
  async #runAgain(): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    try {
      await this.#run();
    } catch (error) {
      if (exitCodeOf(error) !== EXIT_CODE.gatewayFailure) throw error;
      this.#failure = sanitizeLine(`${(error as Error).message}. Trying again.`);
    }
  }

  async #wait(intervalMs: number): Promise<void> {
    if (this.#interrupted.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = systemClock.after(intervalMs, resolve);
      this.#endWait = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** The content of the screen: a headline, a blank line, and as many lines of the list as fit. */
  #frame(): string {
    const { columns, rows = 24 } = process.stdout;
    // 0 on a terminal that does not know its width.
    const width = columns || 80;
    const time = new Date(systemClock.now()).toISOString().slice(11, 19);
    const headline = this.#failure === '' ? `${this.#title}. Ctrl-C quits. ${time}Z` : `${time}Z ${this.#failure}`;
    const style = this.#failure === '' ? 'dim' : 'red';
    const maxLines = Math.max(rows - 2, 1);
    const { lines } = this.#lastOutput;
    const excess = lines.length - maxLines;
    // The sentence takes the place of one more line.
    const moreText = paint('dim', `… and ${excess + 1} more lines`);
    const shown = excess > 0 ? [...lines.slice(0, maxLines - 1), moreText] : lines;
    const screen = [paint(style, cutToWidth(headline, width)), '', ...shown];
    // Moves the cursor to the top, clears the end of each line, and clears the screen below.
    return `\u001b[H${screen.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`;
  }
}
