/** The keys of the frame: `g` and then the key of a screen opens it, `?` lists all keys. Does no I/O. */

/** What the keys do. */
interface ScreenKeyActions {
  /** The names of the screens by their keys. */
  readonly screens: ReadonlyMap<string, string>;
  readonly open: (screen: string) => void;
  readonly showHelp: () => void;
}

/** `KeyboardEvent.key` of keys that people hold down while they press another one, such as for `?`. */
const HELD_KEYS: readonly string[] = ['Shift', 'AltGraph', 'CapsLock'];

export class ScreenKeys {
  readonly #actions: ScreenKeyActions;
  /** Whether `g` was the last key, so that the next one may be that of a screen. */
  #isGoing = false;

  constructor(actions: ScreenKeyActions) {
    this.#actions = actions;
  }

  /** What a pressed key does; undefined for nothing. @param key `KeyboardEvent.key` */
  press(key: string): (() => void) | undefined {
    if (HELD_KEYS.includes(key)) return undefined;
    const { screens, open, showHelp } = this.#actions;
    const screen = this.#isGoing ? screens.get(key) : undefined;
    this.#isGoing = key === 'g' && screen === undefined;
    if (screen !== undefined) return () => open(screen);
    return key === '?' ? showHelp : undefined;
  }
}
