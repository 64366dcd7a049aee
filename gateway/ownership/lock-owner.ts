/**
 * Claims locks for this gateway and releases them to others, if several gateways share a store (README.md). Only a
 * lock's owner has the lock's state in memory: it is read from the store when the lock is claimed, and forgotten when
 * the lock is released. A *part* is a lock, or the phones that act for it; each is owned separately.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import type { Commands } from '../commands/commands.js';
import type { GatewayEvents } from '../events.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import type { KnownLock, Locks } from '../locks/locks.js';
import type { Sessions } from '../mqtt/sessions.js';
import type { AdoptedPart, LockOwnership, LockPart } from '../store/contract/slots/ownership.js';
import type { Store } from '../store/contract/store.js';
import { Gathered } from './gathered.js';

/** How often the gateway looks for locks whose gateway has ended. */
const ADOPTION_INTERVAL = Seconds(1);
/**
 * For how long the parts of a gateway that has ended are left to the gateways that their locks connect to. Were they
 * adopted at once, most would have to change their gateway again, since a lock connects anywhere.
 */
const ADOPTION_GRACE = Seconds(10);
/** Maximum number of parts that are adopted at once. */
const MAX_ADOPTED = 1_000;
/** The states of at most so many locks are read at once: in a storm of reconnects, the first must not wait for all. */
const MAX_READ_AT_ONCE = 500;
/** How often {@link LockOwner.hold} claims a part that another gateway does not release, two seconds each. */
const MAX_HOLD_CLAIMS = 5;
/**
 * The parts of a lock, in the order in which {@link LockOwner.hold} claims them. It is the same at every gateway:
 * otherwise two gateways could each hold one part and wait for the other.
 */
const SOURCES: readonly Source[] = ['lock', 'phone'];
/**
 * The argument of `runExclusive` for claims and releases: the uplinks that wait in the queue stay there. After a claim
 * they are judged. After a release each is refused when its turn comes, since the gateway no longer owns its part; the
 * uplinks of the lock's other part, which may stay here, are judged.
 */
const REFUSES_WAITING = false;

/** Notes the troubles of the locks that this gateway serves, for operators (notices/). */
interface LockNotices {
  lockTaken(lock: KnownLock): void;
  lockGiven(mac: Mac): void;
}

export interface LockOwnerParts {
  readonly store: Pick<Store, 'append'>;
  readonly ownership: LockOwnership;
  readonly locks: Locks;
  readonly ingest: Pick<Ingest, 'runExclusive' | 'recordEvent'>;
  readonly commands: Pick<Commands, 'readStored' | 'adopt' | 'disown'>;
  readonly sessions: Pick<Sessions, 'end' | 'whenNone'>;
  readonly notices: LockNotices;
  readonly events: GatewayEvents;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  /** A clock in real time, for {@link ADOPTION_INTERVAL}. */
  readonly timers: Clock;
}

/** A claim under way, for one client or several of the same part. */
interface RunningClaim {
  readonly result: Promise<boolean>;
  /** For each of them, whether it still waits. */
  readonly waits: (() => boolean)[];
}

/** A part whose state is to be read, and whether somebody waits for that. */
interface PartToRead {
  readonly part: AdoptedPart;
  readonly isWanted: () => boolean;
}

/** For parts that are wanted in any case: those of an account that is changed, and those that are adopted. */
const ALWAYS = (): boolean => true;

export class LockOwner {
  readonly #parts: LockOwnerParts;
  /** Parts that are being released, by their key. */
  readonly #releasing = new Map<string, Promise<void>>();
  /** Claims under way, by the part's key. */
  readonly #claiming = new Map<string, RunningClaim>();
  /** The keys of those claims that the store has not answered yet. */
  readonly #asking = new Set<string>();
  /** Owned parts whose states were not read yet, or could not be, or nobody waited: nobody may connect before. */
  readonly #unread = new Map<string, AdoptedPart>();
  /** How many callers of {@link hold} keep each part from other gateways. */
  readonly #holds = new Map<string, number>();
  /** Adopting what was read, and each release, waits for a turn between two commits, which many locks share. */
  readonly #reads = new Gathered<PartToRead>((parts) => this.#readWanted(parts), MAX_READ_AT_ONCE);
  readonly #releases = new Gathered<LockPart>((parts) => this.#releaseBetweenCommits(parts));
  #timer: Timer | undefined;
  #adopting: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: LockOwnerParts) {
    this.#parts = parts;
  }

  /** Adopts locks from now on, and releases them when other gateways ask. Does nothing if this gateway owns all. */
  start(): void {
    const { ownership } = this.#parts;
    if (ownership.isSole) return;
    ownership.onWish((part) => this.#releaseIfOwned(part));
    this.#adoptLater();
  }

  /** Ends the adoption of locks. Resolves when nothing is being adopted or released. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#adopting;
    await Promise.all(this.#releasing.values());
  }

  /**
   * Whether a sender may connect at once, since this gateway owns its part and has read its state; otherwise
   * {@link claim} must be called.
   */
  owns({ deviceId, source }: Sender): boolean {
    return this.#isReady(deviceId, source, keyOf(deviceId, source));
  }

  #isReady(deviceId: number, source: Source, key: string): boolean {
    const { ownership, locks } = this.#parts;
    if (!ownership.owns(deviceId, source) || (source === 'lock' && !locks.isHere(deviceId))) return false;
    return !this.#releasing.has(key) && !this.#claiming.has(key) && !this.#unread.has(key);
  }

  /**
   * Runs a change of a lock's account while no other gateway can serve the lock or its phones: claims both, which ends
   * their sessions at other gateways, and releases neither before `work` has ended.
   *
   * @throws LockgateError `busy` if another gateway does not release the lock
   * @throws what `work` throws, StoreFailure
   */
  async hold<T>(deviceId: number, work: () => Promise<T>): Promise<T> {
    if (this.#parts.ownership.isSole) return await work();
    const held: string[] = [];
    try {
      for (const source of SOURCES) {
        const key = keyOf(deviceId, source);
        held.push(key);
        this.#holds.set(key, (this.#holds.get(key) ?? 0) + 1);
        await this.#claimSurely({ deviceId, source }, key);
      }
      return await work();
    } finally {
      for (const key of held) {
        const left = (this.#holds.get(key) ?? 0) - 1;
        if (left > 0) this.#holds.set(key, left);
        else this.#holds.delete(key);
      }
    }
  }

  async #claimSurely(part: LockPart, key: string): Promise<void> {
    for (let times = 0; times < MAX_HOLD_CLAIMS; times += 1) {
      if (this.#isReady(part.deviceId, part.source, key)) return;
      await this.#claimOnce(part, key, ALWAYS);
    }
    if (this.#isReady(part.deviceId, part.source, key)) return;
    throw new LockgateError('busy', 'another gateway serves the lock, and did not release it: try again');
  }

  /**
   * Claims the sender's part. Returns whether this gateway owns it now.
   *
   * @param isWaiting whether the client still waits: if not, the part is better left to the gateway that it tries next
   * @throws StoreFailure
   */
  claim({ deviceId, source }: Sender, isWaiting: () => boolean): Promise<boolean> {
    return this.#claimOnce({ deviceId, source }, keyOf(deviceId, source), isWaiting);
  }

  #claimOnce(part: LockPart, key: string, isWaiting: () => boolean): Promise<boolean> {
    const running = this.#claiming.get(key);
    if (running !== undefined) {
      running.waits.push(isWaiting);
      return running.result;
    }
    const waits = [isWaiting];
    const isWanted = (): boolean => waits.some((waiting) => waiting());
    const result = this.#claim(part, key, isWanted).finally(() => this.#claiming.delete(key));
    this.#claiming.set(key, { result, waits });
    return result;
  }

  async #claim(part: LockPart, key: string, isWanted: () => boolean): Promise<boolean> {
    await this.#releasing.get(key);
    this.#asking.add(key);
    const claim = await this.#parts.ownership.claim(part, isWanted).finally(() => this.#asking.delete(key));
    if (!claim.isGranted) return false;
    // After a reading that failed, the gap is known from the claim before.
    const { unheardSinceMs } = this.#unread.get(key) ?? claim;
    await this.#read([{ ...part, unheardSinceMs }], isWanted);
    return !this.#unread.has(key);
  }

  /**
   * Reads the states and the commands of parts that this gateway owns now. Those that nobody waits for when it is their
   * turn are left for {@link #adoptAll}: during a storm, others wait behind them.
   *
   * @throws StoreFailure
   * @throws LockgateError `stopping`
   */
  async #read(parts: readonly AdoptedPart[], isWanted: () => boolean): Promise<void> {
    for (const part of parts) this.#unread.set(keyOf(part.deviceId, part.source), part);
    for (let start = 0; start < parts.length; start += MAX_READ_AT_ONCE)
      await this.#reads.add(parts.slice(start, start + MAX_READ_AT_ONCE).map((part) => ({ part, isWanted })));
  }

  async #readWanted(reads: readonly PartToRead[]): Promise<void> {
    if (this.#isStopped) throw new LockgateError('stopping', 'the gateway is stopping');
    const parts = reads.filter(({ part, isWanted }) => this.#isUnread(part) && isWanted()).map(({ part }) => part);
    // Phones have neither a state nor commands.
    await this.#readLocks(parts.filter(({ source }) => source === 'lock'));
    for (const part of parts) if (this.#isUnread(part)) this.#unread.delete(keyOf(part.deviceId, part.source));
  }

  /**
   * Whether the part is still to be read. If not, another read had it, or another gateway asked for it: then it was
   * released, and may even have been claimed again, so that what was read of it is out of date.
   */
  #isUnread(part: AdoptedPart): boolean {
    return this.#unread.get(keyOf(part.deviceId, part.source)) === part;
  }

  async #readLocks(ownedLocks: readonly AdoptedPart[]): Promise<void> {
    const { locks, ingest, commands, notices } = this.#parts;
    const [first] = ownedLocks;
    if (first === undefined) return;
    const deviceIds = ownedLocks.map(({ deviceId }) => deviceId);
    // Not in the turn between two commits, since commits wait meanwhile.
    const [states, records] = await Promise.all([locks.readStored(deviceIds), commands.readStored(deviceIds)]);
    let adopted: readonly AdoptedPart[] = [];
    // One lock's id stands for all: it only says whose waiting uplinks would be refused, and none are.
    await ingest.runExclusive(
      first.deviceId,
      async () => {
        // One that was adopted while it was claimed is here already, where its state may be newer.
        adopted = ownedLocks.filter((part) => this.#isUnread(part) && !locks.isHere(part.deviceId));
        const adoptedIds = new Set(adopted.map(({ deviceId }) => deviceId));
        locks.adopt(adoptedIds, states);
        commands.adopt(records.filter(({ deviceId }) => adoptedIds.has(deviceId)));
      },
      REFUSES_WAITING,
    );
    for (const { deviceId, unheardSinceMs } of adopted) {
      const lock = locks.find(deviceId);
      if (lock === undefined) continue;
      notices.lockTaken(lock);
      this.#recordListening(lock, unheardSinceMs);
    }
  }

  /**
   * Records since when a gateway listens for the lock again, so that the judge counts its silence only from then on.
   * `unheardSinceMs`: when the lock's former gateway ended; null if there was no gap.
   */
  #recordListening({ deviceId, mac, state }: KnownLock, unheardSinceMs: number | null): void {
    const { ingest, clock } = this.#parts;
    const { listeningSinceMs, nowMs } = state.belief;
    const atMs = clock.now();
    if (listeningSinceMs !== null && unheardSinceMs !== null) {
      const stopMs = Math.max(nowMs, unheardSinceMs);
      ingest.recordEvent(deviceId, mac, { type: 'gateway', state: 'stop', atMs: stopMs });
    }
    if (listeningSinceMs === null || unheardSinceMs !== null)
      ingest.recordEvent(deviceId, mac, { type: 'gateway', state: 'start', atMs });
    else ingest.recordEvent(deviceId, mac, { type: 'tick', atMs });
  }

  #adoptLater(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.timers.after(ADOPTION_INTERVAL, () => {
      this.#adopting = this.#adoptAll().then(() => this.#adoptLater());
    });
  }

  async #adoptAll(): Promise<void> {
    try {
      // What was not read at its claim, and is not being read now.
      const left = [...this.#unread].filter(([key]) => !this.#claiming.has(key) && !this.#releasing.has(key));
      const leftParts = left.map(([, part]) => part);
      await this.#read(leftParts, ALWAYS);
      while (!this.#isStopped) {
        const adopted = await this.#parts.ownership.adopt(MAX_ADOPTED, ADOPTION_GRACE);
        if (adopted.length === 0) return;
        await this.#read(adopted, ALWAYS);
      }
    } catch (error) {
      if (!this.#isStopped) this.#report(error as Error);
    }
  }

  /**
   * Releases a part that another gateway asks for, unless a claim of it waits for its answer; then the other gateway
   * asks again. This one may own the part already, and were it released before the answer, the answer would make this
   * gateway an owner beside the other.
   */
  #releaseIfOwned(part: LockPart): void {
    const key = keyOf(part.deviceId, part.source);
    if (
      this.#isStopped ||
      this.#holds.has(key) ||
      this.#asking.has(key) ||
      this.#releasing.has(key) ||
      !this.#parts.ownership.owns(part.deviceId, part.source)
    )
      return;
    const releasing = this.#release(part)
      .catch((error: Error) => this.#report(error))
      .finally(() => this.#releasing.delete(key));
    this.#releasing.set(key, releasing);
  }

  /** Ends the part's sessions, stores what it sent and its state, and gives the part away. */
  async #release(part: LockPart): Promise<void> {
    this.#endSessions(part);
    await this.#parts.sessions.whenNone(part.deviceId, part.source);
    await this.#releases.add([part]);
  }

  #endSessions({ deviceId, source }: LockPart): void {
    this.#parts.sessions.end(deviceId, (session) => {
      if (session.sender.source !== source) return false;
      session.cause ??= 'takeover';
      return true;
    });
  }

  async #releaseBetweenCommits(parts: readonly LockPart[]): Promise<void> {
    const { ingest, locks, commands, notices, ownership } = this.#parts;
    const [first] = parts as readonly [LockPart, ...LockPart[]];
    // One lock's id stands for all, as in a read.
    await ingest.runExclusive(
      first.deviceId,
      async () => {
        await this.#storeStates(parts);
        for (const part of parts) {
          const { deviceId, source } = part;
          if (source === 'lock') {
            const mac = locks.find(deviceId)?.mac;
            if (mac !== undefined) notices.lockGiven(mac);
            locks.disown(deviceId);
            commands.disown(deviceId);
          }
          // Ends sessions that began meanwhile: what they send is refused from now on.
          this.#endSessions(part);
          this.#unread.delete(keyOf(deviceId, source));
        }
        await ownership.release(parts);
      },
      REFUSES_WAITING,
    );
  }

  /** Stores the states of locks that are newer than the stored ones. @throws StoreFailure */
  async #storeStates(parts: readonly LockPart[]): Promise<void> {
    const states = new Map<number, string>();
    for (const { deviceId, source } of parts) {
      const state = source === 'lock' ? this.#parts.locks.newerState(deviceId) : undefined;
      if (state !== undefined) states.set(deviceId, state);
    }
    if (states.size > 0) await this.#parts.store.append({ incoming: [], judged: [], states });
  }

  #report(error: Error): void {
    const { events, clock } = this.#parts;
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
  }
}

function keyOf(deviceId: number, source: Source): string {
  return `${deviceId}/${source}`;
}
