/**
 * Claims and releases of locks in the database. A lock and the phones that act for it are two *parts*, owned apart. A
 * *wish* is a row by which a gateway asks another to release a part. An owner is named by its slot (its part of the
 * log) and its epoch (a random number of the process).
 *
 * A claim is a read, which says who owns the part and whether that epoch still is a gateway's, and then a write that
 * changes the row only if it is as it was read. What the write compares are constants: a write that waited for the row
 * sees the row's new values, but whatever else it looked up would be old. An epoch that has ended never returns, so
 * "its epoch is no gateway's" stays true.
 */
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../../proto/clock.js';
import type { Source } from '../../../../proto/wire/ping.js';
import type { AdoptedPart, Claim, LockOwnership, LockPart } from '../../contract/slots/ownership.js';
import type { Claim as SlotClaim } from '../node-claim.js';
import type { Sql } from '../sql.js';
import type { Writes } from '../writes.js';
import { OwnParts, partKey } from './own-parts.js';

/** How long a claim waits for the owner's release, and how often it looks. */
const RELEASE_LIMIT = Seconds(2);
const LOOK_INTERVAL = Seconds(0.1);
/** After this long an owner is asked again: two gateways that ask at the same time may overwrite each other's wish. */
const ASK_AGAIN_AFTER = Seconds(1);
/** How many parts one statement claims. */
const MAX_CLAIMED_AT_ONCE = 500;

/** A part's row, as it was read; without an owner `slot` is null. */
interface SeenOwner extends LockPart {
  readonly slot: number | null;
  readonly epoch: number | null;
  readonly released: boolean | null;
  /** Whether the epoch is a gateway's. */
  readonly live: boolean;
  /** When the epoch's gateway last ran, if it has ended, ms since the epoch. */
  readonly last_ran_ms: number | null;
}

interface WaitingClaim {
  readonly part: LockPart;
  readonly isWanted: () => boolean;
  /** The owner that was last asked for the part, and when (monotonic): it gives the part away. */
  asked: { readonly epoch: number; readonly atMs: Milliseconds } | undefined;
  readonly untilMs: number;
  readonly resolve: (claim: Claim) => void;
  readonly reject: (error: unknown) => void;
}

const REFUSED: Claim = Object.freeze({ isGranted: false });
const ALWAYS = (): boolean => true;

export interface LockClaimsParts {
  readonly sql: Sql;
  readonly writes: Pick<Writes, 'run'>;
  readonly claim: Pick<SlotClaim, 'slot' | 'epoch'>;
  /** Called before parts become this gateway's: what is remembered of their locks' logs is out of date. */
  readonly onClaim: (deviceIds: readonly number[]) => void;
}

export class LockClaims implements LockOwnership {
  readonly isSole = false;
  readonly #parts: LockClaimsParts;
  readonly #own = new OwnParts();
  /** Parts whose claims are being written: their rows may name this gateway before it knows. */
  readonly #taking = new Set<string>();
  /** Parts whose releases are being written: were one claimed now, the release could follow the claim. */
  readonly #releasing = new Set<string>();
  /** Parts whose release may or may not be stored: nobody owns them until it is written again. */
  readonly #doubtful = new Set<string>();
  /** Parts that this gateway released, and when (monotonic), by key: perhaps nobody has taken them. */
  readonly #released = new Map<string, { readonly part: LockPart; readonly atMs: Milliseconds }>();
  readonly #waiting: WaitingClaim[] = [];
  /** Since when this gateway has known that an epoch has ended (monotonic), for those that still own parts. */
  #endKnownSinceMs: ReadonlyMap<number, Milliseconds> = new Map();
  #isRunning = false;
  #onWish: (part: LockPart) => void = () => undefined;

  constructor(parts: LockClaimsParts) {
    this.#parts = parts;
  }

  owns(deviceId: number, source: Source): boolean {
    return this.#own.has(deviceId, source);
  }

  onWish(listener: (part: LockPart) => void): void {
    this.#onWish = listener;
  }

  claim(part: LockPart, isWanted: () => boolean = ALWAYS): Promise<Claim> {
    return new Promise((resolve, reject) => {
      const untilMs = monotonicMs() + RELEASE_LIMIT;
      this.#waiting.push({ part, isWanted, asked: undefined, untilMs, resolve, reject });
      void this.#run();
    });
  }

  async adopt(limit: number, graceMs: Milliseconds): Promise<readonly AdoptedPart[]> {
    const adopted = await this.#adoptFromEnded(limit, graceMs);
    return adopted.length > 0 ? adopted : await this.#takeBack(limit, graceMs);
  }

  async #adoptFromEnded(limit: number, graceMs: Milliseconds): Promise<AdoptedPart[]> {
    const epochs = await this.#epochsEndedFor(graceMs);
    if (epochs.length === 0) return [];
    const seen = await this.#parts.sql.all<SeenOwner>(
      `SELECT o.device_id AS "deviceId", o.source, o.slot, o.epoch, o.released, false AS live, e.last_ran_ms
       FROM ended_epoch e JOIN device_owner o ON o.epoch = e.epoch WHERE e.epoch = ANY(@epochs::bigint[]) LIMIT @limit`,
      { epochs, limit },
    );
    return await this.#adoptSeen(seen);
  }

  /**
   * Takes back what this gateway released for one that did not take it, as where the client had given up before: nobody
   * would judge the lock's silence, or let its commands expire, until it connects again. If this gateway ends first,
   * its parts are adopted by others, the released ones too.
   */
  async #takeBack(limit: number, graceMs: Milliseconds): Promise<AdoptedPart[]> {
    const nowMs = monotonicMs();
    const due = [...this.#released.values()].filter(({ atMs }) => nowMs - atMs >= graceMs).slice(0, limit);
    if (due.length === 0) return [];
    const seen = await this.#readOwners(due.map(({ part }) => part));
    const left = seen.filter((each) => each.released === true && this.#isMine(each) && this.#mayTake(each));
    const adopted = await this.#adoptSeen(left);
    for (const each of due) {
      const key = partKey(each.part);
      if (this.#released.get(key) === each) this.#released.delete(key);
    }
    return adopted;
  }

  /** Takes parts whose rows were read. Returns those that are this gateway's now. */
  async #adoptSeen(seen: readonly SeenOwner[]): Promise<AdoptedPart[]> {
    const taken = await this.#take(seen);
    return seen
      .filter((each) => taken.has(partKey(each)))
      .map((each) => ({ deviceId: each.deviceId, source: each.source, unheardSinceMs: unheardSince(each) }));
  }

  /** The ended epochs that still own parts, and that this gateway has known for this long. */
  async #epochsEndedFor(graceMs: Milliseconds): Promise<number[]> {
    const rows = await this.#parts.sql.all<{ epoch: number }>(
      'SELECT e.epoch FROM ended_epoch e WHERE EXISTS (SELECT 1 FROM device_owner o WHERE o.epoch = e.epoch)',
    );
    const nowMs = monotonicMs();
    // Those that own nothing any more are forgotten.
    this.#endKnownSinceMs = new Map(rows.map(({ epoch }) => [epoch, this.#endKnownSinceMs.get(epoch) ?? nowMs]));
    return [...this.#endKnownSinceMs].flatMap(([epoch, sinceMs]) => (nowMs - sinceMs >= graceMs ? [epoch] : []));
  }

  async release(parts: readonly LockPart[]): Promise<void> {
    const { writes, claim } = this.#parts;
    const keys = parts.map(partKey);
    for (const part of parts) this.#own.delete(part);
    for (const key of keys) this.#releasing.add(key);
    try {
      await writes.run('release locks', async (sql) => {
        const values = { ...columnsOf(parts), slot: claim.slot, epoch: claim.epoch };
        await sql.run(
          `UPDATE device_owner o SET released = true
           FROM unnest(@devices::bigint[], @sources::text[]) AS t (device_id, source)
           WHERE o.device_id = t.device_id AND o.source = t.source AND o.slot = @slot AND o.epoch = @epoch`,
          values,
        );
        await sql.run(
          `DELETE FROM release_wish w USING unnest(@devices::bigint[], @sources::text[]) AS t (device_id, source)
           WHERE w.device_id = t.device_id AND w.source = t.source AND w.asked_epoch = @epoch`,
          values,
        );
      });
      const atMs = monotonicMs();
      for (const part of parts) {
        this.#doubtful.delete(partKey(part));
        this.#released.set(partKey(part), { part, atMs });
      }
    } catch (error) {
      for (const key of keys) this.#doubtful.add(key);
      throw error;
    } finally {
      for (const key of keys) this.#releasing.delete(key);
    }
  }

  /**
   * Looks for wishes of other gateways, and passes them on. A part whose row names this gateway, although this
   * gateway does not own it, is released at once: the answer to its claim or to its release was lost.
   */
  async lookForWishes(): Promise<void> {
    const { slot, epoch } = this.#parts.claim;
    const wishes = await this.#parts.sql.all<LockPart>(
      `SELECT device_id AS "deviceId", source FROM release_wish
       WHERE asked_slot = @slot AND asked_epoch = @epoch AND at > clock_timestamp() - @limit * interval '1 ms'`,
      { slot, epoch, limit: RELEASE_LIMIT },
    );
    for (const part of wishes) if (this.owns(part.deviceId, part.source)) this.#onWish(part);
    const strays = wishes.filter((part) => {
      const key = partKey(part);
      return !this.owns(part.deviceId, part.source) && !this.#taking.has(key) && !this.#releasing.has(key);
    });
    if (strays.length > 0) await this.release(strays);
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // What the same turn of the event loop claims is claimed together.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#claimAll(this.#takeWanted());
    this.#isRunning = false;
  }

  /** The next claims; those that nobody waits for, and that changed nothing so far, are refused. */
  #takeWanted(): WaitingClaim[] {
    const next = this.#waiting.splice(0, MAX_CLAIMED_AT_ONCE);
    const wanted = next.filter(({ isWanted, asked }) => asked !== undefined || isWanted());
    for (const { resolve } of next.filter((claim) => !wanted.includes(claim))) resolve(REFUSED);
    return wanted;
  }

  async #claimAll(waiting: readonly WaitingClaim[]): Promise<void> {
    if (waiting.length === 0) return;
    try {
      const seen = await this.#readOwners(waiting.map(({ part }) => part));
      const byKey = new Map(seen.map((each) => [partKey(each), each]));
      const claims = this.#refuseLeft(waiting, byKey);
      const keys = new Set(claims.map(({ part }) => partKey(part)));
      const taken = await this.#take(seen.filter((each) => keys.has(partKey(each)) && this.#mayTake(each)));
      const held = claims.filter(({ part }) => !taken.has(partKey(part)));
      for (const { part, resolve } of claims) {
        const owner = byKey.get(partKey(part));
        if (taken.has(partKey(part)))
          resolve({ isGranted: true, unheardSinceMs: owner === undefined ? null : unheardSince(owner) });
      }
      await this.#ask(held, byKey);
      this.#lookAgain(held);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  /**
   * Refuses the claims that nobody waits for any more, unless the owner was asked and gives the part away: it is better
   * left to the gateway that its client tries next. Returns the others.
   */
  #refuseLeft(claims: readonly WaitingClaim[], owners: ReadonlyMap<string, SeenOwner>): WaitingClaim[] {
    const isLeft = ({ part, isWanted, asked }: WaitingClaim): boolean => {
      const owner = owners.get(partKey(part));
      const isGivenAway = owner?.released === true || (owner?.live === true && owner.epoch === asked?.epoch);
      return !isWanted() && !isGivenAway;
    };
    const left = new Set(claims.filter(isLeft));
    for (const { resolve } of left) resolve(REFUSED);
    return claims.filter((claim) => !left.has(claim));
  }

  async #readOwners(parts: readonly LockPart[]): Promise<SeenOwner[]> {
    return await this.#parts.sql.all<SeenOwner>(
      `SELECT t.device_id AS "deviceId", t.source, o.slot, o.epoch, o.released, n.slot IS NOT NULL AS live,
         e.last_ran_ms
       FROM (SELECT DISTINCT * FROM unnest(@devices::bigint[], @sources::text[]) AS k (device_id, source)) t
       LEFT JOIN device_owner o ON o.device_id = t.device_id AND o.source = t.source
       LEFT JOIN node n ON n.slot = o.slot AND n.epoch = o.epoch
       LEFT JOIN ended_epoch e ON e.epoch = o.epoch`,
      columnsOf(parts),
    );
  }

  #mayTake(seen: SeenOwner): boolean {
    if (this.#doubtful.has(partKey(seen)) || this.#releasing.has(partKey(seen))) return false;
    return seen.slot === null || seen.released === true || !seen.live || this.#isMine(seen);
  }

  /** Whether the row names this gateway, which may not know that: the answer to its claim may have been lost. */
  #isMine({ slot, epoch }: SeenOwner): boolean {
    return slot === this.#parts.claim.slot && epoch === this.#parts.claim.epoch;
  }

  /** Takes the parts whose rows are still as they were read. Returns the keys of those that are this gateway's now. */
  async #take(seen: readonly SeenOwner[]): Promise<ReadonlySet<string>> {
    if (seen.length === 0) return new Set();
    const { writes, claim, onClaim } = this.#parts;
    const keys = seen.map(partKey);
    for (const key of keys) this.#taking.add(key);
    try {
      const rows = await writes.run('claim locks', (sql) =>
        sql.all<LockPart>(TAKE, {
          ...columnsOf(seen),
          slots: seen.map(({ slot }) => slot),
          epochs: seen.map(({ epoch }) => epoch),
          released: seen.map((each) => each.released),
          slot: claim.slot,
          epoch: claim.epoch,
        }),
      );
      // Before they are owned: an uplink of theirs may be stored from then on.
      onClaim(rows.map(({ deviceId }) => deviceId));
      for (const row of rows) this.#own.add(row);
      return new Set(rows.map(partKey));
    } finally {
      for (const key of keys) this.#taking.delete(key);
    }
  }

  /** Asks the owners of parts, by the part's key, to release them, unless they were asked just now. */
  async #ask(claims: readonly WaitingClaim[], owners: ReadonlyMap<string, SeenOwner>): Promise<void> {
    const asked: SeenOwner[] = [];
    const atMs = monotonicMs();
    for (const claim of claims) {
      const owner = owners.get(partKey(claim.part));
      if (owner === undefined || owner.epoch === null || !owner.live || owner.released === true) continue;
      const isAsked = claim.asked?.epoch === owner.epoch && atMs - claim.asked.atMs < ASK_AGAIN_AFTER;
      if (isAsked) continue;
      claim.asked = { epoch: owner.epoch, atMs };
      asked.push(owner);
    }
    if (asked.length === 0) return;
    await this.#parts.writes.run('ask for locks', (sql) =>
      sql.run(
        `INSERT INTO release_wish (device_id, source, asked_slot, asked_epoch, at)
         SELECT t.device_id, t.source, t.slot, t.epoch, clock_timestamp()
         FROM unnest(@devices::bigint[], @sources::text[], @slots::bigint[], @epochs::bigint[])
           AS t (device_id, source, slot, epoch) ORDER BY t.device_id, t.source
         ON CONFLICT (device_id, source) DO UPDATE SET
           asked_slot = excluded.asked_slot, asked_epoch = excluded.asked_epoch, at = excluded.at`,
        { ...columnsOf(asked), slots: asked.map(({ slot }) => slot), epochs: asked.map(({ epoch }) => epoch) },
      ),
    );
  }

  #lookAgain(held: readonly WaitingClaim[]): void {
    const patient = held.filter(({ untilMs }) => monotonicMs() < untilMs);
    for (const { resolve } of held.filter((each) => !patient.includes(each))) resolve(REFUSED);
    if (patient.length === 0) return;
    systemClock.after(LOOK_INTERVAL, () => {
      this.#waiting.push(...patient);
      void this.#run();
    });
  }
}

/**
 * The write of a claim, in a transaction that first locks the row of this gateway's slot and so makes sure that its own
 * epoch lasts. `t`: the parts' rows as they were read; `i`: parts that had no owner; `u`: parts whose row is unchanged.
 */
const TAKE = `WITH t AS (
    SELECT * FROM unnest(@devices::bigint[], @sources::text[], @slots::bigint[], @epochs::bigint[],
      @released::boolean[]) AS t (device_id, source, slot, epoch, released)),
  i AS (
    INSERT INTO device_owner (device_id, source, slot, epoch, released)
    SELECT device_id, source, @slot, @epoch, false FROM t WHERE slot IS NULL ORDER BY device_id, source
    ON CONFLICT DO NOTHING RETURNING device_id, source),
  u AS (
    UPDATE device_owner o SET slot = @slot, epoch = @epoch, released = false FROM t
    WHERE o.device_id = t.device_id AND o.source = t.source
      AND o.slot = t.slot AND o.epoch = t.epoch AND o.released = t.released
    RETURNING o.device_id, o.source)
  SELECT device_id AS "deviceId", source FROM i UNION ALL SELECT device_id, source FROM u`;

function columnsOf(parts: readonly LockPart[]): { readonly devices: number[]; readonly sources: Source[] } {
  return { devices: parts.map(({ deviceId }) => deviceId), sources: parts.map(({ source }) => source) };
}

/** Since when nobody certainly heard the part; null if its owner released it, or it had none. */
function unheardSince({ slot, released, live, last_ran_ms: lastRanMs }: SeenOwner): number | null {
  return slot === null || released === true || live ? null : lastRanMs;
}
