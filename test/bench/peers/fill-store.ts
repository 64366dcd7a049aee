/**
 * A program of the bench that fills a store with pings through the store's append method. It takes one argument, a
 * {@link FillRequest} as JSON. Each line of stdin is a number N: the program appends N more pings, from the locks in
 * turn, and answers `{}`. It opens the store only while it processes a line; no gateway may use the folder then.
 */
import { createInterface } from 'node:readline';
import type { LockAccount } from '../../../gateway/store/contract/devices/device.js';
import { type IncomingUplink, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { lockLogins } from '../load/lock-logins.js';
import {
  newBootNumber,
  pingTemplate,
  SEQUENCE_BEFORE_FIRST,
  SEQUENCE_BYTES,
  writeVarint,
} from '../load/ping-template.js';

export interface FillRequest {
  /** The data folder. */
  readonly data: string;
  /** The number of registered locks that send in turn. */
  readonly locks: number;
  /** When the pings were received, ms since the epoch. */
  readonly receivedAtMs: number;
}

/** Pings per commit. */
const PINGS_PER_COMMIT = 10_000;

const BOOT = newBootNumber();
const TEMPLATE = pingTemplate(BOOT);

/** The ping with this number; consecutive numbers belong to consecutive locks. */
function pingOf(accounts: readonly LockAccount[], number: number, receivedAtMs: number): IncomingUplink {
  const { deviceId, merchantId, credentials } = accounts[number % accounts.length] as LockAccount;
  const sequence = SEQUENCE_BEFORE_FIRST + 1 + Math.floor(number / accounts.length);
  const bytes = Buffer.from(TEMPLATE.bytes);
  // Replaces the sequence number in the encoded ping, which is faster than encoding each ping.
  writeVarint(bytes, TEMPLATE.sequenceAt, sequence, SEQUENCE_BYTES);
  return {
    type: 'uplink',
    deviceId,
    merchantId,
    credentialId: credentials[0]?.id ?? 0,
    boot: BOOT,
    sequence,
    digest: uplinkDigest(bytes),
    kind: UPLINK_KINDS.indexOf('gps'),
    bytes,
    receivedAtMs,
    buffered: false,
  };
}

/** The locks' accounts in the store, which say under which ids their pings are stored. */
async function findAccounts(store: Store, locks: number): Promise<LockAccount[]> {
  const accounts: LockAccount[] = [];
  for (const { mac: text } of lockLogins(locks)) {
    const mac = parseMac(text);
    const account = mac.ok ? await store.findLock(mac.value) : null;
    if (account === null) throw new Error(`the store does not know ${text}`);
    accounts.push(account);
  }
  return accounts;
}

async function main(argument: string): Promise<void> {
  const { data, locks, receivedAtMs } = JSON.parse(argument) as FillRequest;
  let filled = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const store = await openStore(sqliteUrl(data));
    const accounts = await findAccounts(store, locks);
    for (const target = filled + Number(line); filled < target; ) {
      const incoming: IncomingUplink[] = [];
      for (; incoming.length < PINGS_PER_COMMIT && filled < target; filled++)
        incoming.push(pingOf(accounts, filled, receivedAtMs));
      await store.append({ incoming, judged: [], states: new Map() });
    }
    await store.close();
    console.log('{}');
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
