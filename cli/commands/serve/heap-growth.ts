/**
 * Makes full garbage collections of the gateway rarer. By default V8 collects whenever the heap has grown by some
 * tenths: at half of the highest ping rate every few seconds, for some 70 ms. V8's helper threads then take the cores
 * from the thread that answers pings. Such collections free little memory, because a ping leaves only short-lived
 * objects.
 */
import { setFlagsFromString } from 'node:v8';

/** How far the heap may grow beyond the live objects, in percent: some 70 MB more for a thousand locks. */
const HEAP_GROWTH_PERCENT = 150;

/** Sets V8's flag. Must be called before the gateway starts: V8 reads the flag only after each full collection. */
export function collectRarely(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
}
