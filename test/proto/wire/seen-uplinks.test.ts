// Checks how a repeated uplink is recognised: by its key (boot and sequence), and by the fingerprint of its content.
// The numbers that `note` gets are lines of a trace.
import fc from 'fast-check';
import t from 'tap';
import { fingerprintOf } from '../../../proto/wire/fingerprint.js';
import { SeenUplinks, SeenUplinksLimit } from '../../../proto/wire/seen-uplinks.js';
import { uplink } from '../../helpers/pair/judged-uplinks.js';
import { uplinks } from '../../helpers/wire/trace-lines.js';

t.test('an uplink is new, a repeat or a conflict, by its key and content', async (t) => {
  const seen = new SeenUplinks(new SeenUplinksLimit());
  // 2³² − 1, the greatest sequence number.
  const sample = uplink({ boot: 4, sequence: 4294967295 });
  t.equal(seen.note(sample, 5), 'new');
  t.equal(seen.note(uplink({ boot: 4, sequence: 0 }), 6), 'new');
  t.equal(seen.note(structuredClone(sample), 7), 'repeat');
  t.equal(seen.note({ ...sample, dropped: 1 }, 8), 'conflict');
  t.equal(seen.note({ ...sample, dropped: 1 }, 9), 'repeat', 'a repeat of the second content');
  t.equal(seen.note({ ...sample, dropped: 2 }, 10), 'conflict');
  t.equal(seen.note(sample, 11), 'repeat');
  for (let kept = 1; kept <= 1000; kept++) seen.note({ ...sample, kept }, 12);
  t.equal(seen.note({ ...sample, dropped: 2 }, 13), 'conflict', 'after a thousand further contents it is forgotten');
  t.equal(seen.lineOf(4, 4294967295), 5);
  t.equal(seen.lineOf(4, 1), undefined);
  t.equal(seen.lineOf(5, 0), undefined);
  const digests = new Set<number>();
  let count = 0;
  fc.assert(
    fc.property(uplinks, (drawn) => {
      const content = { ...drawn, boot: 0, sequence: count };
      const changed = { ...content, timeMs: content.timeMs + 1 };
      count += 1;
      digests.add(fingerprintOf(content));
      return (
        fingerprintOf(content) !== fingerprintOf(changed) &&
        fingerprintOf(content) === fingerprintOf(structuredClone(content))
      );
    }),
    { numRuns: 2000, seed: 10 },
  );
  // Some drawn uplinks are equal; nearly all others must have different fingerprints.
  t.ok(digests.size > 1500);
});
