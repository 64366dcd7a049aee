/** Keyboard shortcuts of a view: single keys that work unless the reader is typing into a field. */
import { useEffect } from 'preact/hooks';

/** What each key does, by `KeyboardEvent.key`. */
export type Keys = Readonly<Record<string, () => void>>;
/** Is told each key that is pressed, and returns what it does; undefined for nothing. */
export type KeyReader = (key: string) => (() => void) | undefined;

/** Listens while the component is shown. */
export function useKeys(keys: Keys | KeyReader): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const act = typeof keys === 'function' ? keys(event.key) : keys[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [keys]);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, select, textarea, [contenteditable]') !== null;
}
