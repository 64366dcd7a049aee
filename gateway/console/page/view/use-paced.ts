/** A hook for a value that changes often, where each change costs a call. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Milliseconds } from '../../../../proto/clock.js';
import { PacedValue } from './paced-value.js';

/** Returns the newest value, which changes at most once in `pause`: the first change at once, later ones together. */
export function usePaced<Value extends string | number>(value: Value, pause: Milliseconds): Value {
  const [passed, setPassed] = useState(value);
  const paced = useRef<PacedValue<Value> | null>(null);
  useEffect(() => {
    const mine = new PacedValue(value, pause, (next) => setPassed(next));
    paced.current = mine;
    setPassed(value);
    return () => mine.stop();
  }, [pause]);
  useEffect(() => paced.current?.set(value), [value]);
  return passed;
}
