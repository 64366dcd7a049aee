/**
 * A program of the bench's row `reads` that fills a store with what a merchant's programs read: a month of pings, and
 * findings, commands, deliveries, users, usage and statements. It takes one argument, a {@link HistoryRequest} as JSON,
 * and prints a {@link ReadSubject} when the store is closed. The locks must be registered, and no gateway may use the
 * folder.
 */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import type { LockAccount } from '../../../gateway/store/contract/devices/device.js';
import { type IncomingUplink, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import { positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { AttemptRecord } from '../../../gateway/store/contract/webhooks/delivery.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { type Month, monthOf } from '../../../gateway/usage/month.js';
import { makeStatement } from '../../../gateway/usage/statement.js';
import { eventId, uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { Days, Hours, Seconds } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { formatMac, parseMac } from '../../../proto/wire/mac.js';
import type { Ping } from '../../../proto/wire/ping.js';
import { BENCH_MERCHANT, lockLogins } from '../load/lock-logins.js';
import {
  LONG_SEQUENCE,
  SEQUENCE_BEFORE_FIRST,
  SEQUENCE_BYTES,
  TIME_BYTES,
  writeVarint,
} from '../load/ping-template.js';
import type { ReadSubject } from './read-calls.js';

export interface HistoryRequest {
  /** The data folder. */
  readonly data: string;
  /** The number of registered locks, which send in turn. */
  readonly locks: number;
  readonly pings: number;
  /** When the last ping was received, ms since the epoch; the first one was received {@link HISTORY_DAYS} earlier. */
  readonly endMs: number;
}

/** How many days the pings are spread over. */
export const HISTORY_DAYS = 30;
/** The boot of the stored pings; a lower one than the load generator's. */
const BOOT = 7;
const PINGS_PER_COMMIT = 10_000;
const COMMANDS = 20_000;
const DEAD_DELIVERIES = 20_000;
const USERS = 2_000;
const FINDINGS_PER_LOCK = 3;
/** Monthly bills of the merchant. */
const STATEMENTS = 12;
const ROWS_PER_WRITE = 1_000;

const POSITION = { latitudeDegrees: 52.520008, longitudeDegrees: 13.404954, uncertaintyMeters: 6 };
const COMMON = { lockState: 'unlocked', batteryPercent: 81, ebikeVolts: null, tetherState: 'detached' } as const;
const CELLULAR = { ...COMMON, kind: 'cellular', firmwareVersion: '2.4.1-lockgate-bench', position: null } as const;
const GPS = { ...COMMON, kind: 'gps', position: POSITION, speedMetersPerSecond: 4, directionDegrees: 84 } as const;

/** What the locks send, in turn: half of the pings have a position, one of sixteen reports a theft. */
const BODIES: readonly Ping[] = Array.from({ length: 16 }, (_, index) => {
  if (index === 0) return { ...GPS, reason: 'REASON_THEFT' };
  if (index % 2 === 0) return { ...GPS, reason: 'REASON_UNLOCKED_MOVEMENT' };
  return { ...CELLULAR, reason: index % 4 === 1 ? 'REASON_STATE_PING' : 'REASON_UNLOCKED_MOVEMENT' };
});

/** A ping's bytes; boot, sequence and time come first, each after a tag of one byte. */
interface Template {
  readonly kind: number;
  readonly bytes: Buffer;
}

/** Offsets in a ping's bytes: the sequence follows the boot, which takes two bytes, and its own tag. */
const SEQUENCE_AT = 3;
const TIME_AT = SEQUENCE_AT + SEQUENCE_BYTES + 1;

function templates(timeMs: number): Template[] {
  const power = { mode: 'MID', rideTracking: true, airplane: false, recovery: false } as const;
  return BODIES.map((body) => {
    const uplink = { boot: BOOT, sequence: LONG_SEQUENCE, timeMs, power, kept: 0, dropped: 0, body };
    return { kind: UPLINK_KINDS.indexOf(body.kind), bytes: Buffer.from(encodeUplink(uplink)) };
  });
}

/** Fills one store. */
class HistoryFiller {
  readonly #store: Store;
  readonly #request: HistoryRequest;
  readonly #startMs: number;
  readonly #templates: readonly Template[];
  readonly #accounts: readonly LockAccount[];

  constructor(store: Store, request: HistoryRequest, accounts: readonly LockAccount[]) {
    this.#store = store;
    this.#request = request;
    this.#startMs = request.endMs - Days(HISTORY_DAYS);
    this.#templates = templates(request.endMs);
    this.#accounts = accounts;
  }

  /** Returns what can be read. With the `keys`, the data folder's, the secret of a webhook URL is sealed. */
  async fill(keys: ReturnType<typeof openKeys>): Promise<ReadSubject> {
    const { pings, locks, endMs } = this.#request;
    for (let next = 0; next < pings; next += PINGS_PER_COMMIT) {
      const incoming: IncomingUplink[] = [];
      for (let number = next; number < Math.min(next + PINGS_PER_COMMIT, pings); number++)
        incoming.push(this.#ping(number));
      await this.#store.append({ incoming, judged: [], states: new Map() });
    }
    await this.#addNames();
    await this.#addFindings();
    const lastCommandId = await this.#addCommands();
    await this.#addUsers();
    const closedMonth = await this.#addUsage();
    const webhookId = await this.#addDeadDeliveries(keys);
    const { mac, deviceId: firstDeviceId, merchantId } = this.#accounts[0] as LockAccount;
    // The last ping of the first lock, since `pings` is a multiple of `locks`; one whose delivery failed for good,
    // since more deliveries failed than there are locks.
    const { credentialId, boot, sequence, digest } = this.#ping(pings - locks);
    const ids = { merchantId, firstDeviceId, lastPingId: pings, webhookId, lastCommandId, commands: COMMANDS };
    const event = eventId({ mac, credentialId, boot, sequence, digest });
    return { locks, ...ids, endMs, historyDays: HISTORY_DAYS, closedMonth, event };
  }

  /** The ping with this number; consecutive numbers belong to consecutive locks. */
  #ping(number: number): IncomingUplink {
    const { pings } = this.#request;
    const { deviceId, merchantId, credentials } = this.#accounts[number % this.#accounts.length] as LockAccount;
    const turn = Math.floor(number / this.#accounts.length);
    const template = this.#templates[(turn + deviceId) % this.#templates.length] as Template;
    const sequence = SEQUENCE_BEFORE_FIRST + 1 + turn;
    const receivedAtMs = this.#startMs + Math.floor((number / pings) * Days(HISTORY_DAYS));
    const bytes = Buffer.from(template.bytes);
    writeVarint(bytes, SEQUENCE_AT, sequence, SEQUENCE_BYTES);
    writeVarint(bytes, TIME_AT, receivedAtMs - Seconds(1), TIME_BYTES);
    const key = { boot: BOOT, sequence, digest: uplinkDigest(bytes), credentialId: credentials[0]?.id ?? 0 };
    return { type: 'uplink', deviceId, merchantId, ...key, kind: template.kind, bytes, receivedAtMs, buffered: false };
  }

  async #addNames(): Promise<void> {
    await inChunks(this.#accounts, async (chunk) => {
      const changes = chunk.map(({ mac, merchantId, deviceId }) => {
        const labels = { city: `city-${deviceId % 20}`, kind: 'bike' };
        return this.#store.describeLock({ merchantId, mac, name: `Harbour ${deviceId}`, labels });
      });
      await Promise.all(changes);
    });
  }

  async #addFindings(): Promise<void> {
    await inChunks(this.#accounts, async (chunk) => {
      const judged = chunk.map(({ deviceId, mac, credentials }) => {
        const findings = Array.from({ length: FINDINGS_PER_LOCK }, (_, index) => {
          const about = {
            credential: credentials[0]?.id ?? 0,
            boot: BOOT,
            sequence: SEQUENCE_BEFORE_FIRST + 1 + index,
          };
          const terms = { rule: 'period-too-soon', severity: 'violation', message: 'too soon after another' } as const;
          return { ...terms, mac: formatMac(mac), about, atMs: this.#startMs };
        });
        return { deviceId, withdrawn: [], findings };
      });
      await this.#store.append({ incoming: [], judged, states: new Map() });
    });
  }

  /** Returns the id of the last command. */
  async #addCommands(): Promise<number> {
    let lastId = 0;
    const numbers = Array.from({ length: COMMANDS }, (_, number) => number);
    await inChunks(numbers, async (chunk) => {
      const commands = chunk.map((number) => {
        const { deviceId, merchantId } = this.#accounts[number % this.#accounts.length] as LockAccount;
        const createdAtMs = this.#startMs + number;
        const times = { createdAtMs, notBeforeMs: null, expiresAtMs: createdAtMs + Hours(1) };
        return { deviceId, merchantId, command: { type: 'unlock' } as const, ...times, askedBy: 'the bench' };
      });
      const added = await this.#store.commands.add(commands);
      await this.#store.commands.expire(
        added.map(({ id }) => id),
        this.#startMs + Days(1),
      );
      lastId = added.at(-1)?.id ?? lastId;
    });
    return lastId;
  }

  async #addUsers(): Promise<void> {
    const { merchantId } = this.#accounts[0] as LockAccount;
    const noDetails = {
      firstName: null,
      lastName: null,
      email: null,
      phone: null,
      userStatus: null,
      passwordHash: null,
    };
    const users = Array.from({ length: USERS }, (_, number) => ({
      ...noDetails,
      id: null,
      username: `user-${number}`,
    }));
    await inChunks(users, (chunk) => this.#store.people.addUsers(merchantId, chunk, this.#startMs));
  }

  /** Adds counts of a year, and a statement for each month but the last. Returns the last closed month. */
  async #addUsage(): Promise<Month> {
    const { usage } = this.#store;
    const { merchantId } = this.#accounts[0] as LockAccount;
    const counts = { messagesUp: 900, messagesDown: 20, connections: 40, bytesUp: 90_000, bytesDown: 9_000 };
    const months: Month[] = [];
    for (let ago = STATEMENTS; ago >= 0; ago--) months.push(monthBefore(this.#request.endMs, ago));
    await usage.activate(this.#accounts.map(({ mac }) => ({ mac, atMs: this.#startMs })));
    for (const month of months) {
      const { endMs } = this.#request;
      const rows = this.#accounts.map(({ mac }) => ({ ...counts, month, mac, merchantId, simulated: true }));
      await inChunks(rows, (chunk) => usage.add(chunk, endMs));
      if (month !== months.at(-1))
        await usage.close(merchantId, month, endMs, (basis) => JSON.stringify(makeStatement(basis)));
    }
    return months.at(-2) as Month;
  }

  /** Adds a disabled URL, at which the latest events failed for the last time. Returns its id. */
  async #addDeadDeliveries(keys: ReturnType<typeof openKeys>): Promise<number> {
    const terms = { headersSealed: {}, secretSealed: keys.seal('whsec_x'), nowMs: this.#startMs, fromUplinkId: 1 };
    const { id: urlId } = await this.#store.addWebhookUrl({
      merchant: BENCH_MERCHANT,
      url: 'http://127.0.0.1:9/',
      ...terms,
    });
    const { pings } = this.#request;
    const count = Math.min(DEAD_DELIVERIES, pings);
    const attempts = Array.from({ length: count }, (_, number): AttemptRecord => {
      // The eighth attempt is the last one.
      const answered = { number: 8, atMs: this.#startMs, durationMs: 12, status: 500, answer: 'sorry' };
      const uplinkId = pings - count + number + 1;
      return { urlId, uplinkId, ...answered, error: 'the receiver answered 500', outcome: { state: 'dead' } };
    });
    await inChunks(attempts, (chunk) => this.#store.recordProgress([{ urlId, attempts: chunk }]));
    const cursor = positionAfter(pings);
    await this.#store.recordProgress([{ urlId, attempts: [], cursor, disabledWhy: 'disabled by the operator' }]);
    return urlId;
  }
}

/** The month that was this many months before a time. */
function monthBefore(timeMs: number, months: number): Month {
  const date = new Date(timeMs);
  return monthOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1));
}

async function inChunks<T>(items: readonly T[], write: (chunk: readonly T[]) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < items.length; start += ROWS_PER_WRITE)
    await write(items.slice(start, start + ROWS_PER_WRITE));
}

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
  const request = JSON.parse(argument) as HistoryRequest;
  const store = await openStore(sqliteUrl(request.data));
  const filler = new HistoryFiller(store, request, await findAccounts(store, request.locks));
  // The store has no sealed secrets yet, so a missing key may be made.
  const isKeyInUse = false;
  const subject = await filler.fill(openKeys(request.data, isKeyInUse));
  await store.close();
  console.log(JSON.stringify(subject));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
