/**
 * Appends commits to the log, one statement at a time on a connection of its own. While one is on its way, the next
 * ones gather, and are stored together. A statement stores nothing unless this process still has its claim of a slot, a
 * part of the log that one gateway writes: a row with the slot, the epoch (a random number of the process) and the
 * session (a random number of the connection).
 *
 * If a statement's answer is lost, nobody knows whether it was stored, or still may be: it may arrive late. So a new
 * session number is written first, on a new connection; under it the lost statement can't store anything any more. Only
 * then the commit's mark, a row with the commit's number that the statement stores too, shows whether the commit is
 * stored (`#resolveDoubt`).
 */
import { monotonicMs, Seconds, systemClock } from '../../../../proto/clock.js';
import { failureKind, StoreFailure } from '../../contract/errors.js';
import type { Commit, IncomingUplink } from '../../contract/log/commit.js';
import { EMPTY_COMMIT, MAX_LOCK_EVENTS_PER_LOCK, MAX_QUARANTINED_PER_LOCK } from '../../contract/log/commit.js';
import { ALL_STORED, type CommitResult } from '../../contract/log/commit-result.js';
import { DatabaseTime } from '../../contract/slots/database-time.js';
import { answered, NoAnswer } from '../connections/answer-limit.js';
import type { Connections, WatchedClient } from '../connections/connections.js';
import { randomNumber } from '../epoch-end.js';
import { Fenced } from '../fence.js';
import type { Claim } from '../node-claim.js';
import { plannedOnce, type Values } from '../sql.js';
import { CommitBatch } from './commit-batch.js';
import { isDefinite, isRefusedValue, refuseInvalid, resultOf } from './commit-outcome.js';
import { type CommitResultRow, commitParts, statementOf } from './commit-statement.js';
import { KnownKeys } from './known-keys.js';
import { MAX_MOVED_PER_COMMIT, readStaged, selectWanted } from './merchant-events.js';

/** Maximum number of uplinks of one statement, except for a commit that alone has more. */
const MAX_UPLINKS_PER_STATEMENT = 2_000;
/** Marks of commits are deleted once they are this many commits old. */
const RETAINED_MARKS = 1_000;
/** How often a statement is run before its commit fails. */
const MAX_TRIES = 5;
/** The wait between two tries to find out what became of a commit. */
const DOUBT_INTERVAL = Seconds(0.25);

interface Waiting {
  readonly commit: Commit;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

/** A connection with a session number under which a lost statement can store nothing. */
interface NewSession {
  readonly client: WatchedClient;
  readonly session: number;
  /** Whether the commit in doubt is stored. */
  readonly isStored: boolean;
}

interface Prepared {
  readonly batch: CommitBatch;
  /** How many staged events are in the batch. */
  readonly stagedCount: number;
  /** The uplinks that the log does not have. */
  readonly fresh: ReadonlySet<IncomingUplink>;
  /** For each commit, the indexes of changes to commands that can't apply after those before them. */
  readonly refused: readonly ReadonlySet<number>[];
}

/** Is told, in a sentence, why nothing can be stored for now. */
export type OnTrouble = (why: string) => void;

const NO_INDEXES: ReadonlySet<number> = new Set();

/** Whether the commit stores nothing that a lock sent, as one that moves staged events. */
function isEmpty({ incoming, judged, states }: Commit): boolean {
  return incoming.length === 0 && judged.length === 0 && states.size === 0;
}

export class CommitLog {
  readonly #connections: Connections;
  readonly #claim: Claim;
  readonly #keys: KnownKeys;
  /** The database's time, for ids. */
  readonly time: DatabaseTime;
  readonly #waiting: Waiting[] = [];
  #client: WatchedClient;
  #isRunning = false;
  /** Whether staged events may wait that no commit has moved into the log. */
  #mayHaveStaged = true;
  /** The number of the last commit. */
  #n = 0;
  /**
   * The session numbers since the last answered commit. An update to one of them may have been stored although its
   * answer was lost, so the row may have any of them.
   */
  #sessions: number[];
  /** Set when nothing more can be stored. */
  #end: unknown;
  #idle: (() => void)[] = [];
  #isClosing = false;
  readonly #onTrouble: OnTrouble;

  /** @param onTrouble called when nothing can be stored for now, although no commit has failed yet */
  constructor(connections: Connections, claim: Claim, client: WatchedClient, onTrouble: OnTrouble = () => undefined) {
    this.#connections = connections;
    this.#onTrouble = onTrouble;
    this.#claim = claim;
    this.#client = client;
    this.#keys = new KnownKeys(connections.read);
    this.time = new DatabaseTime(claim.nowMs, monotonicMs());
    this.#sessions = [claim.session];
  }

  /** Resolves when the commit is on the disk. @throws StoreFailure */
  append(commit: Commit): Promise<CommitResult> {
    try {
      refuseInvalid(commit);
    } catch (error) {
      return Promise.reject(new StoreFailure('append', error));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ commit, resolve, reject });
      void this.#run();
    });
  }

  /** Forgets what is known of locks' logs, which other gateways may have continued. */
  forgetLocks(deviceIds: readonly number[]): void {
    this.#keys.forgetLocks(deviceIds);
  }

  async idle(): Promise<void> {
    while (this.#isRunning) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Closes the log. A commit in doubt is given up. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.idle();
    await this.#client.client.end().catch(() => undefined);
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // What the same turn of the event loop appends is stored together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      await this.#storeAll(this.#takeNext());
      if (this.#mayHaveStaged && this.#waiting.length === 0 && this.#end === undefined) await this.#moveStaged();
    }
    this.#isRunning = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Moves staged events that no other commit moves. If it fails, a later commit does. */
  async #moveStaged(): Promise<void> {
    await this.#store([EMPTY_COMMIT]).catch(() => undefined);
  }

  #takeNext(): Waiting[] {
    let [count, uplinks] = [0, 0];
    for (const { commit } of this.#waiting) {
      uplinks += commit.incoming.length;
      if (count > 0 && uplinks > MAX_UPLINKS_PER_STATEMENT) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Stores commits together; if the database refuses a value of one, each by itself. */
  async #storeAll(group: readonly Waiting[]): Promise<void> {
    try {
      const results = await this.#store(group.map(({ commit }) => commit));
      for (const [index, { resolve }] of group.entries()) resolve(results[index] ?? ALL_STORED);
    } catch (error) {
      if (group.length > 1 && isRefusedValue(error)) for (const each of group) await this.#storeAll([each]);
      else for (const { reject } of group) reject(new StoreFailure('append', error));
    }
  }

  async #store(commits: readonly Commit[]): Promise<CommitResult[]> {
    if (this.#end !== undefined) throw this.#end;
    const { batch, stagedCount, fresh, refused } = await this.#prepare(commits);
    const deviceIds = new Set(batch.uplinks.map(({ deviceId }) => deviceId));
    try {
      const row = await this.#execute(batch);
      if (row === null) this.#mayHaveStaged = true;
      else this.#mayHaveStaged = stagedCount === 0 ? row.has_staged : stagedCount === MAX_MOVED_PER_COMMIT;
      // The commit is stored, whatever becomes of this: rows that are too many now are deleted after a later commit.
      if (row !== null) await answered(this.#trim(batch, row)).catch(() => undefined);
      return commits.map((commit, index) => resultOf(commit, fresh, refused[index] ?? NO_INDEXES, row));
    } catch (error) {
      this.#keys.forget(deviceIds);
      if (error instanceof Fenced) this.#end = error;
      throw error;
    }
  }

  /** Gives ids, in order, and leaves out what the log has already. */
  async #prepare(commits: readonly Commit[]): Promise<Prepared> {
    const sql = this.#connections.read;
    const batch = new CommitBatch();
    const incoming = commits.flatMap((commit) => commit.incoming);
    const fresh = await this.#keys.selectNew(incoming.filter((item) => item.type === 'uplink'));
    // Events that ended commands left for the next commit, whose statement removes them. An empty commit is for them.
    const mayHaveStaged = this.#mayHaveStaged || commits.some(isEmpty);
    const staged = mayHaveStaged ? await readStaged(sql) : [];
    const wanted = await Promise.all(
      commits.map(async ({ merchantEvents = [] }) => ({
        // That a late lock is back comes before what it sent; other events follow from what it sent.
        before: await selectWanted(
          sql,
          merchantEvents.filter(({ type }) => type === 'presence'),
        ),
        after: await selectWanted(
          sql,
          merchantEvents.filter(({ type }) => type !== 'presence'),
        ),
      })),
    );
    const events = [...staged, ...wanted.flatMap(({ before, after }) => [...before, ...after])];
    await this.#keys.prepareLocks([...incoming, ...events].map(({ deviceId }) => deviceId));
    for (const event of staged) batch.addEvent(this.#nextId(event.deviceId), event);
    const refused = commits.map(() => new Set<number>());
    for (const [index, commit] of commits.entries()) {
      for (const event of wanted[index]?.before ?? []) batch.addEvent(this.#nextId(event.deviceId), event);
      this.#addIncoming(batch, commit, fresh);
      batch.addJudged(commit);
      // No later uplink of the lock gets an id up to this one, neither here nor from the gateway that had it before.
      for (const [deviceId, state] of commit.states)
        batch.states.set(deviceId, {
          state,
          throughId: Math.max(this.#claim.ids.lastId, this.#keys.lastIdOf(deviceId)),
        });
      for (const [place, change] of (commit.commands ?? []).entries())
        if (!batch.addCommand(change)) refused[index]?.add(place);
      for (const event of wanted[index]?.after ?? []) batch.addEvent(this.#nextId(event.deviceId), event);
    }
    return { batch, stagedCount: staged.length, fresh, refused };
  }

  #addIncoming(batch: CommitBatch, { incoming }: Commit, fresh: ReadonlySet<IncomingUplink>): void {
    for (const item of incoming) {
      if (item.type === 'uplink') {
        if (fresh.has(item)) batch.addUplink(this.#nextId(item.deviceId), item);
      } else if (item.type === 'quarantine') batch.quarantined.push(item);
      else
        batch.lockEvents.push({ item, afterId: Math.max(this.#claim.ids.lastId, this.#keys.lastIdOf(item.deviceId)) });
    }
  }

  #nextId(deviceId: number): number {
    const id = this.#claim.ids.next(this.#keys.lastIdOf(deviceId), this.time.at(monotonicMs()));
    this.#keys.noteLastId(deviceId, id);
    return id;
  }

  /**
   * Runs the statement, again if it certainly stored nothing since its connection broke. Returns null if its answer was
   * lost and it is stored.
   */
  async #execute(batch: CommitBatch): Promise<CommitResultRow | null> {
    this.#n += 1;
    const parts = commitParts(batch, this.#n);
    const statement = plannedOnce(statementOf(parts));
    for (let tries = 1; ; tries += 1) {
      const { slot, epoch, session } = this.#claim;
      const values = Object.assign({ slot, epoch, session }, ...parts.map((part) => part.values)) as Values;
      const client = this.#client;
      try {
        const row = await answered(client.committing(() => client.sql.get<CommitResultRow>(statement, values)));
        if (row === undefined || row.fence !== 1) throw new Fenced();
        this.#sessions = [session];
        return row;
      } catch (error) {
        if (isDefinite(error)) throw error;
        if (await this.#resolveDoubt(error as Error)) return null;
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  /**
   * Finds out whether the last commit is stored, however long the database is away: were the commit reported as failed
   * while it may be stored, its caller would store again what has no key to recognise a repeat by (findings, counts).
   *
   * @throws what makes it impossible, after which nothing can be stored
   */
  async #resolveDoubt(doubt: Error): Promise<boolean> {
    void this.#client.client.end().catch(() => undefined);
    if (doubt instanceof NoAnswer) this.#connections.suspectIdle();
    this.#onTrouble(doubt.message);
    for (;;)
      try {
        const { client, session, isStored } = await answered(this.#takeNewSession());
        this.#claim.session = session;
        this.#client = client;
        return isStored;
      } catch (error) {
        if (this.#isClosing || failureKind(error) === 'fenced') {
          this.#end = error;
          throw error;
        }
        await new Promise<void>((resolve) => systemClock.after(DOUBT_INTERVAL, resolve));
      }
  }

  async #takeNewSession(): Promise<NewSession> {
    const client = await this.#connections.open();
    try {
      const { slot, epoch } = this.#claim;
      const session = randomNumber();
      this.#sessions.push(session);
      const changed = await client.committing(() =>
        client.sql.run(
          'UPDATE node SET session = @session WHERE slot = @slot AND epoch = @epoch AND session = ANY(@mine)',
          { slot, epoch, session, mine: this.#sessions },
        ),
      );
      if (changed === 0) throw new Fenced();
      const mark = await client.sql.get(
        'SELECT 1 AS found FROM commit_mark WHERE slot = @slot AND epoch = @epoch AND n = @n',
        { slot, epoch, n: this.#n },
      );
      return { client, session, isStored: mark !== undefined };
    } catch (error) {
      void client.client.end().catch(() => undefined);
      throw error;
    }
  }

  /** Deletes what exceeds a lock's limits, and old marks. `crowded`: locks that may have too many connection events. */
  async #trim(batch: CommitBatch, { crowded }: CommitResultRow): Promise<void> {
    const { slot, epoch } = this.#claim;
    const { sql } = this.#client;
    const trim = async (
      table: 'lock_event' | 'quarantine',
      deviceIds: readonly number[],
      max: number,
    ): Promise<void> => {
      await sql.run(
        `DELETE FROM ${table} t USING (SELECT 1 FROM node WHERE slot = @slot AND epoch = @epoch) f,
           unnest(@ids::bigint[]) AS d (id)
         WHERE t.device_id = d.id AND t.id <= (SELECT o.id FROM ${table} o WHERE o.device_id = d.id
           ORDER BY o.id DESC LIMIT 1 OFFSET @max)`,
        { slot, epoch, ids: deviceIds, max },
      );
    };
    if (crowded?.length) await trim('lock_event', crowded, MAX_LOCK_EVENTS_PER_LOCK);
    const quarantined = [...new Set(batch.quarantined.map(({ deviceId }) => deviceId))];
    if (quarantined.length > 0) await trim('quarantine', quarantined, MAX_QUARANTINED_PER_LOCK);
    if (this.#n % RETAINED_MARKS === 0)
      // Only under its own epoch: a late statement must not delete the marks of the slot's next owner.
      await sql.run(
        `DELETE FROM commit_mark m USING (SELECT 1 FROM node WHERE slot = @slot AND epoch = @epoch) f
         WHERE m.slot = @slot AND (m.epoch <> @epoch OR m.n < @oldest)`,
        { slot, epoch, oldest: this.#n - RETAINED_MARKS },
      );
  }
}
