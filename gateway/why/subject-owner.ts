/**
 * Finds the merchant that a subject of a "why" question (an event, a finding, a command, a lock …) belongs to, for
 * questions that merchants ask. Only reads.
 */
import type { Mac } from '../../proto/wire/mac.js';
import type { Store } from '../store/contract/store.js';
import type { Subject } from './why-subject.js';

/**
 * Whether the merchant may ask about the subject: it happened while the lock was the merchant's, and the lock is the
 * merchant's now, since an explanation also says what the lock does now.
 */
export async function isSubjectOf(store: Store, subject: Subject, merchantId: number): Promise<boolean> {
  if (subject.kind === 'test-webhook') return true;
  const found = await findSubject(store, subject);
  if (found === null || found.merchantId !== merchantId) return false;
  return (await store.findDevice(found.mac))?.device.merchantId === merchantId;
}

interface FoundSubject {
  readonly mac: Mac;
  /** The lock's merchant at that time; null if an older version stored the subject without it. */
  readonly merchantId: number | null;
}

async function findSubject(
  store: Store,
  subject: Exclude<Subject, { kind: 'test-webhook' }>,
): Promise<FoundSubject | null> {
  switch (subject.kind) {
    case 'event':
      return await store.webhooks.findEvent(subject.key);
    case 'finding':
      return await store.why.findFinding(subject.id);
    case 'quarantine':
      return await store.why.findQuarantined(subject.id);
    case 'command':
      return await store.commands.find(subject.id);
    case 'uplink': {
      const deviceId = await store.findDeviceId(subject.mac);
      const uplinks = deviceId === null ? [] : await store.why.findUplinks(deviceId, subject.boot, subject.sequence);
      // A lock that lost its memory may use a boot and sequence number again: all such uplinks must be one merchant's.
      const [first] = uplinks;
      return first !== undefined && uplinks.every(({ merchantId }) => merchantId === first.merchantId) ? first : null;
    }
    case 'lock':
      return (await store.findDevice(subject.mac))?.device ?? null;
  }
}
