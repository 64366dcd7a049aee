/**
 * Decides whether a client may connect, before the CONNACK: checks its credential, and makes this gateway ready to
 * serve it. It does not know the broker library; broker.ts turns the result into a CONNACK.
 */
import { LockgateError } from '../../proto/errors.js';
import { type Authentication, authenticate, type ConnectClaim } from './authentication.js';
import type { BrokerOptions } from './broker-options.js';
import type { Sessions } from './sessions.js';

/** How often a CONNECT is checked if credentials are withdrawn during each check; then it is refused. */
const MAX_AUTHENTICATIONS = 5;

/**
 * Authenticates a claim, again if credentials may have been withdrawn meanwhile. Among several gateways, also makes
 * this one the gateway that serves the sender.
 *
 * @param sessions counts how often sessions were ended, which happens when a credential is withdrawn
 * @param hasLeft whether the client has closed its connection: then nothing more is done for it, so that clients which
 *   give up during a storm of reconnects don't make it last
 * @throws StoreFailure
 * @throws LockgateError `not-owner`, `overloaded`
 */
export async function checkConnect(
  options: BrokerOptions,
  sessions: Pick<Sessions, 'endCount'>,
  claim: ConnectClaim,
  hasLeft: () => boolean,
): Promise<Authentication> {
  const { usage, owner, wallClock } = options;
  for (let times = 0; times < MAX_AUTHENTICATIONS; times += 1) {
    const endCountBefore = sessions.endCount;
    const result = await authenticate(options, claim, wallClock.now());
    if (hasLeft()) return result;
    // The activation of a SIM card must be on disk before the CONNACK: no crash may lose or delay it.
    if (result.ok && result.sender.source === 'lock') await usage.sims.activate(result.sender.mac);
    if (result.ok && owner?.owns(result.sender) === false) {
      if (!(await owner.claim(result.sender, () => !hasLeft()))) {
        if (hasLeft()) return result;
        throw new LockgateError('not-owner', 'another gateway serves the lock and did not release it in time');
      }
      // Until the claim another gateway may have withdrawn the credential: it is read again.
      continue;
    }
    if (endCountBefore === sessions.endCount) return result;
  }
  throw new LockgateError('overloaded', 'credentials are being withdrawn faster than a CONNECT can be checked');
}
