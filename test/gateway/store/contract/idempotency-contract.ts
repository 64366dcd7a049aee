/**
 * The contract suite of the store's part for commands (gateway/store/contract/command-record.ts): the stored answers to
 * calls with idempotency keys, and a merchant's list of commands. Each engine's test file calls it.
 */
import t from 'tap';
import {
  type CommandRecord,
  IDEMPOTENCY_LIFETIME,
  type IdempotentCall,
  type NewCommand,
} from '../../../../gateway/store/contract/command-record.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { Minutes } from '../../../../proto/clock.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import type { OpenStore } from './contract-store.js';

const NOW_MS = Date.UTC(2026, 10, 20);
const COMMAND: NewCommand = {
  ...{ deviceId: 1, merchantId: 1, command: { type: 'unlock' }, askedBy: 'ann' },
  ...{ createdAtMs: NOW_MS, notBeforeMs: null, expiresAtMs: NOW_MS + Minutes(1) },
};
/** A merchant's call with an idempotency key, under which it may be repeated without a second effect. */
const CALL: IdempotentCall = {
  merchantId: 1,
  route: 'POST /v1/commands',
  key: 'k',
  bodyDigest: Buffer.alloc(32, 7),
  nowMs: NOW_MS,
};
/** The answer that is stored with the call. */
const answerOf = ({ id, mac, state }: CommandRecord): string => JSON.stringify({ id, mac, state });

/** Opens a store with two merchants, each with a lock. */
async function openWithLocks(
  test: Teardown,
  open: OpenStore,
): Promise<{ readonly store: Store; readonly folder: string }> {
  const folder = tempFolder(test);
  const store = await open(folder);
  for (const [number, merchant] of ['Amber', 'Basil'].entries()) {
    await store.addMerchant(merchant, NOW_MS);
    const device = {
      mac: testMac(number + 1),
      merchant,
      simulated: false,
      secretHash: Buffer.alloc(32),
      nowMs: NOW_MS,
    };
    await store.addDevice(device);
  }
  return { store, folder };
}

/** Runs the suite over an engine. */
export function idempotencyContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a command and the answer to its call are stored together, or neither is`, async (t) => {
    const { store, folder } = await openWithLocks(t, open);
    t.equal(await store.commands.findAnswer(CALL), null);
    const stored = await store.commands.addOnce(COMMAND, CALL, answerOf);
    t.match(stored, { id: 1, mac: testMac(1), state: 'queued' });
    const expected = { bodyDigest: CALL.bodyDigest, answer: `{"id":1,"mac":"${testMac(1)}","state":"queued"}` };
    t.strictSame(await store.commands.findAnswer(CALL), expected);
    await t.rejects(store.commands.addOnce(COMMAND, CALL, answerOf), 'a key is used once');
    await t.rejects(store.commands.addOnce({ ...COMMAND, merchantId: 2 }, { ...CALL, key: 'l' }, answerOf), {
      code: 'no-such-device',
    });
    const failing = (): string => {
      throw new Error('no answer');
    };
    await t.rejects(store.commands.addOnce(COMMAND, { ...CALL, key: 'm' }, failing), { message: 'no answer' });
    t.equal((await store.commands.list({ limit: 9 })).length, 1, 'what fails adds no command');
    for (const key of ['l', 'm']) t.equal(await store.commands.findAnswer({ ...CALL, key }), null, 'and no answer');
    for (const other of [{ merchantId: 2 }, { route: 'POST /other' }, { key: 'K' }])
      t.equal(await store.commands.findAnswer({ ...CALL, ...other }), null, JSON.stringify(other));
    await store.close();
    const reopened = await open(folder);
    t.teardown(() => reopened.close());
    t.strictSame(await reopened.commands.findAnswer(CALL), expected, 'also after a restart');
  });

  t.test(`${engine}: an idempotency key is valid for 24 hours, and can be used again afterwards`, async (t) => {
    const { store } = await openWithLocks(t, open);
    t.teardown(() => store.close());
    await store.commands.addOnce(COMMAND, CALL, answerOf);
    const late = { ...CALL, nowMs: NOW_MS + IDEMPOTENCY_LIFETIME };
    t.not(await store.commands.findAnswer({ ...late, nowMs: late.nowMs - 1 }), null);
    t.equal(await store.commands.findAnswer(late), null);
    await store.commands.addOnce(COMMAND, late, answerOf);
    t.match(await store.commands.findAnswer(late), { answer: /"id":2/ });
  });

  t.test(`${engine}: a merchant’s commands are listed page by page, without those of others`, async (t) => {
    const { store } = await openWithLocks(t, open);
    t.teardown(() => store.close());
    const ofBasil = { ...COMMAND, deviceId: 2, merchantId: 2 };
    await store.commands.add([COMMAND, ofBasil, COMMAND, COMMAND, ofBasil]);
    const idsOf = (records: readonly CommandRecord[]): number[] => records.map(({ id }) => id);
    t.same(idsOf(await store.commands.list({ merchantId: 1, limit: 2 })), [4, 3]);
    t.same(idsOf(await store.commands.list({ merchantId: 1, beforeId: 3, limit: 2 })), [1]);
    t.same(idsOf(await store.commands.list({ merchantId: 2, limit: 9 })), [5, 2]);
  });
}
