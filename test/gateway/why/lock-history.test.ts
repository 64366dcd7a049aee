/** Explaining an uplink reads a lock's log up to that uplink, and not what came after it, however much that is. */
import t from 'tap';
import { judgeEventOf } from '../../../gateway/locks/log-entry.js';
import type { IncomingUplink } from '../../../gateway/store/contract/log/commit.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { readHistory } from '../../../gateway/why/lock-history.js';
import type { UplinkEvent } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** More than the 500 that are read after a time. */
const UPLINKS = 600;
const MAC = testMac(1);

function uplink(sequence: number): IncomingUplink {
  const bytes = testBytes(sequence);
  const key = { deviceId: 1, merchantId: 1, credentialId: 1, boot: 1, sequence };
  const receivedAtMs = 1_000 * sequence;
  return { type: 'uplink', ...key, digest: uplinkDigest(bytes), kind: 1, bytes, receivedAtMs, buffered: false };
}

t.test('what came after an uplink is not read, and after a time only if it is needed', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 1);
  await store.addDevice({ merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 1, mac: MAC });
  const incoming = Array.from({ length: UPLINKS }, (_, index) => uplink(index + 1));
  await store.append({ incoming, judged: [], states: new Map() });
  const parts = { store, locks: { judging: { judge: judgeInPlace, version: 'test' } } };
  const lock = { deviceId: 1, mac: MAC };
  const { readLogFrom } = store.why;
  let read = 0;
  store.why.readLogFrom = async function* (...terms) {
    for await (const entries of readLogFrom.apply(store.why, terms)) {
      read += entries.length;
      yield entries;
    }
  };
  const third = (await store.why.findUplinks(1, 1, 3))[0] as StoredUplink;
  const event = judgeEventOf({ type: 'uplink', uplink: third }) as UplinkEvent;
  const history = await readHistory(parts, lock, { uplink: third, event });
  t.match([history.before.length, history.after.length, history.isComplete, read], [2, 0, true, 3]);

  read = 0;
  const atMs = third.receivedAtMs;
  const moment = await readHistory(parts, lock, { atMs, withAfter: false });
  t.match([moment.before.length, moment.after.length, read], [3, 0, 3]);
  const past = await readHistory(parts, lock, { atMs, withAfter: true });
  t.match([past.before.length, past.after.length], [3, 500]);
  t.same(past.before, moment.before);
});
