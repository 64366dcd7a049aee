/**
 * Locks and the phones that act for them, as operators set them up: each secret is made here, answered once, and kept
 * only hashed.
 *
 * Whatever takes something away from a connection ends it: the change is committed first, so that a CONNECT reads the
 * new state, and the live sessions are ended then. What also changes what is known of the lock (a move, an erasure, a
 * removal) is done between two commits of the ingest, so that no uplink of before is judged or kept as one of after.
 */
import { type Clock, type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { backSinceMs } from '../../proto/power/judge/boots.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { toDate } from '../../proto/wire/ping-json.js';
import { MARKS_MOST, PLAUSIBLE_FROM_MS } from '../../proto/wire/uplink-life.js';
import type { Commands } from '../commands/commands.js';
import { type Keys, makeLockSecret, makePhoneSecret } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import { forgottenState } from '../locks/device-state.js';
import type { Locks } from '../locks/locks.js';
import { LivesReplay } from '../locks/relived-state.js';
import type { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import type { Sessions } from '../mqtt/sessions.js';
import { noSuchDevice } from '../store/contract/errors.js';
import type { Device, DeviceReading, EndedCredentials, Erased, Phone, Store } from '../store/contract/store.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';

/** The longest name of a phone, in characters. */
const MAX_PHONE_NAME = 64;
/** A lock's old secret may go on for this long beside its new one. */
const KEPT_LONGEST: Milliseconds = Seconds(30 * 24 * 3600);
/** What was ended is gone by then, and is not waited for any longer. */
const SESSIONS_GONE_WITHIN = Seconds(5);

export interface DeviceAccountsParts {
  readonly store: Store;
  readonly keys: Keys;
  /** The wall's: credentials live by it. */
  readonly clock: Clock;
  /** The run's clock: what is known of locks lives by it. */
  readonly runClock: Clock;
  readonly sessions: Pick<Sessions, 'end' | 'whenNone'>;
  readonly ingest: Pick<Ingest, 'runExclusive' | 'recordEvent' | 'rejudge'>;
  readonly locks: Pick<Locks, 'find' | 'replace' | 'mark' | 'judging'>;
  /** Told of locks that are marked as reflashed. */
  readonly events?: Pick<GatewayEvents, 'emit'> | undefined;
  readonly dispatcher: Pick<Dispatcher, 'forget' | 'settled'>;
  readonly commands: Pick<Commands, 'cancelled'>;
  readonly refusals: Pick<RefusalRecorder, 'store' | 'forget'>;
}

export interface AddDevice {
  readonly mac: Mac;
  /** The merchant's name; may be left out where there is only one. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
}

export interface AddPhone {
  readonly mac: Mac;
  /** Unique among the lock's phones that hold; people and `device phone revoke` name it by it. */
  readonly name: string;
  /** Ms since the epoch; null for one that never expires. */
  readonly expiresAtMs: number | null;
}

export interface ChangeDevice {
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
}

export class DeviceAccounts {
  readonly #parts: DeviceAccountsParts;
  /** One at a time, so that none rests on marks that another is about to change. */
  #reflashing: Promise<unknown> = Promise.resolve();

  constructor(parts: DeviceAccountsParts) {
    this.#parts = parts;
  }

  /** @throws LockgateError `no-such-merchant`, `device-exists` */
  async add({
    mac,
    merchant,
    simulated,
  }: AddDevice & { merchant: string }): Promise<{ device: Device; secret: string }> {
    const { store, keys, clock } = this.#parts;
    const secret = makeLockSecret();
    const secretHash = keys.hashSecret(secret);
    const nowMs = clock.now();
    const device = await store.addDevice({ mac, merchant, simulated: simulated ?? false, secretHash, nowMs });
    return { device, secret };
  }

  /**
   * Gives a lock a new secret; its connection under the old one ends. With `keepOldMs` the old one goes on that long,
   * for whoever has to bring the new one to the lock.
   *
   * @throws LockgateError `no-such-device`, `input-keep-old`
   */
  async rotateSecret(mac: Mac, keepOldMs: Milliseconds = 0): Promise<string> {
    const { store, keys, clock } = this.#parts;
    if (!(keepOldMs >= 0 && keepOldMs <= KEPT_LONGEST))
      throw new LockgateError('input-keep-old', 'an old secret is kept for 30 days at the most');
    const secret = makeLockSecret();
    const nowMs = clock.now();
    const keepUntilMs = keepOldMs > 0 ? nowMs + keepOldMs : undefined;
    // A connection under the secret that goes on ends too: it comes back, and then knows when it expires.
    this.#end(await store.replaceLockCredential(mac, keys.hashSecret(secret), nowMs, keepUntilMs));
    return secret;
  }

  /** @throws LockgateError `no-such-device`, `phone-exists`, `too-many-phones`, `input-name`, `input-expiry` */
  async addPhone({ mac, name, expiresAtMs }: AddPhone): Promise<{ phone: Phone; secret: string }> {
    const { store, keys, clock } = this.#parts;
    const trimmed = name.trim();
    if (trimmed === '' || [...trimmed].length > MAX_PHONE_NAME || /\p{Cc}/u.test(trimmed))
      throw new LockgateError('input-name', `a phone's name has 1 to ${MAX_PHONE_NAME} characters, none of control`);
    const nowMs = clock.now();
    if (expiresAtMs !== null && expiresAtMs <= nowMs)
      throw new LockgateError('input-expiry', 'a phone credential expires in the future, or never');
    const secret = makePhoneSecret();
    const secretHash = keys.hashSecret(secret);
    return { phone: await store.addPhone({ mac, name: trimmed, secretHash, expiresAtMs, nowMs }), secret };
  }

  /** The phone's connections end. @throws LockgateError `no-such-device`, `no-such-phone` */
  async revokePhone(mac: Mac, name: string): Promise<void> {
    this.#end(await this.#parts.store.revokePhone(mac, name.trim(), this.#parts.clock.now()));
  }

  /**
   * Changes whose lock it is, or whether a simulator plays it. A move leaves everything behind: what the lock did stays
   * with the merchant that had it, whose waiting commands are cancelled, and the one that gets it begins with a lock
   * that was never heard of.
   *
   * @throws LockgateError `no-such-device`, `no-such-merchant`, `input-change`
   */
  async change(mac: Mac, { merchant, simulated }: ChangeDevice): Promise<DeviceReading> {
    const { store, commands, runClock } = this.#parts;
    const { device } = await this.#find(mac);
    if (merchant === undefined && simulated === undefined)
      throw new LockgateError('input-change', 'nothing to change was named: expected a merchant, or simulated or not');
    const isMove = merchant !== undefined && merchant !== device.merchantName;
    if (isMove) {
      await this.#checkMerchant(merchant);
      // What was refused up to now is the merchant's that had the lock.
      await this.#parts.refusals.store();
      await this.#renew(device.id, mac, async (state) => {
        const atMs = runClock.now();
        await store.changeDevice({ mac, merchant, simulated, state, cancelledAtMs: atMs });
        commands.cancelled(device.id, atMs);
      });
    } else {
      await store.changeDevice({ mac, simulated });
      this.#parts.sessions.end(device.id);
    }
    return await this.#find(mac);
  }

  /**
   * Takes a lock out of service. Its history stays until it's too old; commands that wait for it are cancelled.
   *
   * @throws LockgateError `no-such-device`
   */
  async remove(mac: Mac): Promise<void> {
    const { store, clock, runClock, sessions, ingest, locks, commands } = this.#parts;
    const { device } = await this.#find(mac);
    // First of all, so that nobody comes in any more of whom a state would be kept after the lock's was dropped.
    await store.revokeCredentials(mac, clock.now());
    await this.#quiet(device.id);
    await ingest.runExclusive(device.id, async () => {
      const atMs = runClock.now();
      await store.removeDevice(mac, clock.now(), atMs);
      commands.cancelled(device.id, atMs);
      locks.replace(device.id, null);
      sessions.end(device.id);
    });
  }

  /**
   * Erases what is known of a lock, in service or removed, from the files too. The lock itself stays: its secret holds,
   * and what it sends from now on is kept. What is being delivered at this moment may still arrive.
   *
   * @throws LockgateError `no-such-device`
   */
  async erase(mac: Mac): Promise<Erased> {
    const { store, dispatcher, refusals } = this.#parts;
    const deviceId = await store.findDeviceId(mac);
    if (deviceId === null) throw noSuchDevice(mac);
    // What is known of deliveries up to now goes with the rest, and counts.
    await dispatcher.settled();
    await refusals.forget(mac);
    const erased = await this.#renew(deviceId, mac, async (state) => {
      const counts = await store.eraseDevice(deviceId, state);
      dispatcher.forget(deviceId);
      return counts;
    });
    await store.scrub();
    return erased;
  }

  /**
   * Judges a lock again that is not judged, because the judge failed (ingest/judging.ts). Its state is made from its
   * log.
   *
   * @throws LockgateError `no-such-device`, `lock-is-judged`, `judge-failed`
   */
  async rejudge(mac: Mac): Promise<void> {
    const { device } = await this.#find(mac);
    await this.#parts.ingest.rejudge(device.id, mac);
  }

  /**
   * Marks the lock as reflashed at a time, by the lock's clock; now, where it is left out. What it made from then on is
   * of a new life (protocol.md §1), and what is known of it is made again by that order. Its connection goes on.
   *
   * @returns all of its marks, the earliest first
   * @throws LockgateError `no-such-device`, `input-at`, `too-many-marks`, `judge-failed`
   */
  reflash(mac: Mac, atMs?: number): Promise<readonly number[]> {
    const run = (): Promise<readonly number[]> => this.#reflash(mac, atMs);
    const done = this.#reflashing.then(run, run);
    this.#reflashing = done.catch(() => undefined);
    return done;
  }

  async #reflash(mac: Mac, atMs?: number): Promise<readonly number[]> {
    const { ingest, runClock } = this.#parts;
    const { device } = await this.#find(mac);
    const markMs = atMs ?? runClock.now();
    checkMark(markMs, runClock.now());
    const marks = await this.#addedMark(device.id, mac, markMs);
    const { store, locks } = this.#parts;
    const relived = new LivesReplay({ store, judging: locks.judging }, device.id, mac, marks);
    // Most of the log is judged while pings go on; what came meanwhile, when nothing else does.
    await relived.catchUp();
    await ingest.runExclusive(device.id, () => this.#relive(device.id, mac, markMs, marks, relived), false);
    // Presence is reported with the next event, and what has lapsed is found then.
    ingest.recordEvent(device.id, mac, { type: 'tick', atMs: runClock.now() });
    return marks;
  }

  async #addedMark(deviceId: number, mac: Mac, markMs: number): Promise<readonly number[]> {
    const marks = await this.#parts.store.marks.read(deviceId);
    if (marks.length < MARKS_MOST || marks.includes(markMs)) return withMark(marks, markMs);
    throw new LockgateError(
      'too-many-marks',
      `${formatMac(mac)} was reflashed ${marks.length} times: no more are kept`,
    );
  }

  async #relive(deviceId: number, mac: Mac, markMs: number, marks: readonly number[], relived: LivesReplay) {
    const { store, locks, events, runClock } = this.#parts;
    await relived.catchUp();
    const known = locks.find(deviceId)?.state;
    const state = known === undefined ? null : relived.replace(known);
    await store.marks.add({ deviceId, markMs, state: state === null ? null : JSON.stringify(state) });
    locks.mark(deviceId, marks);
    if (state !== null) locks.replace(deviceId, state);
    const sinceMs = state === null ? undefined : backSinceMs(state.belief);
    events?.emit('reflashed', { atMs: runClock.now(), mac, markMs, backSinceMs: sinceMs });
  }

  async #find(mac: Mac): Promise<DeviceReading> {
    const reading = await this.#parts.store.findDevice(mac);
    if (reading === null) throw noSuchDevice(mac);
    return reading;
  }

  /** Before anybody is disconnected for a name that was mistyped. */
  async #checkMerchant(name: string): Promise<void> {
    if ((await this.#parts.store.listMerchants()).some((merchant) => merchant.name === name)) return;
    throw new LockgateError('no-such-merchant', `there is no merchant named ${JSON.stringify(name)}`);
  }

  /** Does `work` with the lock's new state, of which nothing is known but that names were used. */
  async #renew<T>(deviceId: number, mac: Mac, work: (state: string | null) => Promise<T>): Promise<T> {
    const { sessions, ingest, locks, runClock } = this.#parts;
    await this.#quiet(deviceId);
    const done: T[] = [];
    await ingest.runExclusive(deviceId, async () => {
      const known = locks.find(deviceId)?.state;
      const state = known === undefined ? null : forgottenState(known, mac, runClock.now());
      done.push(await work(state === null ? null : JSON.stringify(state)));
      locks.replace(deviceId, state);
      // Who came in meanwhile did so by what was true before.
      sessions.end(deviceId);
    });
    return done[0] as T;
  }

  /** Ends the lock's connections, and waits until the ends have been told to the ingest. */
  async #quiet(deviceId: number): Promise<void> {
    const { sessions, clock } = this.#parts;
    sessions.end(deviceId);
    await new Promise<void>((resolve) => {
      const patience = clock.after(SESSIONS_GONE_WITHIN, resolve);
      void sessions.whenNone(deviceId).then(() => {
        patience.cancel();
        resolve();
      });
    });
  }

  #end({ deviceId, credentialIds }: EndedCredentials): void {
    const ended = ({ credentialId }: Sender): boolean => credentialIds.includes(credentialId);
    this.#parts.sessions.end(deviceId, ({ sender }) => ended(sender));
  }
}

/** @throws LockgateError `input-at` */
function checkMark(markMs: number, nowMs: number): void {
  if (markMs >= PLAUSIBLE_FROM_MS && markMs <= nowMs) return;
  throw new LockgateError(
    'input-at',
    `at is ${toDate(markMs)}: expected a time from 2020 on that is not in the future`,
  );
}

function withMark(marks: readonly number[], markMs: number): readonly number[] {
  return [...new Set([...marks, markMs])].sort((one, other) => one - other);
}
