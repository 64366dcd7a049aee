/**
 * A real terminal with bash, provided by tmux: types keys and reads the screen. Each terminal has a separate tmux
 * server, on a socket in a folder that the end of the test removes.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { LOCKGATE } from './program.js';

/** Why terminals are not available; false if they are. */
export const NO_TERMINAL = spawnSync('tmux', ['-V']).error === undefined ? false : 'no tmux here';

const POLL_INTERVAL = Seconds(0.05);
/** So a wait takes at most 30 s. */
const MAX_POLLS = 600;

/** One terminal, in which a shell runs. */
export class Terminal {
  readonly #socket: string;

  /** Opens a terminal with `lockgate` on its PATH. */
  constructor(test: Teardown, columns: number, rows: number, environment: Readonly<Record<string, string>> = {}) {
    const folder = tempFolder(test);
    this.#socket = path.join(folder, 'tmux');
    const command = path.join(folder, 'lockgate');
    writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${LOCKGATE} "$@"\n`);
    chmodSync(command, 0o755);
    const settings = { PATH: `${folder}:${process.env.PATH}`, LANG: 'C.UTF-8', TERM: 'screen-256color', PS1: '$ ' };
    const variables = Object.entries({ ...settings, HOME: folder, HISTFILE: '', ...environment }).map(
      ([name, text]) => `${name}=${text}`,
    );
    const size = ['-x', String(columns), '-y', String(rows)];
    this.#tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      ...size,
      'env',
      '-i',
      ...variables,
      'bash',
      '--norc',
      '--noprofile',
    );
    test.teardown(() => void spawnSync('tmux', ['-S', this.#socket, 'kill-server']));
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-S', this.#socket, ...args], { encoding: 'utf8' });
  }

  /** Presses keys, given by tmux's names (`Tab`, `C-c`, `Enter`); any other text is typed. */
  pressKeys(...keys: readonly string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  /** Types a line and Enter. */
  typeLine(line: string): void {
    this.#tmux('send-keys', '-l', line);
    this.pressKeys('Enter');
  }

  /** Clears the screen except for the prompt, so that old output does not match. */
  async clear(): Promise<void> {
    this.typeLine('clear');
    await this.waitForScreen(/^\$\s*$/);
  }

  /** The text on the screen; with colour codes if `styled`. */
  screen(styled = false): string {
    return this.#tmux('capture-pane', '-p', ...(styled ? ['-e'] : []));
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** One of tmux's variables, such as `cursor_flag` (1 if the cursor is visible) or `alternate_on`. */
  tmuxVariable(name: string): string {
    return this.#tmux('display-message', '-p', `#{${name}}`).trim();
  }

  /** Waits until the screen matches, and returns its text. @throws Error with the screen's text after a timeout */
  async waitForScreen(pattern: RegExp, styled = false): Promise<string> {
    for (let polls = 0; polls < MAX_POLLS; polls += 1) {
      const screenText = this.screen(styled);
      if (pattern.test(screenText)) return screenText;
      await new Promise<void>((resolve) => systemClock.after(POLL_INTERVAL, resolve));
    }
    throw new Error(`no ${pattern} on the terminal, which shows\n${this.screen()}`);
  }
}
