// The part of the store contract about sessions of the console: what opens one, what ends it, and whose it is.
// store-contract.ts calls it.
import t from 'tap';
import type { DashboardRole } from '../../../../gateway/store/contract/merchants/dashboard-roles.js';
import { MAX_CONSOLE_LINKS } from '../../../../gateway/store/contract/operators/console-session-store.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { type OpenStore, withLock } from './contract-store.js';

/** The time of each call, and when sessions end. */
const NOW_MS = 100;
const END_MS = 1_000;

/** The hash of a token; each number makes another one. */
const hashOf = (number: number): Buffer => Buffer.alloc(32, number);

const client = { nowMs: NOW_MS, expiresAtMs: END_MS, address: '127.0.0.1', agent: null } as const;

/** Adds a user with a role. */
async function addUser({ people }: Store, id: bigint, dashboardRole: DashboardRole): Promise<void> {
  const absent = { firstName: null, lastName: null, email: null, phone: null, userStatus: null, passwordHash: null };
  await people.addUsers(1, [{ ...absent, id, username: `user ${id}`, dashboardRole }], NOW_MS);
}

/** What ends the sessions of a user for good, and what brings back what the sessions need. */
const ENDS: readonly [name: string, end: (store: Store, id: bigint) => Promise<unknown>][] = [
  [
    'is removed, and another user gets its id',
    async (store, id) => {
      await store.people.removeUser(1, id);
      await addUser(store, id, 'viewer');
    },
  ],
  [
    'loses its role, and gets it back',
    async ({ people }, id) => {
      await people.changeUser(1, id, { dashboardRole: null });
      await people.changeUser(1, id, { dashboardRole: 'viewer' });
    },
  ],
  ['gets a new password', ({ people }, id) => people.changeUser(1, id, { passwordHash: 'another' })],
];

export function sessionContract(engine: string, open: OpenStore): void {
  userSessions(engine, open);
  sessionOwners(engine, open);
  links(engine, open);
  lastOwner(engine, open);
}

function userSessions(engine: string, open: OpenStore): void {
  t.test(`${engine}: a user’s sessions end for good with the user, the role and the password`, async (t) => {
    const { store } = await withLock(t, open);
    const { consoleSessions, people } = store;
    const isOpen = async (number: number, nowMs = NOW_MS) =>
      (await consoleSessions.find(hashOf(number), nowMs)) !== null;
    for (const [index, [name, end]] of ENDS.entries()) {
      const id = BigInt(index + 1);
      await addUser(store, id, 'viewer');
      await consoleSessions.addForUser(1, id, { ...client, tokenHash: hashOf(index + 1) });
      t.equal(await isOpen(index + 1), true);
      await end(store, id);
      t.equal(await isOpen(index + 1), false, name);
    }
    for (const number of [11, 12]) await consoleSessions.addForUser(1, 1n, { ...client, tokenHash: hashOf(number) });
    await people.changeUser(1, 1n, { dashboardRole: 'staff' });
    t.match(await consoleSessions.find(hashOf(11), NOW_MS), { role: 'staff' }, 'another role ends none');
    t.equal(await isOpen(11, END_MS), false, 'it expires');
    const kept = (await consoleSessions.find(hashOf(11), NOW_MS))?.id;
    await people.changeUser(1, 1n, { passwordHash: 'another', ...(kept !== undefined && { keptSessionId: kept }) });
    t.same([await isOpen(11), await isOpen(12)], [true, false], 'the session that changes the password is kept');
  });
}

function sessionOwners(engine: string, open: OpenStore): void {
  t.test(`${engine}: a session is listed and ended by its owner alone`, async (t) => {
    const { store } = await withLock(t, open);
    const { consoleSessions } = store;
    const other = await store.addMerchant('Basil', NOW_MS);
    for (const id of [1n, 2n]) {
      await addUser(store, id, 'viewer');
      await consoleSessions.addForUser(1, id, { ...client, tokenHash: hashOf(Number(id)) });
    }
    const link = { linkHash: hashOf(9), role: 'read', tokenName: 'x', tokenId: null, sessionEndsAtMs: null } as const;
    await consoleSessions.addLink({ ...link, nowMs: NOW_MS, expiresAtMs: END_MS });
    const operators = await consoleSessions.redeemLink(hashOf(9), { ...client, tokenHash: hashOf(3) });
    const [second, first] = await consoleSessions.list({ merchantId: 1 }, NOW_MS);
    t.match([first, second], [{ userId: 1n }, { userId: 2n }]);
    t.match(await consoleSessions.list({ merchantId: 1, userId: 1n }, NOW_MS), [{ id: first?.id }]);
    t.same(await consoleSessions.list({ merchantId: other.id }, NOW_MS), []);
    t.strictSame(
      (await consoleSessions.list('operators', NOW_MS)).map(({ id }) => id),
      [operators?.id],
    );
    const [userId, operatorId] = [first?.id ?? 0, operators?.id ?? 0];
    for (const owner of [{ merchantId: other.id }, { merchantId: 1, userId: 2n }, 'operators'] as const)
      t.equal(await consoleSessions.end(userId, owner), false, 'another owner');
    t.equal(await consoleSessions.end(operatorId, { merchantId: 1 }), false);
    t.equal(await consoleSessions.end(userId, { merchantId: 1, userId: 1n }), true);
    t.equal(await consoleSessions.find(hashOf(1), NOW_MS), null);
    t.equal(await consoleSessions.end(operatorId, 'operators'), true);
  });
}

function links(engine: string, open: OpenStore): void {
  t.test(`${engine}: a link opens one session, until it expires; the oldest of too many is gone`, async (t) => {
    const { store } = await withLock(t, open);
    const { consoleSessions, operatorTokens } = store;
    const terms = { role: 'read', tokenName: 'map', tokenHash: hashOf(1), nowMs: NOW_MS } as const;
    const token = await operatorTokens.add({ ...terms, name: 'map', expiresAtMs: null });
    let lastNumber = 0;
    /** Adds a link, and returns its hash. */
    const addLink = async (members: object = {}) => {
      lastNumber += 1;
      const linkHash = hashOf(lastNumber);
      const link = { ...terms, linkHash, tokenId: token.id, expiresAtMs: END_MS, sessionEndsAtMs: null };
      await consoleSessions.addLink({ ...link, ...members });
      return linkHash;
    };
    /** The hash of the session that the last link opens. */
    const sessionHash = () => Buffer.alloc(32, `session ${lastNumber}`);
    const redeem = (linkHash: Buffer, nowMs = NOW_MS) =>
      consoleSessions.redeemLink(linkHash, { ...client, nowMs, tokenHash: sessionHash() });
    const link = await addLink();
    t.equal(await consoleSessions.find(link, NOW_MS), null, 'a link is no session');
    t.match(await redeem(link), { role: 'read', tokenId: token.id, expiresAtMs: END_MS });
    t.equal(await redeem(link), null, 'a second time');
    t.equal(await redeem(sessionHash()), null, 'a session is no link');
    t.match(await redeem(await addLink({ sessionEndsAtMs: 500 })), { expiresAtMs: 500 });
    t.equal((await consoleSessions.list('operators', NOW_MS)).length, 2);
    await operatorTokens.revoke('map', NOW_MS);
    t.same(await consoleSessions.list('operators', NOW_MS), [], 'they end with the token');
    // The rows of tokens that were revoked long ago are deleted.
    await redeem(await addLink({ tokenId: 999 }));
    t.same(await consoleSessions.list('operators', NOW_MS), [], 'a token that is gone is not valid');
    t.equal(await redeem(await addLink({ sessionEndsAtMs: 500 }), 500), null, 'the token has expired');
    t.equal(await redeem(await addLink(), END_MS), null, 'the link has expired');
    const [oldest, next] = [await addLink({ tokenId: null }), await addLink({ tokenId: null })];
    for (let count = 2; count <= MAX_CONSOLE_LINKS; count += 1) await addLink({ tokenId: null });
    t.equal(await redeem(oldest), null);
    t.match(await redeem(next), { tokenId: null });
  });
}

function lastOwner(engine: string, open: OpenStore): void {
  t.test(`${engine}: the last owner is not removed and stays owner`, async (t) => {
    const { store } = await withLock(t, open);
    const { people } = store;
    for (const id of [1n, 2n]) await addUser(store, id, 'owner');
    await people.changeUser(1, 1n, { dashboardRole: 'viewer' });
    await t.rejects(people.changeUser(1, 2n, { dashboardRole: null }), { code: 'last-owner' });
    await t.rejects(people.removeUser(1, 2n), { code: 'last-owner' });
    t.match(await people.findUser(1, 2n), { dashboardRole: 'owner' });
  });
}
