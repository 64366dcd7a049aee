/** What a CONNECT costs the gateway after its client has left, as clients do that waited too long during a storm. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { Keys } from '../../../gateway/data-folder/keys.js';
import type { BrokerOptions } from '../../../gateway/mqtt/broker-options.js';
import { checkConnect } from '../../../gateway/mqtt/connect-check.js';
import type { LockAccount } from '../../../gateway/store/contract/devices/device.js';
import { systemClock } from '../../../proto/clock.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';

const MAC = testMac();
const SECRET = Buffer.from('a lock’s secret');

t.test('for a client that has left, no SIM is activated and no lock is claimed', async (t) => {
  const keys = new Keys(randomBytes(32));
  const credential = { id: 1, secretHash: keys.hashSecret(SECRET), expiresAtMs: null, isRevoked: false };
  const lock = { deviceId: 1, merchantId: 1, mac: MAC, simulated: true, isMerchantClosed: false };
  const account: LockAccount = { ...lock, credentials: [credential] };
  const done: string[] = [];
  let isOwner = false;
  // Only what a check uses.
  const options = {
    store: { findLock: async () => account },
    keys,
    usage: { sims: { activate: async () => void done.push('activated') } },
    owner: {
      owns: () => isOwner,
      claim: async (_sender: unknown, isWaiting: () => boolean) => {
        done.push(isWaiting() ? 'claimed' : 'claimed for nobody');
        isOwner = true;
        return true;
      },
    },
    wallClock: systemClock,
  } as unknown as BrokerOptions;
  // No session was ended, as happens when a credential is withdrawn: the check needs not be repeated for that.
  const sessions = { endCount: 0 };
  const check = (hasLeft: () => boolean) =>
    checkConnect(options, sessions, { clientId: MAC, username: MAC, password: SECRET, hasWill: false }, hasLeft);
  await check(() => true);
  t.same(done, []);
  t.match(await check(() => false), { ok: true });
  t.same(done, ['activated', 'claimed', 'activated'], 'after a claim the credential is read again');
});
