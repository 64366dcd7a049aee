/**
 * Sets how V8 collects garbage in the gateway, so that its full collections delay pings seldom and little.
 *
 * By default V8 starts a full collection whenever the heap has grown by some tenths: every few seconds at half of the
 * highest ping rate. One frees little, because a ping leaves only short-lived objects, which V8's frequent small
 * collections free. And by default four helper threads look through the heap meanwhile: on a machine with two cores,
 * the thread that answers pings then gets a third of the CPU time for a quarter of a second.
 */
import { setFlagsFromString } from 'node:v8';

/** How far the heap may grow beyond the live objects, in percent: some 70 MB more for a thousand locks. */
const HEAP_GROWTH_PERCENT = 150;
/** How many helper threads look through the heap while JavaScript runs. */
const MARKING_THREADS = 1;

/** Sets V8's flags. Must be called before the gateway starts: V8 reads them at each full collection. */
export function tuneGarbageCollection(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  setFlagsFromString(`--concurrent-marking-max-worker-num=${MARKING_THREADS}`);
}
