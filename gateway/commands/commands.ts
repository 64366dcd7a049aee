/**
 * Accepts, finds and cancels commands for operators (protocol.md §1 and §2, interfaces.md §4). An accepted command is
 * durable; command-dispatcher.ts sends it.
 */
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { RunStep } from '../clocks/clock-guard.js';
import type { Acknowledgement, CommandListener } from '../ingest/ingest.js';
import type { KnownLock } from '../locks/locks.js';
import type { Session } from '../mqtt/sessions.js';
import type { CommandRecord, IdempotentCall, NewCommand } from '../store/contract/command-record.js';
import type { LockAccount } from '../store/contract/devices/device.js';
import { merchantClosed, noSuchDevice, noSuchMerchant } from '../store/contract/errors.js';
import type { Store } from '../store/contract/store.js';
import { CommandDispatcher, type DispatcherParts } from './command-dispatcher.js';
import type { CommandOrder, CommandRequest, CommandTargets } from './command-input.js';
import { MAX_WAITING_PER_LOCK } from './command-terms.js';
import { type Wait, waitOf } from './command-wait.js';

/** How many locks' commands one read counts. */
const LOCKS_PER_READ = 1_000;

export interface CommandsParts extends DispatcherParts {
  readonly store: Store;
}

/** A lock that a command is for. */
type Target = Pick<LockAccount, 'deviceId' | 'merchantId' | 'mac'>;

/** A merchant's call with an idempotency key, and the answer to be stored for a repeat of the call. */
export interface StoredOnce {
  readonly call: IdempotentCall;
  readonly answerOf: (record: CommandRecord) => string;
}

/** The result of a request for one lock. */
export type CommandOutcome =
  | { readonly mac: Mac; readonly record: CommandRecord }
  | { readonly mac: Mac; readonly refusal: LockgateError };

export class Commands implements CommandListener {
  readonly #parts: CommandsParts;
  readonly #dispatcher: CommandDispatcher;
  /** Counts the calls of {@link cancelled}, each of which may have cancelled a command that is still being stored. */
  #cancelCount = 0;

  constructor(parts: CommandsParts) {
    this.#parts = parts;
    this.#dispatcher = new CommandDispatcher(parts);
  }

  /**
   * Loads the unfinished commands of the store. Must be called after the locks are loaded, before any other method. A
   * gateway that shares its store calls {@link adopt} instead, for the locks that it serves.
   */
  async load(): Promise<void> {
    await this.#dispatcher.load();
  }

  /**
   * Reads the unfinished commands of locks that this gateway has claimed, for {@link adopt}.
   *
   * @throws StoreFailure
   */
  async readStored(deviceIds: readonly number[]): Promise<readonly CommandRecord[]> {
    return await this.#parts.store.commands.readUnfinished(deviceIds);
  }

  /** Takes the commands of locks that this gateway serves from now on, and may have taken some of them already. */
  adopt(records: readonly CommandRecord[]): void {
    this.#dispatcher.add(records);
  }

  /** Forgets a lock's commands, which another gateway sends from now on. */
  disown(deviceId: number): void {
    this.#dispatcher.disown(deviceId);
  }

  /**
   * Takes commands that other gateways stored into the queues of the locks that this one serves.
   *
   * @param which the commands of these locks; or those that were created at this time or later, by the run's clock
   * @throws StoreFailure
   */
  async takeNew(which: { readonly deviceIds: readonly number[] } | { readonly sinceMs: number }): Promise<void> {
    const { commands } = this.#parts.store;
    const records =
      'sinceMs' in which
        ? await commands.readUnfinished(undefined, which.sinceMs)
        : await commands.readUnfinished(which.deviceIds.filter((deviceId) => this.#serves(deviceId)));
    this.#dispatcher.add(records.filter(({ deviceId }) => this.#serves(deviceId)));
  }

  /** Whether this gateway sends the lock's commands. */
  #serves(deviceId: number): boolean {
    return this.#parts.store.ownership.locks.owns(deviceId, 'lock');
  }

  /** Stops sending. Answers of locks are still stored. */
  async stop(): Promise<void> {
    await this.#dispatcher.stop();
  }

  /**
   * Queues a command for each of its locks, and sends it to those that are reachable. All queued commands are on disk
   * when this resolves. If the queue of a lock is full, the command is refused for that lock only.
   *
   * @throws LockgateError `no-such-device`, `no-such-merchant`, `merchant-closed`; `count-differs` if the fleet is not
   * as large as expected; `airplane-unconfirmed`; `commands-full` if the queues of all locks are full
   */
  async send(request: CommandRequest): Promise<CommandOutcome[]> {
    const devices = await this.#devices(request.targets);
    checkCount(request, devices.length);
    checkAirplane(request);
    const free = await this.#reserve(devices);
    if (free.length === 0 && devices[0] !== undefined) throw queueFull(devices[0].mac);
    const records = await this.#store(request, free, (commands) => this.#parts.store.commands.add(commands));
    this.#enqueue(records);
    return devices.map(({ deviceId, mac }) => {
      const record = records.get(deviceId);
      return record === undefined ? { mac, refusal: queueFull(mac) } : { mac, record };
    });
  }

  /**
   * Queues a merchant's command for its lock, as {@link send} does. With `once` the answer to the merchant's call is
   * stored with the command.
   *
   * @throws LockgateError `no-such-device`, `airplane-unconfirmed`, `commands-full`
   */
  async sendTo(target: Target, request: CommandOrder, once?: StoredOnce): Promise<CommandRecord> {
    checkAirplane(request);
    const targets = await this.#reserve([target]);
    if (targets.length === 0) throw queueFull(target.mac);
    const { commands } = this.#parts.store;
    // There is one target, and so one command and one record.
    const add = async ([command]: readonly NewCommand[]): Promise<CommandRecord[]> => {
      if (command === undefined) return [];
      return once === undefined
        ? await commands.add([command])
        : [await commands.addOnce(command, once.call, once.answerOf)];
    };
    const records = await this.#store(request, targets, add);
    this.#enqueue(records);
    return records.get(target.deviceId) as CommandRecord;
  }

  /**
   * Reserves a place for a command in each lock's queue, and returns the locks that have one. For a lock that another
   * gateway serves, the stored commands are counted: requests at the same time may exceed the limit by a few.
   */
  async #reserve(devices: readonly Target[]): Promise<Target[]> {
    const elsewhere = devices.filter(({ deviceId }) => !this.#serves(deviceId)).map(({ deviceId }) => deviceId);
    const counts = new Map<number, number>();
    for (let start = 0; start < elsewhere.length; start += LOCKS_PER_READ) {
      const slice = elsewhere.slice(start, start + LOCKS_PER_READ);
      for (const { deviceId } of await this.#parts.store.commands.readUnfinished(slice))
        counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
    }
    return devices.filter(
      ({ deviceId, mac }) =>
        (counts.get(deviceId) ?? 0) < MAX_WAITING_PER_LOCK && this.#dispatcher.reserve(deviceId, mac),
    );
  }

  /** Sends stored commands as soon as their locks are reachable, or has the gateways that serve the locks do so. */
  #enqueue(records: ReadonlyMap<number, CommandRecord>): void {
    const { store, events, clock } = this.#parts;
    const deviceIds: number[] = [];
    for (const record of records.values()) {
      const { deviceId, mac, state } = record;
      // A command that is not queued any more was cancelled while it was being stored.
      const isHere = this.#serves(deviceId);
      if (state === 'queued' && isHere) this.#dispatcher.enqueue(record);
      else this.#dispatcher.release(deviceId);
      if (isHere) continue;
      deviceIds.push(deviceId);
      events.emit('command', { atMs: clock.now(), mac, record });
    }
    if (deviceIds.length > 0) store.ownership.signals.send({ type: 'commands', deviceIds });
  }

  /** Stores the command for these locks, whose queues have a reserved place. Returns the records by device id. */
  async #store(
    request: CommandOrder,
    devices: readonly Target[],
    add: (commands: readonly NewCommand[]) => Promise<CommandRecord[]>,
  ): Promise<Map<number, CommandRecord>> {
    const { command, notBeforeMs, expiresAtMs, askedBy } = request;
    const { clock } = this.#parts;
    const createdAtMs = clock.now();
    const newCommands = devices.map(({ deviceId, merchantId }): NewCommand => {
      return { deviceId, merchantId, command, createdAtMs, notBeforeMs, expiresAtMs, askedBy };
    });
    let cancelCount = this.#cancelCount;
    try {
      let records = await add(newCommands);
      // A cancellation during the write may have cancelled some of the commands: they are read again.
      while (cancelCount !== this.#cancelCount) {
        cancelCount = this.#cancelCount;
        records = await Promise.all(records.map((record) => this.#unlessCancelled(record)));
      }
      return new Map(records.map((record) => [record.deviceId, record]));
    } catch (error) {
      for (const { deviceId } of devices) this.#dispatcher.release(deviceId);
      throw error;
    }
  }

  /**
   * The command as it was stored, or as it was cancelled since. If it was sent meanwhile, because this gateway has
   * claimed its lock, it is still to be reported as queued.
   */
  async #unlessCancelled(record: CommandRecord): Promise<CommandRecord> {
    const present = await this.find(record.id);
    return present.state === 'cancelled' ? present : record;
  }

  async #devices(targets: CommandTargets): Promise<Target[]> {
    if ('merchant' in targets) return await this.fleetOf(targets.merchant);
    const { store } = this.#parts;
    const devices: Target[] = [];
    for (const mac of targets.macs) {
      const account = await store.findLock(mac);
      if (account === null) throw noSuchDevice(mac);
      if (account.isMerchantClosed)
        throw new LockgateError('merchant-closed', `the merchant of ${formatMac(mac)} is closed: reopen it first`);
      devices.push(account);
    }
    return devices;
  }

  /** A merchant's locks. @throws LockgateError `no-such-merchant`, `merchant-closed` */
  async fleetOf(merchant: string): Promise<Target[]> {
    const { store } = this.#parts;
    const found = (await store.listMerchants()).find(({ name }) => name === merchant);
    if (found === undefined) throw noSuchMerchant(merchant);
    if (found.closedAtMs !== null) throw merchantClosed(merchant);
    const devices = (await store.listDevices()).map(({ device }) => device);
    const fleet = devices.filter(({ merchantName }) => merchantName === merchant);
    return fleet.map(({ id: deviceId, merchantId, mac }) => ({ deviceId, merchantId, mac }));
  }

  /**
   * Cancels a command that has not been sent.
   *
   * @throws LockgateError `no-such-command`; `command-sent` if it has been sent, or is finished
   */
  async cancel(id: number): Promise<CommandRecord> {
    const { store, clock } = this.#parts;
    const record = await this.find(id);
    // If another gateway serves the lock, or has only just stored the command, the store alone decides: it refuses to
    // send a command that is cancelled.
    const isElsewhere = !store.ownership.locks.isSole && !this.#dispatcher.has(record);
    const withdrawn = isElsewhere ? undefined : this.#dispatcher.withdraw(id, record.deviceId);
    if (!isElsewhere && withdrawn === undefined) throw commandSent(await this.find(id));
    const atMs = clock.now();
    let isCancelled: boolean;
    try {
      isCancelled = await store.commands.cancel(id, atMs);
    } catch (error) {
      // Another gateway may serve the lock by now, or this one may have read the command again, with new ones.
      if (withdrawn !== undefined && this.#serves(withdrawn.deviceId)) this.#dispatcher.add([withdrawn]);
      throw error;
    }
    const cancelled = await this.find(id);
    // Another gateway may have cancelled it, or its lock was removed meanwhile.
    if (!isCancelled) throw commandSent(cancelled);
    this.#dispatcher.ended(cancelled);
    return cancelled;
  }

  /**
   * Drops a lock's unanswered commands, sent ones too, after they were cancelled in the store: the lock leaves its
   * merchant, and must not open for the next one. Must be called as soon as the cancellation is committed.
   */
  cancelled(deviceId: number, atMs: number): void {
    this.#cancelCount += 1;
    this.#dispatcher.drop(deviceId, atMs);
  }

  /** @throws LockgateError `no-such-command` */
  async find(id: number): Promise<CommandRecord> {
    const record = await this.#parts.store.commands.find(id);
    if (record === null) throw new LockgateError('no-such-command', `there is no command ${id}`);
    return record;
  }

  /** What an unfinished command waits for; null for a finished one. */
  waitOf(record: CommandRecord): Wait | null {
    const { findLock, sessionOf, clock } = this.#parts;
    const queue = this.#dispatcher.queueOf(record.deviceId);
    const belief = findLock(record.deviceId)?.state.belief;
    const session = sessionOf(record.deviceId);
    const wait = waitOf({ record, queue, belief, session, nowMs: clock.now(), isHeld: this.#dispatcher.isHeld });
    const isElsewhere = wait?.for === 'connection' && !this.#serves(record.deviceId);
    return isElsewhere ? { for: 'connection', text: 'lock not connected to this gateway' } : wait;
  }

  /** Must be called when the machine's clock becomes trusted or doubted: held commands may be sent, or have expired. */
  clockTurned(): void {
    this.#dispatcher.examineAll();
  }

  /** Must be called when the run's clock (wall-clock time, except in a sped-up simulation) has made a step. */
  clockStepped(step: RunStep): void {
    this.#dispatcher.stepped(step);
  }

  /** Must be called when a lock has subscribed to the topic `down`: it can receive commands from now on. */
  subscribed(session: Session): void {
    this.#dispatcher.subscribed(session);
  }

  /** Must be called when the lock's state may have changed. */
  judged(lock: KnownLock): void {
    this.#dispatcher.judged(lock);
  }

  /**
   * Must be called when a lock's answer to a command has been stored.
   *
   * @param isRefused whether it is not the first answer to a command that was sent to this lock
   */
  acknowledged(acknowledgement: Acknowledgement, isRefused: boolean): void {
    if (!isRefused && this.#dispatcher.acknowledged(acknowledgement)) return;
    // The answer is stored. If the command can't be read now, only the report is lost.
    this.#reportStray(acknowledgement).catch(() => undefined);
  }

  /** Reports an answer that is late, repeated, or to no command of this lock. */
  async #reportStray({ deviceId, mac, commandId, state, atMs }: Acknowledgement): Promise<void> {
    const { store, events } = this.#parts;
    const record = await store.commands.find(commandId);
    if (record !== null && record.deviceId === deviceId && record.sentCount > 0) {
      // The store took this answer as the end of the command, which the dispatcher had dropped already.
      if (record.state === state && record.finishedAtMs === atMs) this.#dispatcher.ended(record);
      return;
    }
    const isForeign = record !== null && record.deviceId !== deviceId;
    const why =
      record === null ? 'there is no such command' : isForeign ? 'it is for another lock' : 'it was never sent';
    events.emit('stray-ack', { atMs, mac, commandId, why });
  }
}

function commandSent({ id, state }: CommandRecord): LockgateError {
  const why = state === 'queued' || state === 'sent' ? 'it has been sent to the lock' : `it is ${state}`;
  return new LockgateError('command-sent', `command ${id} can't be cancelled: ${why}`);
}

function queueFull(mac: Mac): LockgateError {
  return new LockgateError(
    'commands-full',
    `${MAX_WAITING_PER_LOCK} commands wait for ${formatMac(mac)} already: let some finish, or cancel some`,
  );
}

/** A command for a whole fleet must state the number of locks, so that nobody opens a fleet by mistake. */
function checkCount({ targets, expectedCount }: CommandRequest, count: number): void {
  if (expectedCount === count) return;
  if (!('merchant' in targets) && expectedCount === undefined) return;
  const given = expectedCount === undefined ? 'no expected_count was given' : `expected_count is ${expectedCount}`;
  const fleet = 'merchant' in targets ? `${targets.merchant} has ${count} locks` : `${count} locks are named`;
  throw new LockgateError('count-differs', `${fleet}, and ${given}: set expected_count to ${count} if all are meant`);
}

/** The caller must confirm that airplane mode cuts the lock off (protocol.md §2). */
function checkAirplane({ command, confirmsAirplane }: CommandOrder): void {
  if (command.type !== 'set-power' || command.airplane !== true || confirmsAirplane) return;
  throw new LockgateError(
    'airplane-unconfirmed',
    'airplane mode cuts a lock off: it acknowledges, reports that it closes its connection, and from then on nothing ' +
      'reaches it. No command can switch airplane mode off again; this must be done at the lock. ' +
      'Confirm with confirm_airplane',
  );
}
