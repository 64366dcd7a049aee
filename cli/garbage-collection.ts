/**
 * Makes V8's garbage collections disturb pings less in the gateway.
 *
 * By default V8 starts a full collection whenever the heap has grown by some tenths: every few seconds at half of the
 * highest ping rate, for some 70 ms each. A full collection frees little, because a ping leaves only short-lived
 * objects, which V8's frequent small collections free. So full collections are made rarer.
 *
 * V8 collects with up to four helper threads, however few cores there are. On a machine with two cores they take both
 * from the thread that answers pings and the one that stores them: one round in six of the bench's row `ack` had a 99th
 * percentile of over 20 ms, and one in thirty with fewer helpers. So there small collections use no helper, and the
 * marking of a full one uses one.
 */
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** How far the heap may grow beyond the live objects, in percent: some 70 MB more for a thousand locks. */
const HEAP_GROWTH_PERCENT = 150;

/** With more cores than these, V8's helper threads find one that is free. */
const FEW_CORES = 2;

/** Sets V8's flags. Must be called before the gateway starts: V8 reads the first only after each full collection. */
export function tuneGarbageCollection(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  if (availableParallelism() > FEW_CORES) return;
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--concurrent-marking-max-worker-num=1');
}
