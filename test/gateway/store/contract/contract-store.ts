// The stores of the contract suites: a new store with one lock, and uplinks and commits to put into it.
import type { Commit, Incoming, IncomingUplink } from '../../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { uplinkDigest } from '../../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';

/** Opens the engine on a folder, creating the store if it doesn't exist. */
export type OpenStore = (folder: string) => Promise<Store>;

/** Any hash of a secret. */
export const HASH = Buffer.alloc(32, 7);
/** The lock of {@link withLock}. */
export const MAC = testMac();

/** An uplink of that lock. Its times are small numbers: only their order matters. */
export function uplink(sequence: number, members: Partial<IncomingUplink> = {}): IncomingUplink {
  const bytes = members.bytes ?? testBytes(sequence);
  return {
    type: 'uplink',
    deviceId: 1,
    merchantId: 1,
    credentialId: 1,
    boot: 1,
    sequence,
    digest: uplinkDigest(bytes),
    kind: 1,
    bytes,
    receivedAtMs: 1000 + sequence,
    buffered: false,
    ...members,
  };
}

/** A commit (what one transaction stores) with these messages and events. */
export function commit(...incoming: Incoming[]): Commit {
  return { incoming, judged: [], states: new Map() };
}

/** A new store with a merchant and its lock, both with id 1. */
export async function withLock(test: Teardown, open: OpenStore): Promise<{ store: Store; folder: string }> {
  const folder = tempFolder(test);
  const store = await open(folder);
  // A test may have closed it already, or broken it.
  test.teardown(() => store.close().catch(() => undefined));
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  return { store, folder };
}
