/** Carries out what is typed in the shell, one line at a time. */
import type { DeviceEvent } from '../../../../firmware-sim/world/device-event.js';
import { Hours, type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { oneLine, paint, print, printJsonLine } from '../../../terminal/output.js';
import { printTable } from '../../../terminal/table.js';
import { isQuiet, type ShellSite } from './site.js';
import { stateLines, stateOf, whyText } from './state.js';
import type { ShellTape } from './tape.js';
import { readShellLine, SHELL_VERBS, SHELL_WORDS, type ShellLine } from './words.js';

/** How long time goes on at most until a lock is quiet: longer than the longest search, shorter than a day's ride. */
const QUIET_WITHIN: Milliseconds = Hours(3);
/** How often it is looked whether it is. */
const LOOK_EVERY: Milliseconds = Seconds(1);

export interface SessionOptions {
  readonly site: ShellSite;
  readonly tape: ShellTape;
  readonly asJson: boolean;
  /** Whether a line is over only when the lock is quiet: always without a gateway, and in a script. */
  readonly waitsForQuiet: boolean;
}

export class ShellSession {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Does what a line says. Returns whether the shell goes on after it.
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
      case 'happening':
        await this.#letHappen(line.value.happening, line.value.span, signal);
        this.#options.tape.showUnsent();
        return true;
    }
  }

  /** Lets time go on until nothing goes on with the lock, or the signal fires. */
  async quiet(signal: AbortSignal): Promise<void> {
    const { site } = this.#options;
    const untilMs = site.nowMs() + QUIET_WITHIN;
    while (!isQuiet(site, site.nowMs()) && site.nowMs() < untilMs && !signal.aborted)
      await site.pass(LOOK_EVERY, signal);
  }

  async #letHappen(happening: DeviceEvent, span: Milliseconds | null, signal: AbortSignal): Promise<void> {
    const { site, waitsForQuiet } = this.#options;
    if (happening.type === 'wait') {
      await site.pass(happening.span, signal);
      return;
    }
    if (happening.type === 'phone')
      throw new LockgateError('input-shell', 'there is no phone here: expected unlock or lock, or unlock by command');
    const isWay = happening.type === 'ride' || happening.type === 'theft';
    if (isWay && happening.goal.type === 'file') await site.readWay(happening.goal.file);
    if (happening.type === 'command') this.#say(await site.send(happening.command));
    else site.world.tell(happening, site.nowMs());
    // What happens at this moment is noticed at this moment.
    if (site.url === null) await site.pass(0, signal);
    if (span !== null) await site.pass(span, signal);
    else if (waitsForQuiet) await this.quiet(signal);
  }

  #own(word: Extract<ShellLine, { type: 'own' }>['word'], rest: string): boolean {
    const { site, tape, asJson } = this.#options;
    if (word === 'quit') return false;
    if (word === 'help') this.#help(rest);
    else if (word === 'save') {
      const lines = tape.save(rest);
      this.#say(`${lines} lines in ${rest}; "lockgate trace check ${rest}" judges them`);
    } else if (word === 'why') this.#say(whyText(tape.lastPing));
    else if (asJson) printJsonLine(stateOf(site));
    else for (const line of stateLines(stateOf(site))) print(line);
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
      print('\nWhat may follow a verb: help VERB. Tab completes. "by command" after unlock, lock, siren 5 s, reset,');
      print('mode HIGH … sends a command. Time goes on until the lock is quiet; "for 30 s" after a verb: so long.');
    }
  }

  #say(text: string): void {
    if (this.#options.asJson) printJsonLine({ event: 'said', text });
    else print(paint('dim', oneLine(text)));
  }
}
