/**
 * Makes a store with rows in each table, as after months of work: uplinks (messages) of several locks, failed
 * deliveries, changed and deleted rows. For tests of the file itself, so most values are arbitrary.
 */

import { type Incoming, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import { positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { AttemptRecord } from '../../../gateway/store/contract/webhooks/delivery.js';
import { NO_FILTER } from '../../../gateway/store/contract/webhooks/webhook-filter.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { type Month, monthEndMs } from '../../../gateway/usage/month.js';
import { makeStatement } from '../../../gateway/usage/statement.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../gateway/test-gateway.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import { makeStore } from './new-store.js';

/** The time of the store's first row, ms since the epoch. */
export const STOCK_START_MS = Date.UTC(2099, 9, 1);
const OCTOBER = '2099-10' as Month;
/** In place of the hash of a secret: any 32 bytes. */
const HASH = Buffer.alloc(32, 7);
const UPLINKS_PER_COMMIT = 40;
/** Every seventh delivery fails once. */
const FAIL_EVERY = 7;
/** Uplinks are sorted into the indexes in small groups (runs), so that the indexes contain most uplinks. */
const SMALL_RUN_SIZE = { minUplinks: 30, uplinksPerCredential: 1, maxUplinks: 60 };

/** How many locks the store has, and about how many pings of them. */
export interface StockSize {
  readonly locks: number;
  readonly pings: number;
}

/** Makes the store in `folder` and closes it. */
export async function stockStore(folder: string, stock: StockSize, chance: SeededChance): Promise<void> {
  await makeStore(folder);
  const store = await openSqliteStore(folder, { runSize: SMALL_RUN_SIZE });
  try {
    await stockAccounts(store, stock);
    await stockUsers(store);
    await stockUplinks(store, stock, chance);
    await stockUsage(store, stock);
    await stockNotices(store);
  } finally {
    await store.close();
  }
}

/** A merchant with locks, a phone and two webhook URLs: one with an old secret, the other with a filter. */
async function stockAccounts(store: Store, { locks }: StockSize): Promise<void> {
  await store.addMerchant('Amber', STOCK_START_MS);
  const device = { merchant: 'Amber', simulated: false, secretHash: HASH, nowMs: STOCK_START_MS };
  await store.addDevices(Array.from({ length: locks }, (_, index) => ({ ...device, mac: testMac(index + 1) })));
  const phone = { mac: testMac(1), name: 'Ann', secretHash: HASH, expiresAtMs: null, nowMs: STOCK_START_MS };
  await store.addPhone(phone);
  for (const url of ['http://127.0.0.1:9/a', 'http://127.0.0.1:9/b'])
    await store.addWebhookUrl({
      merchant: 'Amber',
      url,
      headersSealed: { Authorization: Buffer.alloc(60, 3).toString('base64') },
      secretSealed: Buffer.alloc(64, 5),
      nowMs: STOCK_START_MS,
    });
  const rotation = { secretSealed: Buffer.alloc(64, 6), nowMs: 1, oldValidUntilMs: STOCK_START_MS };
  await store.webhooks.rotateSecret(1, rotation);
  const filter = { ...NO_FILTER, reasons: ['REASON_THEFT'] };
  for (const urlId of [1, 2]) await store.webhooks.change(urlId, { filter });
  await store.webhooks.change(1, { filter: NO_FILTER });
}

/**
 * API keys, tokens, users and pets: what the specification gives merchants beside locks. Scopes are not checked here.
 */
async function stockUsers({ access, people }: Store): Promise<void> {
  const key = { merchant: 'Amber', publicId: 'abcdefgh', name: 'till', secretHash: HASH, nowMs: STOCK_START_MS };
  const { id } = await access.addKey({ ...key, scopes: ['spec', 'locks:read'], expiresAtMs: STOCK_START_MS + 1e12 });
  const expiresAtMs = STOCK_START_MS + 1e9;
  await access.addToken({ keyId: id, tokenHash: HASH, scopes: ['pets:write'], nowMs: STOCK_START_MS, expiresAtMs });
  const emptyProfile = { lastName: null, email: null, phone: null, userStatus: 1, passwordHash: null };
  const user = { ...emptyProfile, id: 9_223_372_036_854_775_807n, username: 'ann', firstName: 'Zoë' };
  await people.addUsers(1, [user, { ...emptyProfile, id: null, username: 'böb', firstName: null }], STOCK_START_MS);
  const session = { merchantId: 1, userId: user.id, tokenHash: HASH, nowMs: STOCK_START_MS, expiresAtMs };
  await people.addSession(session);
  await people.addPet(1, { name: 'Rex', ownerId: 'o1', species: 'dog', breed: null }, STOCK_START_MS);
}

/**
 * Appends uplinks of random locks, so that the index by lock grows everywhere, as in real use. Also connections, a
 * message that is no uplink, and findings (objections to a lock).
 */
async function stockUplinks(store: Store, { locks, pings }: StockSize, chance: SeededChance): Promise<void> {
  const sequences = new Map<number, number>();
  for (let storedCount = 0; storedCount < pings; storedCount += UPLINKS_PER_COMMIT) {
    const incoming: Incoming[] = [];
    const states = new Map<number, string>();
    for (let index = 0; index < UPLINKS_PER_COMMIT; index += 1) {
      const deviceId = 1 + Math.floor(chance.next() * locks);
      const sequence = (sequences.get(deviceId) ?? 0) + 1;
      sequences.set(deviceId, sequence);
      // The count of dropped pings only makes the bytes of two locks differ.
      const bytes = testBytes(sequence, { dropped: deviceId });
      const uplinkKey = {
        deviceId,
        merchantId: 1,
        credentialId: deviceId,
        boot: 1,
        sequence,
        digest: uplinkDigest(bytes),
      };
      const receivedAtMs = STOCK_START_MS + (storedCount + index) * 1000;
      const kind = UPLINK_KINDS.indexOf('cellular');
      incoming.push({ type: 'uplink', ...uplinkKey, kind, bytes, receivedAtMs, buffered: false });
      // The state is a text of 600 to 800 bytes plus its frame: its content does not matter.
      states.set(
        deviceId,
        JSON.stringify({ belief: { sequence, runs: 'x'.repeat(600 + Math.floor(chance.next() * 200)) } }),
      );
    }
    const event = {
      type: 'lock-event',
      deviceId: 1,
      atMs: STOCK_START_MS + storedCount,
      event: { event: 'connect' },
    } as const;
    await store.append({ incoming: [...incoming, event], judged: [], states });
    await stockDeliveries(store, storedCount);
  }
  const bytes = Buffer.from('nonsense');
  const notAnUplink = {
    deviceId: 1,
    credentialId: 1,
    receivedAtMs: STOCK_START_MS,
    code: 'not-an-uplink',
    message: 'odd',
    bytes,
  };
  const about = { credential: 1, boot: 1, sequence: 1 };
  const finding = { rule: 'period-too-soon', severity: 'violation', message: 'm', mac: 'A4:C1:38:00:00:01' } as const;
  const findings = Array.from({ length: 30 }, (_, index) => ({ ...finding, about, atMs: STOCK_START_MS + index }));
  const judged = [{ deviceId: 1, withdrawn: [], findings }];
  await store.append({ incoming: [{ type: 'quarantine', ...notAnUplink }], judged, states: new Map() });
}

/**
 * Records an attempt for each of the last commit's events at both URLs. Every {@link FAIL_EVERY}th waits for a retry.
 */
async function stockDeliveries(store: Store, storedBefore: number): Promise<void> {
  const ids = Array.from({ length: UPLINKS_PER_COMMIT }, (_, index) => storedBefore + index + 1);
  for (const urlId of [1, 2]) {
    const attempts = ids.map((uplinkId): AttemptRecord => {
      const attempt = { urlId, uplinkId, number: 1, atMs: STOCK_START_MS, durationMs: 3 };
      if (uplinkId % FAIL_EVERY !== 0)
        return { ...attempt, status: 204, error: null, answer: '', outcome: { state: 'delivered' } };
      const outcome = { state: 'pending', nextAttemptAtMs: STOCK_START_MS + 5000 } as const;
      return { ...attempt, status: 500, error: 'it answered 500', answer: 'no', outcome };
    });
    await store.recordProgress([{ urlId, attempts, cursor: positionAfter(ids.at(-1) as number) }]);
  }
}

/** A price plan, and two closed months; the second statement also bills usage that was counted late. */
async function stockUsage({ usage }: Store, { locks }: StockSize): Promise<void> {
  const macs = Array.from({ length: locks }, (_, index) => testMac(index + 1));
  await usage.activate(macs.map((mac) => ({ mac, atMs: STOCK_START_MS })));
  await usage.putPlan('Amber', { perMb: '0.12', perSim: '0.80', currency: 'EUR' }, OCTOBER, STOCK_START_MS);
  const counts = { messagesUp: 5, messagesDown: 1, connections: 2, bytesUp: 700, bytesDown: 90 };
  const deltas = macs.map((mac) => ({ month: OCTOBER, mac, merchantId: 1, simulated: false, ...counts }));
  await usage.add(deltas, STOCK_START_MS);
  await usage.close(1, OCTOBER, monthEndMs(OCTOBER), (basis) => JSON.stringify(makeStatement(basis)));
  // Late usage is billed on the next statement.
  await usage.add(deltas.slice(0, 3), monthEndMs(OCTOBER));
  const NOVEMBER = '2099-11' as Month;
  await usage.close(1, NOVEMBER, monthEndMs(NOVEMBER), (basis) => JSON.stringify(makeStatement(basis)));
}

/** Refusals, notices, commands, and calls that must not be carried out twice. */
async function stockNotices({ notices, commands, refusals }: Store): Promise<void> {
  const refusal = { source: 'lock', what: 'publish', reason: 'topic', address: '203.0.113.7', count: 1 } as const;
  const times = { firstAtMs: STOCK_START_MS, lastAtMs: STOCK_START_MS };
  const refusalRows = Array.from({ length: 20 }, (_, index) => ({ ...refusal, ...times, why: `topic "old ${index}"` }));
  await refusals.write(
    refusalRows.map((each) => ({ ...each, mac: testMac(1) })),
    STOCK_START_MS,
  );
  const notice = {
    kind: 'lock-late',
    text: 'it is late',
    count: 1,
    firstAtMs: 1,
    lastAtMs: 2,
    resolvedAtMs: null,
  } as const;
  await notices.write(Array.from({ length: 20 }, (_, index) => ({ ...notice, subject: `lock ${index}` })));
  await notices.markRead([1, 2, 3], 9);
  const command = { deviceId: 1, merchantId: 1, command: { type: 'lock' }, createdAtMs: 1, notBeforeMs: null } as const;
  await commands.add([1, 2, 3].map(() => ({ ...command, expiresAtMs: 2, askedBy: 'a test' })));
  for (let number = 1; number <= 20; number += 1) {
    const call = {
      merchantId: 1,
      route: 'POST /v1/commands',
      key: `call ${number}`,
      bodyDigest: Buffer.alloc(32, number),
    };
    await commands.addOnce(
      { ...command, expiresAtMs: 2, askedBy: 'a test' },
      { ...call, nowMs: 1 },
      ({ id }) => `${id}`,
    );
  }
}
