// The part of the store contract (how every database engine must behave) about merchants, locks and their credentials,
// and about erasure. store-contract.ts calls it.
import t from 'tap';
import { LOG_START } from '../../../../gateway/store/contract/log/log-position.js';
import { uplinkDigest } from '../../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { commit, HASH, MAC, type OpenStore, uplink, withLock } from './contract-store.js';

export function registryContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a name and a MAC are taken once; a new credential revokes the old one`, async (t) => {
    const { store } = await withLock(t, open);
    await t.rejects(store.addMerchant('Amber', 1), { code: 'merchant-exists' });
    const device = { mac: MAC, merchant: 'Amber', simulated: false, secretHash: HASH, nowMs: 1 };
    await t.rejects(store.addDevice(device), { code: 'device-exists' });
    await t.rejects(store.addDevice({ ...device, merchant: 'Nobody' }), { code: 'no-such-merchant' });
    t.match(await store.findLock(MAC), { deviceId: 1, merchantId: 1, credentials: [{ id: 1, secretHash: HASH }] });
    t.equal(await store.findLock(testMac(2)), null);
    const newSecretHash = Buffer.alloc(32, 8);
    await store.replaceLockCredential(MAC, newSecretHash, 9);
    const credentials = (await store.findLock(MAC))?.credentials;
    const neverExpires = { expiresAtMs: null };
    t.same(
      credentials,
      [
        { id: 2, secretHash: newSecretHash, ...neverExpires, isRevoked: false },
        { id: 1, secretHash: HASH, ...neverExpires, isRevoked: true },
      ],
      'the old credential is revoked',
    );
    await t.rejects(store.replaceLockCredential(testMac(2), newSecretHash, 9), { code: 'no-such-device' });
    t.match(await store.listDevices(), [{ device: { mac: MAC, merchantName: 'Amber' }, state: null }]);
    t.equal(await store.countDevices(), 1);
    t.equal(await store.findDevice(testMac(2)), null);
  });

  t.test(`${engine}: metadata is stored by name`, async (t) => {
    const { store } = await withLock(t, open);
    t.equal(await store.readMetadata('a'), null);
    await store.writeMetadata('a', '1');
    await store.writeMetadata('a', '2');
    t.equal(await store.readMetadata('a'), '2');
  });
}

export function identityContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: credentials of a lock and of its phones are separate`, async (t) => {
    const { store } = await withLock(t, open);
    const phone = { mac: MAC, name: 'Ada', secretHash: Buffer.alloc(32, 9), expiresAtMs: 99, nowMs: 7 };
    t.match(await store.addPhone(phone), { credentialId: 2, name: 'Ada', expiresAtMs: 99, revokedAtMs: null });
    await t.rejects(store.addPhone(phone), { code: 'phone-exists' });
    await t.rejects(store.addPhone({ ...phone, mac: testMac(2) }), { code: 'no-such-device' });
    const ids = async (kind?: 'lock' | 'phone') => (await store.findLock(MAC, kind))?.credentials.map(({ id }) => id);
    t.same([await ids(), await ids('lock'), await ids('phone')], [[1], [1], [2]]);
    await store.append(commit(uplink(1), uplink(2, { credentialId: 2 })));
    t.match(await store.readEvents(1, LOG_START, 9), [{ source: 'lock' }, { source: 'phone' }]);
    const sequences = async (source?: 'phone') =>
      (await store.readUplinks(1, 9, source)).map(({ sequence }) => sequence);
    t.same([await sequences(), await sequences('phone')], [[1], [2]]);
    t.same(await store.revokePhone(MAC, 'Ada', 8), { deviceId: 1, credentialIds: [2] });
    await t.rejects(store.revokePhone(MAC, 'Ada', 8), { code: 'no-such-phone' });
    t.match(await store.listPhones(MAC), [{ name: 'Ada', revokedAtMs: 8 }]);
    t.same(await store.replaceLockCredential(MAC, HASH, 10, 50), { deviceId: 1, credentialIds: [1] });
    const credentials = (await store.findLock(MAC))?.credentials.map(({ id, expiresAtMs, isRevoked }) => [
      id,
      expiresAtMs,
      isRevoked,
    ]);
    t.same(credentials, [
      [3, null, false],
      [1, 50, false],
    ]);
  });

  t.test(`${engine}: many locks are added together or not at all`, async (t) => {
    const { store } = await withLock(t, open);
    const newLocks = (numbers: readonly number[]) =>
      numbers.map((number) => ({
        mac: testMac(number),
        merchant: 'Amber',
        simulated: false,
        secretHash: HASH,
        nowMs: 1,
      }));
    const numbers = Array.from({ length: 2500 }, (_, index) => index + 10);
    await t.rejects(store.addDevices(newLocks([...numbers, 1])), { code: 'device-exists' });
    t.equal((await store.listDevices()).length, 1, 'a list with a known lock is refused as a whole');
    await store.addDevices(newLocks(numbers));
    t.equal((await store.listDevices()).length, 2501, 'however long the list is');
    t.equal(await store.countDevices(), 2501);
    t.same(await store.findTakenMacs([testMac(5), testMac(10), testMac(2509)]), [testMac(10), testMac(2509)]);
  });
}

export function deletionContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a removed lock keeps its history and its id when it is added again`, async (t) => {
    const { store } = await withLock(t, open);
    await store.append({ ...commit(uplink(1)), states: new Map([[1, '{}']]) });
    await store.removeDevice(MAC, 9);
    t.same([await store.findDevice(MAC), await store.findLock(MAC), await store.readDeviceStates()], [null, null, []]);
    t.equal(await store.findDeviceId(MAC), 1);
    t.equal((await store.readEvents(1, LOG_START, 9)).length, 1);
    await t.rejects(store.removeDevice(MAC, 9), { code: 'no-such-device' });
    await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: false, secretHash: HASH, nowMs: 10 });
    t.match(await store.findDevice(MAC), { device: { id: 1, simulated: false }, state: null });
    t.same(
      (await store.findLock(MAC))?.credentials.map(({ id, isRevoked }) => [id, isRevoked]),
      [
        [2, false],
        [1, true],
      ],
    );
  });

  t.test(`${engine}: only the key of an erased uplink is left`, async (t) => {
    const { store } = await withLock(t, open);
    const other = testBytes(1, { kept: 3 });
    await store.append(commit(uplink(1), uplink(1, { bytes: other, digest: uplinkDigest(other) }), uplink(2)));
    t.match(await store.eraseDevice(1, '{"a":1}'), { uplinks: 3 });
    await store.scrub();
    // Of credential 1, boot 1, sequence 1.
    t.same(await store.readDigests(1, 1, 1), [Buffer.alloc(0)], 'without the hash of its content');
    t.same([await store.readEvents(1, LOG_START, 9), await store.readUplinks(1, 9)], [[], []]);
    for await (const chunk of store.readLog(1, 9)) t.same(chunk, []);
    t.equal(await store.readDeviceState(1), '{"a":1}');
    await store.append(commit(uplink(3)));
    t.same(
      (await store.readEvents(1, LOG_START, 9)).map(({ sequence }) => sequence),
      [3],
    );
  });

  t.test(`${engine}: old rows are deleted in chunks`, async (t) => {
    const { store } = await withLock(t, open);
    await store.append(commit(...[1, 2, 3, 4].map((sequence) => uplink(sequence))));
    // An uplink is received at its sequence number plus 1000 ms, so the first three are old.
    const oldUplinks = { table: 'uplink', beforeMs: 1004, limit: 2 } as const;
    const [, second] = await store.readEvents(1, LOG_START, 2);
    const nextId = second?.id ?? 0;
    t.same(await store.deleteOld({ ...oldUplinks, afterId: 0 }), { deleted: 2, held: 0, nextId });
    t.same(await store.deleteOld({ ...oldUplinks, afterId: nextId }), { deleted: 1, held: 0, nextId: null });
    t.same(
      (await store.readEvents(1, LOG_START, 9)).map(({ sequence }) => sequence),
      [4],
    );
  });
}
