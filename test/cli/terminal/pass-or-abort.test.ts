/** A wait ends with its span or at Ctrl-C, and leaves no listener behind, however many waits there are. */
import { getEventListeners } from 'node:events';
import t from 'tap';
import { passOrAbort } from '../../../cli/terminal/pass-or-abort.js';
import { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import { Seconds } from '../../../proto/clock.js';

t.test('a wait ends when its span has passed, and removes its listener', async (t) => {
  const clock = new VirtualClock(0);
  const { signal } = new AbortController();
  const waiting = passOrAbort(clock, Seconds(5), signal);
  t.equal(getEventListeners(signal, 'abort').length, 1);
  clock.run(Seconds(5));
  await waiting;
  t.same(getEventListeners(signal, 'abort'), []);
});

t.test('a wait ends at once when the signal fires, and so does a wait that starts afterwards', async (t) => {
  const clock = new VirtualClock(0);
  const abortion = new AbortController();
  const waiting = passOrAbort(clock, Seconds(5), abortion.signal);
  abortion.abort();
  await waiting;
  t.same(getEventListeners(abortion.signal, 'abort'), []);
  await passOrAbort(clock, Seconds(5), abortion.signal);
  t.equal(clock.now(), 0);
});
