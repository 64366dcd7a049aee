/** Carries out typed lines of the shell on the simulated lock, one at a time. */
import type { DeviceEvent } from '../../../../firmware-sim/device-event/device-event.js';
import { Hours, type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { paint, print, printJsonLine, sanitizeLine } from '../../../terminal/output.js';
import { printTable } from '../../../terminal/table.js';
import { isQuiet, type ShellDevice } from './device.js';
import { stateLines, stateOf, whyText } from './state.js';
import type { ShellTranscript } from './transcript.js';
import { readShellLine, SHELL_VERBS, SHELL_WORDS, type ShellLine } from './words.js';

/**
 * The maximum simulated time that a line waits for the lock to become quiet: longer than any search for a GPS fix, but
 * short enough that a ride of a day doesn't block the shell.
 */
const QUIET_TIMEOUT: Milliseconds = Hours(3);
/** The interval of checks whether the lock is quiet. */
const QUIET_CHECK_INTERVAL: Milliseconds = Seconds(1);

/** What a session needs. */
export interface SessionOptions {
  readonly device: ShellDevice;
  readonly transcript: ShellTranscript;
  readonly asJson: boolean;
  /** Whether a line ends only when the lock is quiet: true without a gateway, and in a script. */
  readonly waitsForQuiet: boolean;
}

/** Carries out lines on a lock. */
export class ShellSession {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Carries out a line. Returns whether the shell continues.
   *
   * @throws LockgateError `input-…` for a line that can't be parsed or carried out
   */
  async run(text: string, signal: AbortSignal): Promise<boolean> {
    const line = readShellLine(text);
    if (!line.ok) throw new LockgateError('input-shell', line.error.message);
    switch (line.value.type) {
      case 'nothing':
        return true;
      case 'shell-word':
        return this.#runShellWord(line.value.word, line.value.argument);
      case 'device-event':
        await this.#apply(line.value.event, line.value.span, signal);
        this.#options.transcript.showUnsent();
        return true;
    }
  }

  /** Lets time pass until the lock is quiet, or the signal fires. */
  async waitUntilQuiet(signal: AbortSignal): Promise<void> {
    const { device } = this.#options;
    const untilMs = device.nowMs() + QUIET_TIMEOUT;
    while (!isQuiet(device, device.nowMs()) && device.nowMs() < untilMs && !signal.aborted)
      await device.pass(QUIET_CHECK_INTERVAL, signal);
  }

  async #apply(event: DeviceEvent, span: Milliseconds | null, signal: AbortSignal): Promise<void> {
    const { device, waitsForQuiet } = this.#options;
    if (event.type === 'wait') {
      await device.pass(event.span, signal);
      return;
    }
    if (event.type === 'phone')
      throw new LockgateError('input-shell', 'the shell has no phone: expected unlock or lock, or unlock by command');
    const isTrip = event.type === 'ride' || event.type === 'theft';
    if (isTrip && event.destination.type === 'file') await device.readRoute(event.destination.file);
    if (event.type === 'command') this.#printText(await device.send(event.command));
    else device.world.schedule(event, device.nowMs());
    // Without a gateway, time must advance (by 0) for the lock to process the event.
    if (device.url === null) await device.pass(0, signal);
    if (span !== null) await device.pass(span, signal);
    else if (waitsForQuiet) await this.waitUntilQuiet(signal);
  }

  #runShellWord(word: Extract<ShellLine, { type: 'shell-word' }>['word'], argument: string): boolean {
    const { device, transcript, asJson } = this.#options;
    if (word === 'quit') return false;
    if (word === 'help') this.#help(argument);
    else if (word === 'save') {
      const lines = transcript.save(argument);
      this.#printText(`${lines} lines in ${argument}; "lockgate trace check ${argument}" checks them`);
    } else if (word === 'why') this.#printText(whyText(transcript.lastPing));
    else if (asJson) printJsonLine(stateOf(device));
    else for (const line of stateLines(stateOf(device))) print(line);
    return true;
  }

  /** Prints the help of the word that `argument` names, or of all words if it is empty. */
  #help(argument: string): void {
    const words = [...SHELL_VERBS, ...SHELL_WORDS];
    const shownWord = words.find(({ word }) => word === argument.toLowerCase());
    if (argument !== '' && shownWord === undefined)
      throw new LockgateError('input-shell', `there is no verb ${JSON.stringify(argument)}`);
    if (shownWord !== undefined) {
      this.#printText(`${shownWord.forms}: ${shownWord.sentence}`);
      return;
    }
    if (this.#options.asJson)
      printJsonLine({ event: 'help', verbs: words.map(({ word, forms, sentence }) => ({ word, forms, sentence })) });
    else {
      printTable(words, [
        { title: 'VERB', show: ({ word }) => word },
        { title: 'WHAT IT DOES', show: ({ sentence }) => sentence },
      ]);
      print('\n"help VERB" shows a verb’s syntax. Tab completes. "by command" after unlock, lock, siren 5 s, reset,');
      print(
        'mode HIGH … sends a command. Time runs until the lock is quiet; with "for 30 s" after a verb, for that time.',
      );
    }
  }

  #printText(text: string): void {
    if (this.#options.asJson) printJsonLine({ event: 'said', text });
    else print(paint('dim', sanitizeLine(text)));
  }
}
