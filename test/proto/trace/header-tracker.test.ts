// The commands in the header of a shrunk trace, around the time in which they can explain a position (locate-unasked).
import t from 'tap';
import { Hours, Minutes } from '../../../proto/clock.js';
import { HeaderTracker } from '../../../proto/trace/shrink/header-tracker.js';
import { UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';

const START_MS = Date.UTC(2026, 10, 20, 6);
const MAC = 'A4C138F0E1D2' as Mac;

t.test('a header lists a command as long as it can explain a position', async (t) => {
  const tracker = new HeaderTracker({ ...UNNAMED_LOCK, commands: [] });
  const expiresMs = START_MS + Hours(1);
  tracker.note({ event: 'command', mac: MAC, id: 7, command: { type: 'locate-gps' }, atMs: START_MS, expiresMs });
  const idsAfter = (ms: number) => tracker.lockAt(START_MS + ms).commands?.map(({ id }) => id);
  t.same(idsAfter(Hours(24) + Minutes(9)), [7], 'the clocks may differ, and the ping may be late');
  t.same(idsAfter(Hours(24) + Minutes(11)), []);
});

t.test('a header lists no commands while one from before the trace can explain a position', async (t) => {
  const tracker = new HeaderTracker(UNNAMED_LOCK);
  tracker.note({ event: 'tick', atMs: START_MS });
  t.equal(tracker.lockAt(START_MS + Hours(24) + Minutes(9)).commands, undefined);
  t.same(tracker.lockAt(START_MS + Hours(24) + Minutes(11)).commands, []);
});
