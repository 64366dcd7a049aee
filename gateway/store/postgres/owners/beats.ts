/**
 * The beats of this gateway, which show others that it runs, and its look at theirs. Each second it renews its beat. It
 * ends the epoch of a gateway that has stopped (stopped-gateways.ts): from then on nothing is stored under it, and its
 * locks may be claimed. Clocks and beats decide when an epoch ends, never whether something is stored: that the fence
 * decides.
 *
 * A connection may break without a sign. So a beat that is not answered within two seconds is repeated on a new
 * connection, early enough that no other gateway ends this one's epoch for it while the server has the old connection.
 */
import { monotonicMs, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import type { DatabaseTime } from '../../contract/slots/database-time.js';
import { answered, NoAnswer } from '../connections/answer-limit.js';
import type { Connections, WatchedClient } from '../connections/connections.js';
import { endEpoch } from '../epoch-end.js';
import { Fenced } from '../fence.js';
import { type Claim, connectedSlots, lockSlot } from '../node-claim.js';
import { type OtherBeat, type Silent, StoppedGateways } from './stopped-gateways.js';

const BEAT_INTERVAL = Seconds(1);
/** After this long without an answer the connection is given up; with the interval it is well below the lease. */
const BEAT_TIMEOUT = Seconds(2);

export interface BeatsParts {
  readonly connections: Connections;
  readonly claim: Claim;
  readonly time: DatabaseTime;
  /** Up to when this gateway has added its counts of usage, ms since the epoch. */
  readonly countedThroughMs: () => number;
  /** Called when a beat could not be stored, and when the epoch has ended. */
  readonly onTrouble: (why: string) => void;
  /** Called after each beat, unless the last call is still under way. Its failures are reported by `onTrouble`. */
  readonly onBeat: () => Promise<void>;
}

export class Beats {
  readonly #parts: BeatsParts;
  #holder: WatchedClient;
  #timer: Timer | undefined;
  #beating: Promise<void> = Promise.resolve();
  /** The call of `onBeat` that is under way. */
  #following: Promise<void> | undefined;
  #isStopped = false;
  /** Whether the connection holds the slot's lock, by which others see that this gateway is connected. */
  #holdsLock = true;
  readonly #stopped = new StoppedGateways(monotonicMs());
  /** The epochs that are being ended. */
  readonly #ending = new Map<number, Promise<unknown>>();

  constructor(parts: BeatsParts) {
    this.#parts = parts;
    this.#holder = parts.claim.holder;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = systemClock.after(BEAT_INTERVAL, () => {
      this.#beating = this.#beat().then(() => this.start());
    });
  }

  /** Resolves when no beat is under way. The connection stays open. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#beating;
    await this.#following;
    await Promise.all(this.#ending.values());
  }

  async #beat(): Promise<void> {
    try {
      await answered(this.#store(), BEAT_TIMEOUT);
      // After a reconnection the server may have kept the lock for the connection before.
      if (!this.#holdsLock) await answered(this.#lockSlot(), BEAT_TIMEOUT);
      const { stopped, stoppedIfLost } = await answered(this.#readSilent(), BEAT_TIMEOUT);
      for (const other of stopped) this.#end(other);
      if (stoppedIfLost.length > 0)
        for (const other of await answered(this.#onlyLost(stoppedIfLost), BEAT_TIMEOUT)) this.#end(other);
      this.#follow();
    } catch (error) {
      this.#parts.onTrouble((error as Error).message);
      if (error instanceof NoAnswer) this.#parts.connections.suspectIdle();
      if (!(error instanceof Fenced)) await this.#beatAnew().catch(() => undefined);
    }
  }

  /** Beats at once on a new connection, since time was lost. */
  async #beatAnew(): Promise<void> {
    await answered(this.#reconnect());
    await answered(this.#store(), BEAT_TIMEOUT);
  }

  /** Calls `onBeat`, which may take long: the beats don't wait for it. */
  #follow(): void {
    this.#following ??= this.#parts
      .onBeat()
      .catch((error: Error) => this.#parts.onTrouble(error.message))
      .finally(() => {
        this.#following = undefined;
      });
  }

  /** Ends an epoch, on a connection of its own: that may take seconds, in which this gateway must beat. */
  #end(other: OtherBeat): void {
    if (this.#ending.has(other.epoch)) return;
    const { connections, onTrouble } = this.#parts;
    const ending = connections
      .open()
      .then((client) => endEpoch(connections, client, other).finally(() => client.client.end().catch(() => undefined)))
      .catch((error: Error) => onTrouble(error.message))
      .finally(() => this.#ending.delete(other.epoch));
    this.#ending.set(other.epoch, ending);
  }

  async #store(): Promise<void> {
    const { claim, time, countedThroughMs } = this.#parts;
    const row = await this.#holder.sql.get<{ beaten: number; now_ms: number }>(
      `WITH f AS (SELECT 1 FROM node WHERE slot = @slot AND epoch = @epoch FOR KEY SHARE),
         b AS (UPDATE node_beat SET at = clock_timestamp(), counted_to_ms = @counted FROM f
           WHERE slot = @slot AND epoch = @epoch RETURNING 1)
       SELECT (SELECT count(*) FROM b) AS beaten, extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`,
      { slot: claim.slot, epoch: claim.epoch, counted: countedThroughMs() },
    );
    if (row?.beaten !== 1) throw new Fenced();
    const nowMs = monotonicMs();
    time.note(row.now_ms, nowMs);
    this.#stopped.beaten(nowMs);
  }

  async #readSilent(): Promise<Silent> {
    const others = await this.#holder.sql.all<OtherBeat>(
      `SELECT n.slot, n.epoch, b.at::text AS at FROM node n JOIN node_beat b ON b.slot = n.slot
       WHERE NOT n.released AND n.slot <> @slot`,
      { slot: this.#parts.claim.slot },
    );
    return this.#stopped.judge(others, monotonicMs());
  }

  /** Those whose connection the server has lost. */
  async #onlyLost(others: readonly OtherBeat[]): Promise<readonly OtherBeat[]> {
    const connected = await connectedSlots(this.#holder);
    return others.filter(({ slot }) => !connected.has(slot));
  }

  /** Opens the connection again, and takes the slot's lock again, which shows that this process is connected. */
  async #reconnect(): Promise<void> {
    const { connections, claim } = this.#parts;
    const lost = this.#holder;
    void lost.client.end().catch(() => undefined);
    const holder = await connections.open();
    if (this.#holder !== lost) {
      // This took so long that a later call was faster.
      void holder.client.end().catch(() => undefined);
      return;
    }
    this.#holder = holder;
    this.#holdsLock = false;
    claim.holder = holder;
    this.#stopped.reconnected(monotonicMs());
    await this.#lockSlot();
  }

  async #lockSlot(): Promise<void> {
    const holder = this.#holder;
    // If another process has the slot by now, this one's epoch has ended, and the next beat finds that out.
    const isLocked = await lockSlot(holder, this.#parts.claim.slot);
    if (holder === this.#holder) this.#holdsLock = isLocked;
  }
}
