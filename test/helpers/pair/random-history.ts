/**
 * A random history of some locks, which runs through the gateway's ingest and store without a broker. It consists of
 * uplinks in order, late, repeated and conflicting; phones, connections, commands and answers; the passing of time;
 * failing commits; and locks that are moved to another merchant, erased, removed and added again. A commit takes some
 * turns of the event loop, in which the gateway's judge checks more events.
 *
 * The gateway has a belief about each lock: the state that it concludes from the lock's messages. A test can compare
 * the beliefs of the running gateway with those of a gateway that starts on the stored data. The history makes this
 * comparison after each commit too.
 */
import { Prng } from '../../../firmware-sim/prng.js';
import { GatewayEvents } from '../../../gateway/events.js';
import { type DeviceEvent, Ingest } from '../../../gateway/ingest/ingest.js';
import type { Sender } from '../../../gateway/ingest/pending-uplink.js';
import { type DeviceState, resetState } from '../../../gateway/locks/device-state.js';
import { startListening } from '../../../gateway/locks/listening.js';
import { type KnownLock, Locks } from '../../../gateway/locks/locks.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import type { CommitResult } from '../../../gateway/store/contract/log/commit-result.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, Days, Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { NO_COMMANDS } from '../commands/no-commands.js';
import { withOverrides } from '../durability/sabotage.js';
import { testBytes, testMac } from '../gateway/test-gateway.js';
import { lockSender } from '../mqtt/lock-sender.js';
import { openStore } from '../store/new-store.js';

const LOCK_COUNT = 4;
/** A lock may repeat this many of its last uplinks. */
const MAX_REPEATABLE = 8;
const MERCHANTS = ['Amber', 'Basalt'];
const START_MS = Date.UTC(2026, 10, 20);

/** One of the locks, with its true state. */
interface HistoryLock {
  readonly mac: Mac;
  /** The lock's identity, under which the gateway ingests its uplinks. */
  sender: Sender;
  /** The identity of a phone that sends uplinks for the lock. */
  phone: Sender;
  /** The index in MERCHANTS of the lock's merchant. */
  ownerIndex: number;
  /** Whether the gateway has the lock: false after it was removed. */
  isRegistered: boolean;
  boot: number;
  sequence: number;
  /** The bytes of the lock's last uplinks. */
  readonly sent: Buffer[];
  /** The ids of commands that the lock has not acknowledged. */
  readonly commands: number[];
}

/** The gateway's belief about each lock, by the lock's MAC. */
export type States = Readonly<Record<string, unknown>>;

/** One history. The same seed gives the same events. */
export class RandomHistory {
  readonly #random: Prng;
  readonly #folder: string;
  readonly #clock = new ManualClock(START_MS);
  readonly #locks: HistoryLock[] = [];
  #store!: Store;
  /** The part of the running gateway that stores and judges events. */
  #ingest!: Ingest;
  /** The beliefs of the running gateway. */
  #known!: Locks;
  #failsNextCommit = false;
  /** The number of acknowledged uplinks. */
  acked = 0;
  /** The number of states written with commits. */
  statesWritten = 0;
  /** The number of commits during which events for the next commit were judged. */
  overlapped = 0;
  /** Commits after which a starting gateway would have another belief, each with the lock. */
  readonly mismatches: string[] = [];
  #commits = 0;

  private constructor(seed: number, folder: string) {
    this.#random = new Prng(`history ${seed}`);
    this.#folder = folder;
  }

  static async begin(seed: number, folder: string): Promise<RandomHistory> {
    const history = new RandomHistory(seed, folder);
    history.#store = await openStore(folder);
    for (const merchant of MERCHANTS) await history.#store.addMerchant(merchant, START_MS);
    for (let index = 0; index < LOCK_COUNT; index++) await history.#add(testMac(index + 1), 0);
    await history.#startIngest();
    return history;
  }

  /** Registers a lock and a phone for it. `owner` is the index of its merchant. */
  async #add(mac: Mac, owner: number): Promise<void> {
    const merchant = MERCHANTS[owner] as string;
    const nowMs = START_MS;
    await this.#store.addDevice({ mac, merchant, simulated: false, secretHash: Buffer.from(`${mac}`), nowMs });
    await this.#store.addPhone({ mac, name: 'Ada', secretHash: Buffer.from('phone'), expiresAtMs: null, nowMs });
    const sender = await lockSender(this.#store, mac);
    const [phone] = await this.#store.listPhones(mac);
    const phoneSender: Sender = { ...sender, credentialId: phone?.credentialId ?? 0, source: 'phone' };
    const existing = this.#locks.find((lock) => lock.mac === mac);
    if (existing !== undefined)
      Object.assign(existing, { sender, phone: phoneSender, ownerIndex: owner, isRegistered: true });
    else
      this.#locks.push({
        mac,
        sender,
        phone: phoneSender,
        ownerIndex: owner,
        isRegistered: true,
        boot: 1,
        sequence: 0,
        sent: [],
        commands: [],
      });
  }

  /** Starts the gateway's ingest on the store. */
  async #startIngest(): Promise<void> {
    const clock = this.#clock;
    const store = withOverrides(this.#store, {
      append: async (commit: Commit) => {
        if (this.#failsNextCommit) {
          this.#failsNextCommit = false;
          await this.#waitTurns(3);
          throw new StoreFailure('append', new Error('no room'));
        }
        const result = await this.#append(commit);
        this.statesWritten += commit.states.size;
        return result;
      },
    });
    this.#known = new Locks(store, clock, (due) => {
      for (const { deviceId, mac } of due) this.#ingest.recordEvent(deviceId, mac, { type: 'tick', atMs: clock.now() });
    });
    const events = new GatewayEvents();
    this.#ingest = new Ingest({
      store,
      locks: this.#known,
      clock,
      events,
      onStored: () => undefined,
      commands: NO_COMMANDS,
    });
    await startListening({ locks: this.#known, ingest: this.#ingest, clock, lastRanMs: null });
    await this.#settle();
  }

  /**
   * Stores a commit, and checks that a gateway that starts now has the beliefs that the running gateway had when it
   * made the commit.
   */
  async #append(commit: Commit): Promise<CommitResult> {
    const number = ++this.#commits;
    const believed = this.#statesOf(this.#known, () => true);
    await this.#waitTurns(2);
    const result = await this.#store.append(commit);
    await this.#waitTurns(2);
    const after = await this.restarted();
    for (const [mac, state] of Object.entries(after))
      if (JSON.stringify(state) !== JSON.stringify(believed[mac]))
        this.mismatches.push(`commit ${number}, lock ${mac}`);
    if (JSON.stringify(this.#statesOf(this.#known, () => true)) !== JSON.stringify(believed)) this.overlapped += 1;
    return result;
  }

  /** Waits a random number of turns of the event loop. */
  async #waitTurns(maxTurns: number): Promise<void> {
    for (let turn = this.#random.integer(0, maxTurns); turn > 0; turn--)
      await new Promise<void>((resolve) => afterThisTurn(resolve));
  }

  /** Applies some random events and waits until they are stored. Some of the commits fail. */
  async step(): Promise<void> {
    const count = this.#random.integer(1, 12);
    this.#failsNextCommit = this.#random.chance(0.08);
    for (let index = 0; index < count; index++) {
      await this.#doRandomEvent(this.#random.pick(this.#locks));
      if (this.#random.chance(0.3)) await this.#waitTurns(2);
    }
    await this.#settle();
    this.#failsNextCommit = false;
  }

  /** Stops as after a kill -9 just after a commit, and starts again. */
  async kill(): Promise<void> {
    this.#known.stop();
    await this.#store.close();
    this.#store = await openStore(this.#folder);
    await this.#startIngest();
  }

  async end(): Promise<void> {
    this.#known.stop();
    await this.#ingest.stop();
    await this.#store.close();
  }

  /** The current beliefs. */
  believed(): States {
    return this.#statesOf(this.#known);
  }

  /** The beliefs of a gateway that starts now on the stored data. */
  async restarted(): Promise<States> {
    const locks = new Locks(this.#store, this.#clock, () => undefined);
    const rebuilt = await locks.load();
    locks.stop();
    if (rebuilt.length > 0) throw new Error(`a state could not be read: ${rebuilt[0]?.why}`);
    return this.#statesOf(locks);
  }

  /** Waits until all events are stored. Advances the clock, since a failed commit is retried after a delay. */
  async #settle(): Promise<void> {
    let isIdle = false;
    const idle = this.#ingest.idle().then(() => {
      isIdle = true;
    });
    while (!isIdle) {
      await new Promise<void>((resolve) => afterThisTurn(resolve));
      const next = this.#clock.nextDueMs;
      if (!isIdle && next !== undefined && next <= this.#clock.now() + Seconds(1)) this.#clock.advance(Seconds(1));
    }
    await idle;
  }

  async #doRandomEvent(lock: HistoryLock): Promise<void> {
    const random = this.#random;
    if (!lock.isRegistered) {
      if (random.chance(0.2)) await this.#add(lock.mac, random.integer(0, 1));
      return;
    }
    const drawnFraction = random.fraction();
    if (drawnFraction < 0.78) this.#sendUplink(lock);
    else if (drawnFraction < 0.8) this.#repeatUplink(lock);
    // Uplinks of phones have boot 900, which no lock reaches.
    else if (drawnFraction < 0.82) this.#ingestUplink(lock.phone, this.#bytes(900, random.integer(1, 40), 'PHONE'));
    else if (drawnFraction < 0.87) this.#connectOrDisconnect(lock);
    else if (drawnFraction < 0.885) await this.#sendCommand(lock);
    // A single byte is no uplink, so the gateway must reject it.
    else if (drawnFraction < 0.89) this.#ingestUplink(lock.sender, Buffer.from([1]));
    // Time passes.
    else if (drawnFraction < 0.99)
      this.#clock.advance(
        random.chance(0.7) ? random.integer(5, 5000) : random.pick([Seconds(40), Minutes(7), Hours(3), Hours(26)]),
      );
    else await this.#changeAccount(lock);
  }

  /** Gives the gateway an uplink, and counts it if it is acknowledged. */
  #ingestUplink(sender: Sender, bytes: Buffer): void {
    this.#ingest.take(sender, bytes, (error) => {
      if (error === undefined) this.acked += 1;
    });
  }

  /**
   * Mostly ingests the next uplink. Sometimes skips a sequence number, sends the number before the last one, which was
   * skipped or makes a conflict with what was sent under it, or boots the lock first.
   */
  #sendUplink(lock: HistoryLock): void {
    const random = this.#random;
    if (random.chance(0.02)) Object.assign(lock, { boot: lock.boot + 1, sequence: 0 });
    let sequence = lock.sequence + (random.chance(0.05) ? 2 : 1);
    if (random.chance(0.05)) sequence = Math.max(1, lock.sequence - 1);
    lock.sequence = Math.max(lock.sequence, sequence);
    // The judge has no findings about most pings, which are REASON_UNLOCKED_PING.
    const reasons = ['REASON_GPS_PING', 'REASON_PERIOD_TRACKING', 'REASON_THEFT'] as const;
    const reason = random.chance(0.9) ? 'REASON_UNLOCKED_PING' : random.pick(reasons);
    const command = lock.commands.shift();
    const isAck = command !== undefined && random.chance(0.5);
    const bytes = isAck
      ? testBytes(sequence, {
          ...this.#envelope(lock.boot),
          body: { kind: 'ack', commandId: command, result: 'ok', detail: '', highWindow: null },
        })
      : this.#bytes(lock.boot, sequence, reason);
    lock.sent.push(bytes);
    if (lock.sent.length > MAX_REPEATABLE) lock.sent.shift();
    this.#ingestUplink(lock.sender, bytes);
  }

  /** The lock repeats one of its last uplinks. */
  #repeatUplink(lock: HistoryLock): void {
    if (lock.sent.length > 0) this.#ingestUplink(lock.sender, this.#random.pick(lock.sent));
  }

  /** The members that every uplink has, with a rare change of the settings. */
  #envelope(boot: number): Partial<Uplink> {
    const random = this.#random;
    const mode = random.chance(0.02) ? 'HIGH' : 'MID';
    const power = { mode, rideTracking: true, airplane: random.chance(0.01), recovery: random.chance(0.01) } as const;
    const timeMs = this.#clock.now() - random.pick([0, Seconds(3), Minutes(10)]);
    return { boot, timeMs, power, dropped: random.chance(0.01) ? 1 : 0 };
  }

  /** The bytes of a GPS ping, with a rare change of the lock state or the battery. */
  #bytes(boot: number, sequence: number, reason: Ping['reason']): Buffer {
    const random = this.#random;
    return testBytes(sequence, {
      ...this.#envelope(boot),
      body: {
        kind: 'gps',
        reason,
        lockState: random.chance(0.02) ? 'locked' : 'unlocked',
        batteryPercent: random.chance(0.02) ? 4 : 60,
        ebikeVolts: null,
        tetherState: 'detached',
        position: { latitudeDegrees: random.between(40, 41), longitudeDegrees: 4, uncertaintyMeters: 8 },
        speedMetersPerSecond: 3,
        directionDegrees: 90,
      },
    });
  }

  /** The lock or a phone connects or disconnects. */
  #connectOrDisconnect({ sender: { deviceId, mac } }: HistoryLock): void {
    const atMs = this.#clock.now();
    const source = this.#random.chance(0.8) ? 'lock' : 'phone';
    const cause = this.#random.pick(['closed', 'dropped', 'keepalive'] as const);
    const event: DeviceEvent = this.#random.chance(0.8)
      ? { type: 'connect', source, atMs }
      : { type: 'disconnect', source, cause, atMs };
    this.#ingest.recordEvent(deviceId, mac, event);
  }

  /** The gateway sends a command, which the lock may acknowledge later. */
  async #sendCommand(lock: HistoryLock): Promise<void> {
    const { deviceId, merchantId, mac } = lock.sender;
    const command = { type: 'set-power', airplane: this.#random.chance(0.5) } as const;
    const createdAtMs = this.#clock.now();
    const times = { createdAtMs, notBeforeMs: null, expiresAtMs: createdAtMs + Days(1) };
    const [added] = await this.#store.commands.add([{ deviceId, merchantId, command, ...times, askedBy: 'the test' }]);
    const id = added?.id ?? 0;
    lock.commands.push(id);
    this.#ingest.recordEvent(deviceId, mac, { type: 'command', id, command, atMs: this.#clock.now() });
  }

  /** Moves, erases or removes a lock between two commits, as device-accounts.ts does. */
  async #changeAccount(lock: HistoryLock): Promise<void> {
    const { deviceId } = lock.sender;
    const { mac } = lock;
    const kind = this.#random.pick(['move', 'erase', 'remove']);
    const done = this.#ingest.runExclusive(deviceId, async () => {
      const before = this.#known.find(deviceId)?.state;
      const state = before === undefined || kind === 'remove' ? null : resetState(before, mac, this.#clock.now());
      const json = state === null ? null : JSON.stringify(state);
      if (kind === 'move')
        await this.#store.changeDevice({ mac, merchant: MERCHANTS[1 - lock.ownerIndex], state: json });
      else if (kind === 'erase') await this.#store.eraseDevice(deviceId, json);
      else await this.#store.removeDevice(mac, this.#clock.now());
      this.#known.replace(deviceId, state);
    });
    await this.#settle();
    await done;
    if (kind === 'remove') lock.isRegistered = false;
    if (kind !== 'move') return;
    lock.ownerIndex = 1 - lock.ownerIndex;
    const { merchantId } = await lockSender(this.#store, mac);
    lock.sender = { ...lock.sender, merchantId };
    lock.phone = { ...lock.phone, merchantId };
  }

  /** The states of registered locks, by default of those with stored data, converted through JSON as in the store. */
  #statesOf(locks: Locks, isWanted = ({ isStored }: KnownLock): boolean => isStored): States {
    const registered = new Set(this.#locks.filter(({ isRegistered }) => isRegistered).map(({ mac }) => mac));
    const wanted = [...locks.all()].filter((lock) => isWanted(lock) && registered.has(lock.mac));
    const states = wanted.map(({ mac, state }): [string, DeviceState] => [mac, state]);
    return JSON.parse(JSON.stringify(Object.fromEntries(states.sort()))) as States;
  }
}
