/**
 * Judges queued uplinks and events one after the other: each updates the judge's belief about its lock. What must be
 * stored is added to the draft of the next commit (commit-draft.ts).
 *
 * While the store is still writing the previous commit, the uplinks of that commit are looked up in its draft, since
 * the store does not return them yet.
 */
import type { UplinkNovelty, Verdict } from '../../proto/power/judge/event.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { CommandAck, Source } from '../../proto/wire/ping.js';
import { lifeOf } from '../../proto/wire/uplink-life.js';
import type { KnownLock, Locks } from '../locks/locks.js';
import type { AnsweredState } from '../store/contract/command-record.js';
import type { LockEvent, Store } from '../store/contract/store.js';
import { storedLife } from '../store/contract/stored-uplink.js';
import type { CommitDraft } from './commit-draft.js';
import type { DeviceEvent, Judgeable, QueuedEvent, QueuedRejection } from './ingest-queue.js';
import type { PendingUplink } from './pending-uplink.js';

/** A lock's acknowledgement of a command. It is new (not a repeat) and stored. */
export interface Acknowledgement {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly commandId: number;
  readonly state: AnsweredState;
  readonly detail: string;
  /** When it was received, by the run's clock. */
  readonly atMs: number;
}

export class DraftJudge {
  readonly #locks: Locks;
  readonly #store: Pick<Store, 'readDigests' | 'why'>;
  readonly #underWay: () => CommitDraft | undefined;

  /** @param underWay returns the draft that the store is writing, if any */
  constructor(locks: Locks, store: Pick<Store, 'readDigests' | 'why'>, underWay: () => CommitDraft | undefined) {
    this.#locks = locks;
    this.#store = store;
    this.#underWay = underWay;
  }

  /**
   * Judges `waiting` and adds it to the draft. Returns a promise only if the store must be read; undefined means done.
   *
   * @throws StoreFailure
   */
  add(waiting: Judgeable, draft: CommitDraft): Promise<void> | undefined {
    draft.batch.push(waiting);
    if (waiting.type === 'uplink') return this.#addUplink(waiting, draft);
    if (waiting.type === 'rejection') this.#addRejection(waiting, draft);
    else this.#addEvent(waiting, draft);
    return undefined;
  }

  #addRejection({ sender, receivedAtMs, bytes, rejection }: QueuedRejection, draft: CommitDraft): void {
    const { deviceId, credentialId } = sender;
    const { code, message } = rejection;
    draft.incoming.push({ type: 'quarantine', deviceId, credentialId, receivedAtMs, code, message, bytes });
  }

  #addEvent(queued: QueuedEvent, draft: CommitDraft): void {
    const { deviceId, mac, event } = queued;
    const lock = this.#locks.known(deviceId, mac, event.atMs);
    const logged = loggedEvent(event);
    if (logged !== undefined) draft.incoming.push({ type: 'lock-event', deviceId, atMs: event.atMs, event: logged });
    // Stored before the command is sent: a command that may have reached a lock must never count as unsent.
    if (event.type === 'command') draft.commands.push({ type: 'sent', id: event.id, atMs: event.atMs });
    draft.touch(lock);
    // The state must be stored, since replaying the log would not reproduce it: ticks are not logged, and the log does
    // not record between which uplinks of a commit other events came. If the judge fails, the state is not stored.
    draft.changed.add(lock);
    const verdict = this.#locks.judge(lock, event);
    queued.findings = verdict.findings;
    noteVerdict(deviceId, verdict, draft);
  }

  #addUplink(taken: PendingUplink, draft: CommitDraft): Promise<void> | undefined {
    const { deviceId, mac } = taken.sender;
    const lock = this.#locks.known(deviceId, mac, taken.receivedAtMs);
    // A lock that was reflashed starts a new life and counts its boots from 1 again (uplink-life.ts).
    if (lock.marks.length > 0 && taken.source === 'lock')
      taken.life = lifeOf(lock.marks, taken.uplink.timeMs, taken.receivedAtMs);
    if (this.#locks.isNewest(lock, taken.source, taken)) {
      this.#judgeUplink(lock, taken, draft);
      return undefined;
    }
    return this.#addNotNewest(lock, taken, draft);
  }

  /** Judges an uplink whose key may have been used before, since it is not newer than all others of its lock. */
  async #addNotNewest(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<void> {
    taken.novelty = await this.#noveltyOf(lock, taken, draft);
    this.#judgeUplink(lock, taken, draft);
  }

  #judgeUplink(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): void {
    const locks = this.#locks;
    const { deviceId, source, novelty } = taken;
    const verdict = locks.judge(lock, taken);
    taken.findings = verdict.findings;
    const hasFound = noteVerdict(deviceId, verdict, draft);
    draft.touch(lock);
    const isJudged = lock.state.unjudged === undefined;
    if (isJudged && isReplayable(taken) && !hasFound && lock.isStored) locks.markDirty(lock);
    else if (isJudged) draft.changed.add(lock);
    if (novelty === 'repeat') return;
    // A phone's uplink is about the phone, not about the lock.
    if (isJudged && source === 'lock') locks.noteUplink(lock, taken);
    draft.add(taken);
    const ack = ackOf(taken);
    if (ack === undefined) return;
    // The command's new state goes into the same commit as the uplink.
    const { commandId: id, state, detail, atMs } = ack;
    draft.commands.push({ type: 'acknowledged', id, deviceId, state, detail, atMs });
  }

  /**
   * Whether the uplink's key is new, or was used before by the same content (a repeat) or other content (a conflict).
   */
  async #noveltyOf(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<UplinkNovelty> {
    const { credentialId, boot, sequence, digest } = taken;
    // The draft being written is read before the store: in the other order, a commit that ends in between is missed.
    const underWay = this.#underWay()?.digestsOf(credentialId, boot, sequence) ?? [];
    const inDraft = draft.digestsOf(credentialId, boot, sequence);
    const known = [...underWay, ...inDraft, ...(await this.#store.readDigests(credentialId, boot, sequence))];
    if (known.length === 0) return 'new';
    // An erased uplink leaves only its key, so any uplink with this key counts as its repeat.
    if (known.some((each) => each.length === 0 || each.equals(digest))) return 'repeat';
    if (lock.marks.length === 0 || taken.source === 'phone') return 'conflict';
    return (await this.#isKeyUsedInLife(lock, taken, draft)) ? 'conflict' : 'new';
  }

  /** Whether an uplink of the same life has this key. An uplink of another life does not conflict. */
  async #isKeyUsedInLife(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<boolean> {
    const { credentialId, boot, sequence, life } = taken;
    const waiting = [this.#underWay(), draft].flatMap((each) => each?.withKey(credentialId, boot, sequence) ?? []);
    if (waiting.some((each) => each.life === life)) return true;
    const stored = await this.#store.why.findUplinks(lock.deviceId, boot, sequence);
    return stored.some((each) => each.credentialId === credentialId && storedLife(each, lock.marks) === life);
  }
}

const STATE_OF_RESULT: Readonly<Record<CommandAck['result'], AnsweredState>> = {
  ok: 'done',
  rejected: 'rejected',
  failed: 'failed',
};

/** The event in the form of the log and of traces; undefined for a tick, which is not logged. */
function loggedEvent(event: DeviceEvent): LockEvent | undefined {
  if (event.type === 'connect') return { event: 'connect', ...sourceOf(event) };
  if (event.type === 'disconnect') return { event: 'disconnect', ...sourceOf(event), cause: event.cause };
  if (event.type === 'gateway') return { event: 'gateway', state: event.state };
  if (event.type === 'command') {
    const { id, command, expiresMs } = event;
    return { event: 'command', id, command, ...(expiresMs !== undefined && { expiresMs }) };
  }
  return undefined;
}

function sourceOf({ source }: { readonly source: Source }): { readonly source?: 'phone' } {
  return source === 'phone' ? { source } : {};
}

/** Adds the verdict to the draft. Returns whether it has findings or withdrawals. */
function noteVerdict(deviceId: number, { withdrawn, findings }: Verdict, draft: CommitDraft): boolean {
  if (findings.length === 0 && withdrawn.length === 0) return false;
  draft.judged.push({ deviceId, withdrawn, findings });
  return true;
}

/**
 * Whether replaying the log leads to the same belief, so that the state need not be written. True for a lock's new
 * ping: a repeat is not logged, a conflict would be replayed as new, and other kinds of uplinks are rare.
 */
function isReplayable({ source, novelty, uplink }: PendingUplink): boolean {
  return source === 'lock' && novelty === 'new' && uplink.body.kind !== 'ack';
}

/** The acknowledgement in an uplink; undefined if it has none. Phones can't acknowledge commands. */
export function ackOf({ sender, source, uplink, atMs }: PendingUplink): Acknowledgement | undefined {
  const { body } = uplink;
  if (body.kind !== 'ack' || source === 'phone') return undefined;
  const { deviceId, mac } = sender;
  const { commandId, result, detail } = body;
  return { deviceId, mac, commandId, state: STATE_OF_RESULT[result], detail, atMs };
}
