/**
 * Sends commands, to each lock one at a time, when the lock is reachable and its state takes commands. Sends a command
 * again under the same id, until the lock answers or the command expires (protocol.md §1 and §2, Commands).
 *
 * A command passes through the ingest's queue first: the sending is judged (checked against the protocol's rules),
 * logged and on disk before the bytes are written. So the judge sees a command before its answer, and a command that
 * may have reached a lock never counts as unsent.
 *
 * An unfinished command is in one of these states here:
 *
 * - *queued* or *sent*: it is in its lock's queue (command-queue.ts), which is examined whenever something changes for
 *   the lock, and when time alone changes something.
 * - *leaving*: it is in the ingest's queue: at most one command of each lock, and a limited number in all. The
 *   queues of further locks wait for their turn.
 * - *withdrawn*: a cancel takes a queued command out while the cancellation is being stored; a failed cancel puts the
 *   command back.
 * - *expiring*: its time has passed. It is not sent any more, and is dropped once the expiry is stored.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { Deadlines } from '../../proto/deadlines.js';
import { NEVER, rowOfState } from '../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { encodeDownlink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { RunStep } from '../clocks/clock-guard.js';
import type { ClockDoubt } from '../clocks/recorded-clocks.js';
import type { GatewayEvents } from '../events.js';
import type { Acknowledgement, Announce, DeviceEvent } from '../ingest/ingest.js';
import type { KnownLock } from '../locks/locks.js';
import type { Session } from '../mqtt/sessions.js';
import type { CommandRecord } from '../store/contract/command-record.js';
import type { Store } from '../store/contract/store.js';
import { CommandEnds } from './command-ends.js';
import {
  type CommandQueue,
  type IsHeld,
  newQueue,
  nextChangeMs,
  nextCommand,
  type OpenCommand,
  sendableAtMs,
} from './command-queue.js';
import { FIRST_UPLINK_WAIT, MAX_LEAVING_COMMANDS, MAX_WAITING_PER_LOCK } from './command-terms.js';

/** The wait before the gateway tries again to store an expiry. */
const EXPIRY_RETRY_DELAY = Seconds(1);

export interface DispatcherParts {
  readonly store: Pick<Store, 'commands'>;
  readonly events: GatewayEvents;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  /** Wall-clock time. */
  readonly wallClock: Clock;
  /** Says which expiries are doubtful, because the machine's clock is not trusted; undefined if none ever is. */
  readonly doubt?: Pick<ClockDoubt, 'aheadMs' | 'isExpiryDoubtful'> | undefined;
  readonly findLock: (deviceId: number) => KnownLock | undefined;
  /** The lock's own connection; undefined while there is none. */
  readonly sessionOf: (deviceId: number) => Session | undefined;
  /**
   * Has the event judged and stored, and then calls `announce`, with true if the store refused the sending of a
   * command: no bytes of it may be sent then.
   */
  readonly recordEvent: (deviceId: number, mac: Mac, event: DeviceEvent, announce: Announce) => void;
}

export class CommandDispatcher {
  readonly #parts: DispatcherParts;
  /** The queues of locks that have unfinished commands, by lock. */
  readonly #queues = new Map<number, CommandQueue>();
  readonly #ends = new CommandEnds();
  /** The queues by the time at which each is examined again. */
  readonly #deadlines = new Deadlines<CommandQueue>();
  /** When each connection subscribed to `down`, the topic of commands, in wall-clock time. */
  readonly #listeningSince = new WeakMap<Session, number>();
  /** Queues that wait for their turn to leave. */
  readonly #waitingToLeave = new Set<CommandQueue>();
  readonly #firstUplinkTimers = new Map<CommandQueue, Timer>();
  /** The timers of expiries that could not be stored. */
  readonly #retries = new Set<Timer>();
  /** Connections to which a command is being written. */
  readonly #writing = new WeakSet<Session>();
  /** Running writes to the store. */
  readonly #writes = new Set<Promise<void>>();
  /** The number of commands in the ingest's queue. */
  #leavingCount = 0;
  #timer: Timer | undefined;
  #timerDueMs = NEVER;
  #isStopped = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Loads all unfinished commands of the store. */
  async load(): Promise<void> {
    this.add(await this.#parts.store.commands.readUnfinished());
  }

  /**
   * Takes stored commands into their locks' queues. Those that are there already stay as they are, and those that have
   * ended here since they were read stay out. One that has ended elsewhere does no harm: the store refuses its sending.
   */
  add(records: readonly CommandRecord[]): void {
    const changed = new Set<CommandQueue>();
    for (const record of records) if (!this.has(record) && !this.#ends.has(record)) changed.add(this.#put(record));
    for (const queue of changed) this.#examine(queue);
  }

  /** Whether a command is in its lock's queue. */
  has({ id, deviceId }: Pick<CommandRecord, 'id' | 'deviceId'>): boolean {
    return this.#queues.get(deviceId)?.open.some(({ record }) => record.id === id) === true;
  }

  /**
   * Forgets a lock's commands, which another gateway sends from now on. One that is passing through the ingest's queue
   * is not sent.
   */
  disown(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue === undefined) return;
    queue.open = [];
    this.#examine(queue);
  }

  /** Stops sending; resolves when no write is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const timer of [...this.#firstUplinkTimers.values(), ...this.#retries]) timer.cancel();
    await Promise.all(this.#writes);
  }

  /** Reserves a place in the lock's queue for a command that is about to be stored; false if the queue is full. */
  reserve(deviceId: number, mac: Mac): boolean {
    const queue = this.#queueOf(deviceId, mac);
    if (queue.open.length + queue.reserved >= MAX_WAITING_PER_LOCK) return false;
    queue.reserved += 1;
    return true;
  }

  /** Gives a reserved place back. */
  release(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue === undefined) return;
    queue.reserved -= 1;
    this.#examine(queue);
  }

  /**
   * Puts a command that was just stored into its reserved place, and reports it as queued. If it was taken from the
   * store already ({@link add}), and may even have ended, it is only reported.
   */
  enqueue(record: CommandRecord): void {
    const isTaken = this.has(record) || this.#ends.has(record);
    const queue = isTaken ? this.#queueOf(record.deviceId, record.mac) : this.#put(record);
    queue.reserved -= 1;
    this.#report(record);
    this.#examine(queue);
  }

  /** The lock's queue; undefined if it has no unfinished command. */
  queueOf(deviceId: number): CommandQueue | undefined {
    return this.#queues.get(deviceId);
  }

  /** Must be called when a lock has subscribed to `down`: it can receive commands from now on. */
  subscribed(session: Session): void {
    this.#listeningSince.set(session, this.#parts.wallClock.now());
    this.#examineLock(session.sender.deviceId);
  }

  /** Must be called when the lock's state may have changed: for example, its battery is no longer low. */
  judged(lock: KnownLock): void {
    if (this.#queues.size > 0) this.#examineLock(lock.deviceId);
  }

  /** Handles a lock's answer, which is stored already. Returns whether the command was unfinished. */
  acknowledged({ deviceId, commandId, state, detail, atMs }: Acknowledgement): boolean {
    const queue = this.#queues.get(deviceId);
    const open = queue?.open.find(({ record }) => record.id === commandId && record.sentCount > 0);
    if (queue === undefined || open === undefined) return false;
    this.#finish(queue, open, { state, detail, finishedAtMs: atMs });
    return true;
  }

  /** Takes a queued command out of its queue, and returns it; undefined if it is not queued. */
  withdraw(id: number, deviceId: number): CommandRecord | undefined {
    const queue = this.#queues.get(deviceId);
    const open = queue?.open.find(({ record }) => record.id === id);
    if (queue === undefined || open?.record.state !== 'queued' || queue.leaving === open) return undefined;
    queue.open = queue.open.filter((each) => each !== open);
    this.#examine(queue);
    return open.record;
  }

  /**
   * Reports the end of a command that was in no queue here, or had been taken out of it: it was cancelled in the store
   * or, after its expiry, answered. Drops it if it was taken into its lock's queue meanwhile.
   */
  ended(record: CommandRecord): void {
    const queue = this.#queues.get(record.deviceId);
    if (queue !== undefined) queue.open = queue.open.filter((open) => open.record.id !== record.id);
    this.#report(record, record.finishedAtMs ?? undefined);
    if (queue !== undefined) this.#examine(queue);
  }

  /** Drops a lock's commands, which are cancelled in the store already. */
  drop(deviceId: number, atMs: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue === undefined) return;
    for (const { record } of queue.open.splice(0)) this.#report({ ...record, state: 'cancelled', finishedAtMs: atMs });
    this.#examine(queue);
  }

  /**
   * Whether the command's expiry is doubtful: by the machine's clock, which is not trusted, it has passed; by the run's
   * clock, which `#expire` goes by, it has not. The command is then neither sent nor expired.
   */
  readonly isHeld: IsHeld = ({ createdAtMs, expiresAtMs }) =>
    this.#parts.doubt?.isExpiryDoubtful(createdAtMs, expiresAtMs) === true;

  /** Examines all queues, after a step of the clock or when the clock is trusted again. */
  examineAll(): void {
    for (const queue of [...this.#queues.values()]) this.#examine(queue);
    this.#wake();
  }

  /**
   * Handles a step of the run's clock. Commands that were accepted while the machine's clock was in doubt keep their
   * remaining time, which was measured correctly; scheduled commands keep their dates.
   */
  stepped({ fromMs, toMs, doubtedSinceMs }: RunStep): void {
    const postponedIds: number[] = [];
    // If the machine's clock was not in doubt, no command is postponed.
    const [byMs, sinceMs] = [toMs - fromMs, doubtedSinceMs ?? Number.POSITIVE_INFINITY];
    for (const { open } of this.#queues.values())
      for (const command of open) {
        const { id, createdAtMs, notBeforeMs, expiresAtMs } = command.record;
        if (createdAtMs <= sinceMs || notBeforeMs !== null || expiresAtMs <= fromMs) continue;
        command.record = { ...command.record, createdAtMs: createdAtMs + byMs, expiresAtMs: expiresAtMs + byMs };
        postponedIds.push(id);
      }
    if (postponedIds.length > 0) this.#storePostponement(postponedIds, byMs);
    this.examineAll();
  }

  #storePostponement(ids: readonly number[], byMs: number): void {
    const write = this.#parts.store.commands.postpone(ids, byMs);
    // In memory the commands are postponed even if the write fails. Only a restart would find their old expiry.
    this.#track(write.catch((error: Error) => this.#reportFailure(error)));
  }

  /** Reports a command's state; an end only once, although this gateway may hear of it twice. */
  #report(record: CommandRecord, atMs = this.#parts.clock.now()): void {
    if (record.finishedAtMs !== null && !this.#ends.note(record)) return;
    this.#parts.events.emit('command', { atMs, mac: record.mac, record });
  }

  #queueOf(deviceId: number, mac: Mac): CommandQueue {
    const existing = this.#queues.get(deviceId);
    if (existing !== undefined) return existing;
    const queue = newQueue(deviceId, mac);
    this.#queues.set(deviceId, queue);
    return queue;
  }

  #put(record: CommandRecord): CommandQueue {
    const queue = this.#queueOf(record.deviceId, record.mac);
    queue.open.push({ record, session: undefined, sendsOnSession: 0 });
    // A command that returns after a failed cancel takes its old place.
    queue.open.sort((a, b) => a.record.id - b.record.id);
    return queue;
  }

  #examineLock(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue !== undefined) this.#examine(queue);
  }

  /** Does what is due for a lock, and sets the time at which its queue is examined again. */
  #examine(queue: CommandQueue): void {
    // A timer may still refer to a queue that was removed; its lock may have another one by now.
    if (this.#isStopped || this.#queues.get(queue.deviceId) !== queue) return;
    const nowMs = this.#parts.clock.now();
    this.#expire(queue, nowMs);
    if (queue.open.length === 0 && queue.leaving === undefined && queue.reserved === 0) {
      this.#remove(queue);
      return;
    }
    let dueMs = nextChangeMs(queue, nowMs);
    const next = queue.leaving === undefined ? nextCommand(queue, nowMs, this.isHeld) : undefined;
    const session = next === undefined ? undefined : this.#reachable(queue);
    if (next !== undefined && session !== undefined) {
      const atMs = sendableAtMs(next, session);
      if (atMs <= nowMs) this.#leave(queue, next, session);
      else dueMs = Math.min(dueMs, atMs);
    }
    // If an earlier deadline of the queue is set still, the queue is only examined once more than needed.
    if (dueMs !== queue.dueMs && dueMs < NEVER) this.#deadlines.set(queue, dueMs);
    this.#setTimer();
  }

  /** Removes the queue of a lock without unfinished commands. */
  #remove(queue: CommandQueue): void {
    queue.dueMs = NEVER;
    this.#queues.delete(queue.deviceId);
    this.#waitingToLeave.delete(queue);
    this.#firstUplinkTimers.get(queue)?.cancel();
    this.#firstUplinkTimers.delete(queue);
  }

  /**
   * The lock's connection; undefined unless it has subscribed, no other command is being written to it, the lock's
   * state takes commands, and its first uplink, which shows whether the battery allows commands, has arrived or the
   * wait for that uplink is over.
   */
  #reachable(queue: CommandQueue): Session | undefined {
    const session = this.#parts.sessionOf(queue.deviceId);
    if (session?.sender.source !== 'lock' || !session.isListening || session.connection.stream.destroyed)
      return undefined;
    if (this.#writing.has(session)) return undefined;
    const belief = this.#parts.findLock(queue.deviceId)?.state.belief;
    if (belief !== undefined && !rowOfState(POWER_MODEL, belief.state).commands) return undefined;
    const hasSentUplink = belief?.isConnected === true && belief.hasUplinks;
    return hasSentUplink || this.#waitedForFirstUplink(queue, session) ? session : undefined;
  }

  /** Whether the wait for the connection's first uplink is over. If not, sets a timer for its end. */
  #waitedForFirstUplink(queue: CommandQueue, session: Session): boolean {
    const { wallClock } = this.#parts;
    const remainingMs = (this.#listeningSince.get(session) ?? wallClock.now()) + FIRST_UPLINK_WAIT - wallClock.now();
    if (remainingMs <= 0) return true;
    if (!this.#firstUplinkTimers.has(queue)) {
      const timer = wallClock.after(remainingMs, () => {
        this.#firstUplinkTimers.delete(queue);
        this.#examine(queue);
      });
      this.#firstUplinkTimers.set(queue, timer);
    }
    return false;
  }

  /** Passes a command through the ingest's queue, and then sends it. */
  #leave(queue: CommandQueue, open: OpenCommand, session: Session): void {
    if (this.#leavingCount >= MAX_LEAVING_COMMANDS) {
      this.#waitingToLeave.add(queue);
      return;
    }
    this.#leavingCount += 1;
    queue.leaving = open;
    const atMs = this.#parts.clock.now();
    const { id, command, expiresAtMs: expiresMs } = open.record;
    this.#parts.recordEvent(
      queue.deviceId,
      queue.mac,
      { type: 'command', id, command, expiresMs, atMs },
      (isRefused) => {
        this.#leavingCount -= 1;
        queue.leaving = undefined;
        if (isRefused) this.#dropRefused(queue, open);
        else this.#send(queue, open, session, atMs);
        this.#examine(queue);
        this.#leaveNext();
      },
    );
  }

  /** Lets waiting queues send a command, as many as the limit allows. */
  #leaveNext(): void {
    for (const queue of this.#waitingToLeave) {
      if (this.#leavingCount >= MAX_LEAVING_COMMANDS) return;
      this.#waitingToLeave.delete(queue);
      this.#examine(queue);
    }
  }

  /** Drops a command that the store refused to send: it was cancelled, for example. Its present state is reported. */
  #dropRefused(queue: CommandQueue, open: OpenCommand): void {
    if (!queue.open.includes(open)) return;
    queue.open = queue.open.filter((each) => each !== open);
    const report = this.#parts.store.commands
      .find(open.record.id)
      .then((record) => record !== null && this.#report(record))
      // Nothing is sent in any case; only the report is lost.
      .catch((error: Error) => this.#reportFailure(error));
    this.#track(report);
  }

  #reportFailure(error: Error): void {
    this.#parts.events.emit('store-failed', { atMs: this.#parts.clock.now(), why: error.message });
  }

  /** Makes `stop` wait for work that uses the store. */
  #track(work: Promise<unknown>): void {
    const tracked: Promise<void> = work.then(() => void this.#writes.delete(tracked));
    this.#writes.add(tracked);
  }

  #send(queue: CommandQueue, open: OpenCommand, session: Session, atMs: number): void {
    const { record } = open;
    // Meanwhile the answer to an earlier send may have arrived, or the command may have expired.
    if (!queue.open.includes(open)) return;
    const firstSentAtMs = record.firstSentAtMs ?? atMs;
    const sentCount = record.sentCount + 1;
    open.record = { ...record, state: 'sent', firstSentAtMs, lastSentAtMs: atMs, sentCount };
    open.sendsOnSession = open.session === session ? open.sendsOnSession + 1 : 1;
    open.session = session;
    this.#parts.events.emit('command', { atMs, mac: record.mac, record: open.record });
    const { id, expiresAtMs: expiresMs, command } = record;
    // The sending is on disk already, so the command counts as sent even if no bytes follow.
    if (this.#isStopped || this.#parts.clock.now() >= expiresMs) return;
    // The MQTT library (aedes) loses a message that another follows too closely, so the next command waits until this
    // one is written.
    this.#writing.add(session);
    // The lock compares the expiry with its own clock. If the machine's clock jumped ahead, the lock's probably did
    // too.
    const expiresByLockMs = expiresMs + Math.max(this.#parts.doubt?.aheadMs ?? 0, 0);
    // `send` never rejects; it resolves at the end of the connection too.
    void session.send(Buffer.from(encodeDownlink({ id, expiresMs: expiresByLockMs, command }))).finally(() => {
      this.#writing.delete(session);
      this.#examineLock(queue.deviceId);
    });
  }

  #expire(queue: CommandQueue, nowMs: number): void {
    const isExpired = ({ record }: OpenCommand): boolean => nowMs >= record.expiresAtMs;
    if (!queue.open.some(isExpired)) return;
    const expiring = queue.open.filter(isExpired);
    queue.open = queue.open.filter((open) => !isExpired(open));
    this.#storeExpiry(expiring, nowMs);
  }

  #storeExpiry(expiring: readonly OpenCommand[], atMs: number): void {
    this.#track(this.#writeExpiry(expiring, atMs));
  }

  /** Reports expiries once they are stored. A command whose answer was stored before is not expired. */
  async #writeExpiry(expiring: readonly OpenCommand[], atMs: number): Promise<void> {
    const ids = expiring.map(({ record }) => record.id);
    try {
      const expired = await this.#parts.store.commands.expire(ids, atMs);
      for (const { record } of expiring)
        if (expired.includes(record.id)) this.#report({ ...record, state: 'expired', finishedAtMs: atMs });
    } catch (error) {
      const { clock } = this.#parts;
      this.#reportFailure(error as Error);
      // An expired command is not sent in any case; after a stop, the next start expires it.
      if (this.#isStopped) return;
      const retry = clock.after(EXPIRY_RETRY_DELAY, () => {
        this.#retries.delete(retry);
        this.#storeExpiry(expiring, atMs);
      });
      this.#retries.add(retry);
    }
  }

  #finish(queue: CommandQueue, open: OpenCommand, end: Partial<CommandRecord>): void {
    queue.open = queue.open.filter((each) => each !== open);
    this.#report({ ...open.record, ...end });
    this.#examine(queue);
  }

  /** Sets the timer for the earliest time at which a queue is due. */
  #setTimer(): void {
    const dueMs = this.#deadlines.firstMs;
    if (dueMs === this.#timerDueMs || this.#isStopped) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    this.#timer =
      dueMs >= NEVER
        ? undefined
        : this.#parts.clock.after(Math.max(dueMs - this.#parts.clock.now(), 1), () => this.#wake());
  }

  #wake(): void {
    // Equals no time, so that the timer is set again in any case.
    this.#timerDueMs = Number.NaN;
    const due: CommandQueue[] = [];
    const nowMs = this.#parts.clock.now();
    // `take` returns queues that are due before the given time: + 1 includes those that are due in this millisecond.
    for (let queue = this.#deadlines.take(nowMs + 1); queue !== undefined; queue = this.#deadlines.take(nowMs + 1))
      due.push(queue);
    for (const queue of due) {
      queue.dueMs = NEVER;
      this.#examine(queue);
    }
    this.#setTimer();
  }
}
