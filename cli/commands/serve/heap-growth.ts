/**
 * How much garbage a gateway lets gather before all of its memory is looked through. V8 by itself does that whenever
 * the heap has grown by some tenths, and while its helpers mark, they take the processors from the thread that answers
 * pings: at half of the highest rate every few seconds, for some 70 ms. What a ping leaves behind dies young, so little
 * is gained each time.
 */
import { setFlagsFromString } from 'node:v8';

/** By how much the heap may grow over what was alive in it, percent: some 70 MB more for a thousand locks. */
const HEAP_GROWS_BY = 150;

/** For a process that is a gateway; to be called before it starts. V8 reads the flag after each full collection. */
export function collectRarely(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWS_BY}`);
}
