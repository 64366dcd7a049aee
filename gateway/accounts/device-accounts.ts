/**
 * Locks and the phones that act for them, as operators set them up. Each secret is made here, returned once, and stored
 * only hashed.
 *
 * A change that takes a right away from connections also closes them: the change is committed first, so that a new
 * CONNECT reads the new state, and then the open sessions are closed. A change of the lock's state (a move, an erasure,
 * a removal) runs between two commits of the ingest, so that no uplink from before the change is judged or stored after
 * it.
 */
import { type Clock, Days, type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { bootBackSinceMs } from '../../proto/power/judge/boots.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import { MAX_REFLASH_MARKS, PLAUSIBLE_FROM_MS } from '../../proto/wire/uplink-life.js';
import type { Commands } from '../commands/commands.js';
import { type Keys, makeLockSecret, makePhoneSecret } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import { faultAt } from '../faults.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import { resetState } from '../locks/device-state.js';
import { LivesReplay } from '../locks/lives-replay.js';
import type { Locks } from '../locks/locks.js';
import type { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import type { Sessions } from '../mqtt/sessions.js';
import type { LockOwner } from '../ownership/lock-owner.js';
import type { Erased } from '../store/contract/deletion.js';
import type { Device, DeviceReading, Phone, ReplacedCredentials } from '../store/contract/devices/device.js';
import { type Labels, NO_LABELS } from '../store/contract/devices/device-labels.js';
import { noSuchDevice } from '../store/contract/errors.js';
import type { DescribeLock } from '../store/contract/merchants/merchant-write.js';
import type { Store } from '../store/contract/store.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';
import { checkDescription } from './lock-description.js';

const MAX_PHONE_NAME_CHARS = 64;
/** A lock's old secret may stay valid for this long after its replacement. */
const MAX_OLD_SECRET_LIFETIME: Milliseconds = Days(30);
/** How long a change waits for the sessions that it closed. */
const SESSION_CLOSE_TIMEOUT = Seconds(5);

export interface DeviceAccountsParts {
  readonly store: Store;
  readonly keys: Keys;
  /** Wall-clock time, for credentials. */
  readonly clock: Clock;
  /** The run's clock (wall-clock time, except in a sped-up simulation), for the states of locks. */
  readonly runClock: Clock;
  readonly sessions: Pick<Sessions, 'end' | 'whenNone'>;
  readonly ingest: Pick<Ingest, 'runExclusive' | 'recordEvent' | 'rejudge'>;
  readonly locks: Pick<Locks, 'find' | 'replace' | 'mark' | 'judging'>;
  /** Receives the changes of locks. */
  readonly events?: Pick<GatewayEvents, 'emit'> | undefined;
  readonly dispatcher: Pick<Dispatcher, 'forgetLock' | 'flushOutcomes'>;
  /** Must be told when the store has cancelled a lock's commands. */
  readonly commands: Pick<Commands, 'cancelled'>;
  readonly refusals: Pick<RefusalRecorder, 'writeWaiting' | 'forget'>;
  /** Takes a lock over from other gateways while its account is changed; undefined if this gateway serves all locks. */
  readonly owner?: Pick<LockOwner, 'hold'> | undefined;
}

export interface AddDevice {
  readonly mac: Mac;
  /** The merchant's name; optional if there is only one merchant. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  readonly name?: string | undefined;
  readonly labels?: Labels | undefined;
}

export interface AddPhone {
  readonly mac: Mac;
  /** Unique among the lock's valid phones. `device phone revoke` identifies the phone by it. */
  readonly name: string;
  /** Ms since the epoch; null for a credential that never expires. */
  readonly expiresAtMs: number | null;
}

export interface ChangeDevice {
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  /** An empty name removes the name. */
  readonly name?: string | undefined;
  /** Replaces all labels. */
  readonly labels?: Labels | undefined;
}

export class DeviceAccounts {
  readonly #parts: DeviceAccountsParts;
  /** Resolves after the last call of {@link reflash}. Calls run one at a time: each reads all marks and adds one. */
  #reflashing: Promise<unknown> = Promise.resolve();

  constructor(parts: DeviceAccountsParts) {
    this.#parts = parts;
  }

  /** @throws LockgateError `no-such-merchant`, `device-exists` */
  async add({
    mac,
    merchant,
    simulated,
    name,
    labels,
  }: AddDevice & { merchant: string }): Promise<{ device: Device; secret: string }> {
    const { store, keys, clock } = this.#parts;
    const described = checkDescription({ name, labels });
    const secret = makeLockSecret();
    const secretHash = keys.hashSecret(secret);
    const nowMs = clock.now();
    const device = await store.addDevice({
      mac,
      merchant,
      simulated: simulated ?? false,
      secretHash,
      nowMs,
      ...described,
    });
    this.#parts.events?.emit('locks-added', { macs: [mac] });
    return { device, secret };
  }

  /**
   * Gives a lock a new secret and closes its connection. With `keepOldMs` the old secret stays valid that long, until
   * the new one has been installed on the lock.
   *
   * @throws LockgateError `no-such-device`, `input-keep-old`
   */
  async rotateSecret(mac: Mac, keepOldMs: Milliseconds = 0): Promise<string> {
    const { store, keys, clock } = this.#parts;
    if (!(keepOldMs >= 0 && keepOldMs <= MAX_OLD_SECRET_LIFETIME))
      throw new LockgateError('input-keep-old', 'an old secret stays valid for at most 30 days');
    const secret = makeLockSecret();
    const nowMs = clock.now();
    const keepUntilMs = keepOldMs > 0 ? nowMs + keepOldMs : undefined;
    // A connection under the old secret closes even if that secret stays valid for a while: the session that the lock
    // then opens ends when the old secret expires.
    await this.#held(mac, async () => {
      this.#closeSessionsOf(await store.replaceLockCredential(mac, keys.hashSecret(secret), nowMs, keepUntilMs));
    });
    return secret;
  }

  /** @throws LockgateError `no-such-device`, `phone-exists`, `too-many-phones`, `input-name`, `input-expiry` */
  async addPhone({ mac, name, expiresAtMs }: AddPhone): Promise<{ phone: Phone; secret: string }> {
    const { store, keys, clock } = this.#parts;
    const trimmed = name.trim();
    if (trimmed === '' || [...trimmed].length > MAX_PHONE_NAME_CHARS || /\p{Cc}/u.test(trimmed))
      throw new LockgateError(
        'input-name',
        `a phone's name has 1 to ${MAX_PHONE_NAME_CHARS} characters and no control characters`,
      );
    const nowMs = clock.now();
    if (expiresAtMs !== null && expiresAtMs <= nowMs)
      throw faultAt('input-expiry', '/expires_at', 'a phone credential must expire in the future, or never');
    const secret = makePhoneSecret();
    const secretHash = keys.hashSecret(secret);
    return { phone: await store.addPhone({ mac, name: trimmed, secretHash, expiresAtMs, nowMs }), secret };
  }

  /**
   * Revokes a phone's credential and closes its connections. @throws LockgateError `no-such-device`, `no-such-phone`
   */
  async revokePhone(mac: Mac, name: string): Promise<void> {
    const { store, clock } = this.#parts;
    await this.#held(mac, async () => {
      this.#closeSessionsOf(await store.revokePhone(mac, name.trim(), clock.now()));
    });
  }

  /**
   * Changes a lock's merchant, whether the lock is simulated, its name, or its labels. After a move the lock's history
   * stays with the former merchant, whose waiting commands are cancelled, and the new merchant starts with a lock
   * without history, name and labels.
   *
   * @throws LockgateError `no-such-device`, `no-such-merchant`, `input-change`, `input-name`, `input-label`
   */
  async change(mac: Mac, wanted: ChangeDevice): Promise<DeviceReading> {
    // Neither a connection nor the lock's state depends on a name or a label.
    if (wanted.merchant === undefined && wanted.simulated === undefined) return await this.#change(mac, wanted);
    return await this.#held(mac, () => this.#change(mac, wanted));
  }

  async #change(mac: Mac, { merchant, simulated, ...description }: ChangeDevice): Promise<DeviceReading> {
    const { store, commands, runClock } = this.#parts;
    const { device } = await this.#find(mac);
    const described = checkDescription(description);
    if (merchant === undefined && simulated === undefined && Object.keys(described).length === 0)
      throw new LockgateError(
        'input-change',
        'nothing to change was named: expected a merchant, simulated or not, a name or labels',
      );
    const isMove = merchant !== undefined && merchant !== device.merchantName;
    if (isMove) {
      await this.#checkMerchant(merchant);
      // Refusals up to now belong to the former merchant.
      await this.#parts.refusals.writeWaiting();
      await this.#resetState(device.id, mac, async (state) => {
        const atMs = runClock.now();
        const unnamed = { name: null, labels: NO_LABELS };
        await store.changeDevice({ mac, merchant, simulated, ...unnamed, ...described, state, cancelledAtMs: atMs });
        commands.cancelled(device.id, atMs);
      });
      this.#departed(device);
    } else {
      await store.changeDevice({ mac, simulated, ...described });
      if (merchant !== undefined || simulated !== undefined) this.#parts.sessions.end(device.id);
    }
    this.#changed(device.id);
    return await this.#find(mac);
  }

  /**
   * Takes a lock out of service. Its history stays until it is too old; its waiting commands are cancelled.
   *
   * @throws LockgateError `no-such-device`
   */
  async remove(mac: Mac): Promise<void> {
    await this.#held(mac, () => this.#remove(mac));
  }

  async #remove(mac: Mac): Promise<void> {
    const { store, clock, runClock, sessions, ingest, locks, commands } = this.#parts;
    const { device } = await this.#find(mac);
    // First, so that no new connection can create state for the lock after its state was dropped.
    await store.revokeCredentials(mac, clock.now());
    await this.#closeConnections(device.id);
    await ingest.runExclusive(device.id, async () => {
      const atMs = runClock.now();
      await store.removeDevice(mac, clock.now(), atMs);
      commands.cancelled(device.id, atMs);
      locks.replace(device.id, null);
      sessions.end(device.id);
    });
    this.#departed(device);
  }

  /** Changes the name or the labels of a merchant's lock. Both must be valid. */
  async describe(device: Device, description: Pick<DescribeLock, 'name' | 'labels'>): Promise<void> {
    const { id, merchantId, mac } = device;
    await this.#parts.store.describeLock({ merchantId, mac, ...description });
    this.#changed(id);
  }

  /**
   * Erases the history of a lock, in service or removed, from the store's files too. The lock stays: its secret stays
   * valid and new uplinks are stored. A delivery attempt under way may still arrive.
   *
   * @throws LockgateError `no-such-device`
   */
  async erase(mac: Mac): Promise<Erased> {
    return await this.#held(mac, () => this.#erase(mac));
  }

  async #erase(mac: Mac): Promise<Erased> {
    const { store, dispatcher, refusals } = this.#parts;
    const deviceId = await store.findDeviceId(mac);
    if (deviceId === null) throw noSuchDevice(mac);
    // Delivery results up to now must be stored first, so that they are erased and counted too.
    await dispatcher.flushOutcomes();
    await refusals.forget(mac);
    const erased = await this.#resetState(deviceId, mac, async (state) => {
      const counts = await store.eraseDevice(deviceId, state);
      dispatcher.forgetLock(deviceId);
      return counts;
    });
    this.#changed(deviceId);
    // Removes the erased bytes from the files.
    await store.scrub();
    return erased;
  }

  /**
   * Resumes judging a lock for which the judge failed (ingest/judging.ts). Its state is rebuilt from its log.
   *
   * @throws LockgateError `no-such-device`, `lock-is-judged`, `judge-failed`
   */
  async rejudge(mac: Mac): Promise<void> {
    const { device } = await this.#find(mac);
    await this.#held(mac, () => this.#parts.ingest.rejudge(device.id, mac));
  }

  /**
   * Marks the lock as reflashed at `atMs`, by the lock's clock (default: now): its flash was wiped. Uplinks made from
   * then on belong to a new life, in which boots count from 1 again (protocol.md §1), and the lock's state is rebuilt
   * in that order. Its connection stays open.
   *
   * @returns all marks of the lock, earliest first
   * @throws LockgateError `no-such-device`, `input-at`, `too-many-marks`, `judge-failed`
   */
  reflash(mac: Mac, atMs?: number): Promise<readonly number[]> {
    const run = (): Promise<readonly number[]> => this.#held(mac, () => this.#reflash(mac, atMs));
    const done = this.#reflashing.then(run, run);
    this.#reflashing = done.catch(() => undefined);
    return done;
  }

  async #reflash(mac: Mac, atMs?: number): Promise<readonly number[]> {
    const { ingest, runClock } = this.#parts;
    const { device } = await this.#find(mac);
    const markMs = atMs ?? runClock.now();
    checkMark(markMs, runClock.now());
    const marks = await this.#marksWith(device.id, mac, markMs);
    const { store, locks } = this.#parts;
    const replay = new LivesReplay({ store, judging: locks.judging }, device.id, mac, marks);
    // Most of the log is judged while pings continue. The uplinks that arrive meanwhile are judged exclusively.
    await replay.catchUp();
    // False: no connection is closed, so uplinks that wait meanwhile are not refused.
    await ingest.runExclusive(device.id, () => this.#storeMark(device.id, mac, markMs, marks, replay), false);
    // The new state's presence is announced, and what is overdue in it is found, with the lock's next event: this tick.
    ingest.recordEvent(device.id, mac, { type: 'tick', atMs: runClock.now() });
    return marks;
  }

  /** The lock's marks with a new one. @throws LockgateError `too-many-marks` */
  async #marksWith(deviceId: number, mac: Mac, markMs: number): Promise<readonly number[]> {
    const marks = await this.#parts.store.marks.read(deviceId);
    if (marks.length < MAX_REFLASH_MARKS || marks.includes(markMs)) return withMark(marks, markMs);
    throw new LockgateError(
      'too-many-marks',
      `${formatMac(mac)} was reflashed ${marks.length} times, which is the maximum`,
    );
  }

  /** Stores the mark together with the state that the replay has rebuilt. */
  async #storeMark(deviceId: number, mac: Mac, markMs: number, marks: readonly number[], replay: LivesReplay) {
    const { store, locks, events, runClock } = this.#parts;
    await replay.catchUp();
    const present = locks.find(deviceId)?.state;
    const state = present === undefined ? null : replay.replace(present);
    await store.marks.add({ deviceId, markMs, state: state === null ? null : JSON.stringify(state) });
    locks.mark(deviceId, marks);
    if (state !== null) locks.replace(deviceId, state);
    // The earliest uplink since which the boot counter still counts as gone back, in spite of the new mark.
    const backSinceMs = state === null ? undefined : bootBackSinceMs(state.belief);
    events?.emit('reflashed', { atMs: runClock.now(), mac, markMs, backSinceMs });
  }

  /** Runs a change while no other gateway serves the lock or its phones. @throws LockgateError `busy` */
  async #held<T>(mac: Mac, work: () => Promise<T>): Promise<T> {
    const { owner, store } = this.#parts;
    if (owner === undefined) return await work();
    const deviceId = await store.findDeviceId(mac);
    if (deviceId === null) throw noSuchDevice(mac);
    return await owner.hold(deviceId, work);
  }

  #changed(deviceId: number): void {
    this.#parts.events?.emit('locks-changed', { locks: [{ deviceId }], isEdit: true });
  }

  /** Announces that the lock's merchant lost it. */
  #departed({ id: deviceId, mac, merchantId }: Device): void {
    this.#parts.events?.emit('lock-departed', { deviceId, mac, merchantId });
  }

  async #find(mac: Mac): Promise<DeviceReading> {
    const reading = await this.#parts.store.findDevice(mac);
    if (reading === null) throw noSuchDevice(mac);
    return reading;
  }

  /** Checks that the merchant exists. Called before any connection is closed, so that a mistyped name closes none. */
  async #checkMerchant(name: string): Promise<void> {
    if ((await this.#parts.store.listMerchants()).some((merchant) => merchant.name === name)) return;
    throw new LockgateError('no-such-merchant', `there is no merchant named ${JSON.stringify(name)}`);
  }

  /** Runs `work` with the lock's reset state, which still says which uplink keys were used. */
  async #resetState<T>(deviceId: number, mac: Mac, work: (state: string | null) => Promise<T>): Promise<T> {
    const { sessions, ingest, locks, runClock } = this.#parts;
    await this.#closeConnections(deviceId);
    // Takes the result of `work` out of `runExclusive`, which returns nothing.
    const done: T[] = [];
    await ingest.runExclusive(deviceId, async () => {
      const present = locks.find(deviceId)?.state;
      const state = present === undefined ? null : resetState(present, mac, runClock.now());
      done.push(await work(state === null ? null : JSON.stringify(state)));
      locks.replace(deviceId, state);
      // Connections opened meanwhile were accepted under the old state.
      sessions.end(deviceId);
    });
    return done[0] as T;
  }

  /** Closes the lock's connections, and waits until the ingest has been notified of it. */
  async #closeConnections(deviceId: number): Promise<void> {
    const { sessions, clock } = this.#parts;
    sessions.end(deviceId);
    await new Promise<void>((resolve) => {
      const timeout = clock.after(SESSION_CLOSE_TIMEOUT, resolve);
      void sessions.whenNone(deviceId).then(() => {
        timeout.cancel();
        resolve();
      });
    });
  }

  #closeSessionsOf({ deviceId, credentialIds }: ReplacedCredentials): void {
    const isRevoked = ({ credentialId }: Sender): boolean => credentialIds.includes(credentialId);
    this.#parts.sessions.end(deviceId, ({ sender }) => isRevoked(sender));
  }
}

/** @throws LockgateError `input-at` */
function checkMark(markMs: number, nowMs: number): void {
  if (markMs >= PLAUSIBLE_FROM_MS && markMs <= nowMs) return;
  throw new LockgateError(
    'input-at',
    `at is ${formatDate(markMs)}: expected a time from 2020 on that is not in the future`,
  );
}

function withMark(marks: readonly number[], markMs: number): readonly number[] {
  return [...new Set([...marks, markMs])].sort((a, b) => a - b);
}
