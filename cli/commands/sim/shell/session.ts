/** Carries out what is typed in the shell, one line at a time. */
import type { DeviceEvent } from '../../../../firmware-sim/device-event/device-event.js';
import { Hours, type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { oneLine, paint, print, printJsonLine } from '../../../terminal/output.js';
import { printTable } from '../../../terminal/table.js';
import { isQuiet, type ShellDevice } from './device.js';
import { stateLines, stateOf, whyText } from './state.js';
import type { ShellTranscript } from './transcript.js';
import { readShellLine, SHELL_VERBS, SHELL_WORDS, type ShellLine } from './words.js';

/**
 * The most time that passes until a lock is quiet: longer than the longest search for a fix, shorter than a ride of a
 * day.
 */
const QUIET_WITHIN: Milliseconds = Hours(3);
/** How often it is checked whether it is. */
const LOOK_EVERY: Milliseconds = Seconds(1);

export interface SessionOptions {
  readonly device: ShellDevice;
  readonly transcript: ShellTranscript;
  readonly asJson: boolean;
  /** Whether a line ends only when the lock is quiet: without a gateway always, and in a script. */
  readonly waitsForQuiet: boolean;
}

export class ShellSession {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Carries out a line. Returns whether the shell continues after it.
   *
   * @throws LockgateError `input-…` for a line that can't be read or done
   */
  async run(text: string, signal: AbortSignal): Promise<boolean> {
    const line = readShellLine(text);
    if (!line.ok) throw new LockgateError('input-shell', line.error.message);
    switch (line.value.type) {
      case 'nothing':
        return true;
      case 'own':
        return this.#own(line.value.word, line.value.rest);
      case 'device-event':
        await this.#apply(line.value.event, line.value.span, signal);
        this.#options.transcript.showUnsent();
        return true;
    }
  }

  /** Lets time pass until the lock is quiet, or the signal fires. */
  async quiet(signal: AbortSignal): Promise<void> {
    const { device } = this.#options;
    const untilMs = device.nowMs() + QUIET_WITHIN;
    while (!isQuiet(device, device.nowMs()) && device.nowMs() < untilMs && !signal.aborted)
      await device.pass(LOOK_EVERY, signal);
  }

  async #apply(event: DeviceEvent, span: Milliseconds | null, signal: AbortSignal): Promise<void> {
    const { device, waitsForQuiet } = this.#options;
    if (event.type === 'wait') {
      await device.pass(event.span, signal);
      return;
    }
    if (event.type === 'phone')
      throw new LockgateError('input-shell', 'there is no phone here: expected unlock or lock, or unlock by command');
    const isTrip = event.type === 'ride' || event.type === 'theft';
    if (isTrip && event.destination.type === 'file') await device.readRoute(event.destination.file);
    if (event.type === 'command') this.#say(await device.send(event.command));
    else device.world.schedule(event, device.nowMs());
    // An event at this moment is noticed at this moment.
    if (device.url === null) await device.pass(0, signal);
    if (span !== null) await device.pass(span, signal);
    else if (waitsForQuiet) await this.quiet(signal);
  }

  #own(word: Extract<ShellLine, { type: 'own' }>['word'], rest: string): boolean {
    const { device, transcript, asJson } = this.#options;
    if (word === 'quit') return false;
    if (word === 'help') this.#help(rest);
    else if (word === 'save') {
      const lines = transcript.save(rest);
      this.#say(`${lines} lines in ${rest}; "lockgate trace check ${rest}" judges them`);
    } else if (word === 'why') this.#say(whyText(transcript.lastPing));
    else if (asJson) printJsonLine(stateOf(device));
    else for (const line of stateLines(stateOf(device))) print(line);
    return true;
  }

  #help(rest: string): void {
    const rows = [...SHELL_VERBS, ...SHELL_WORDS];
    const found = rows.find(({ word }) => word === rest.toLowerCase());
    if (rest !== '' && found === undefined)
      throw new LockgateError('input-shell', `there is no verb ${JSON.stringify(rest)}`);
    if (found !== undefined) {
      this.#say(`${found.forms}: ${found.sentence}`);
      return;
    }
    if (this.#options.asJson)
      printJsonLine({ event: 'help', verbs: rows.map(({ word, forms, sentence }) => ({ word, forms, sentence })) });
    else {
      printTable(rows, [
        { title: 'VERB', show: ({ word }) => word },
        { title: 'WHAT IT DOES', show: ({ sentence }) => sentence },
      ]);
      print('\n"help VERB" shows a verb’s syntax. Tab completes. "by command" after unlock, lock, siren 5 s, reset,');
      print(
        'mode HIGH … sends a command. Time runs until the lock is quiet, or with "for 30 s" after a verb, this long.',
      );
    }
  }

  #say(text: string): void {
    if (this.#options.asJson) printJsonLine({ event: 'said', text });
    else print(paint('dim', oneLine(text)));
  }
}
