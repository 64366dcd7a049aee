/**
 * Judges queued uplinks and events one after the other: the judge (proto/power/judge) checks each against the
 * protocol's rules and updates its belief, which is what the judge remembers about the lock. What must be stored is
 * added to the draft of the next commit (commit-draft.ts).
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
import type { LockEvent } from '../store/contract/log/log-entry.js';
import { storedLife } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
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
  /** When it was received, by the run's clock (wall-clock time, except in a sped-up simulation). */
  readonly atMs: number;
}

export class DraftJudge {
  readonly #locks: Locks;
  readonly #store: Pick<Store, 'readDigests' | 'why'>;
  readonly #writingDraft: () => CommitDraft | undefined;

  /** @param writingDraft returns the draft that the store is writing, if any */
  constructor(locks: Locks, store: Pick<Store, 'readDigests' | 'why'>, writingDraft: () => CommitDraft | undefined) {
    this.#locks = locks;
    this.#store = store;
    this.#writingDraft = writingDraft;
  }

  /**
   * Judges `item` and adds it to the draft. Returns a promise only if the store must be read; undefined means done.
   *
   * @throws StoreFailure
   */
  add(item: Judgeable, draft: CommitDraft): Promise<void> | undefined {
    draft.batch.push(item);
    if (item.type === 'uplink') return this.#addUplink(item, draft);
    if (item.type === 'rejection') this.#addRejection(item, draft);
    else this.#addEvent(item, draft);
    return undefined;
  }

  #addRejection({ sender, receivedAtMs, bytes, rejection }: QueuedRejection, draft: CommitDraft): void {
    const { deviceId, credentialId } = sender;
    const { code, message } = rejection;
    draft.incoming.push({ type: 'quarantine', deviceId, credentialId, receivedAtMs, code, message, bytes });
  }

  #addEvent(queued: QueuedEvent, draft: CommitDraft): void {
    const { deviceId, mac, event } = queued;
    const logged = loggedEvent(event);
    if (logged !== undefined) draft.incoming.push({ type: 'lock-event', deviceId, atMs: event.atMs, event: logged });
    // Stored before the command is sent: a command that may have reached a lock must never count as unsent.
    if (event.type === 'command') draft.changeCommand({ type: 'sent', id: event.id, atMs: event.atMs }, queued);
    // A phone's connection, while the lock's state is elsewhere: only the log gets it.
    if (!this.#locks.isHere(deviceId)) return;
    const lock = this.#locks.known(deviceId, mac, event.atMs);
    draft.touch(lock);
    // The state must be stored, since replaying the log would not reproduce it: ticks are not logged, and the log does
    // not record between which uplinks of a commit other events came. If the judge fails, the state is not stored.
    draft.changed.add(lock);
    const verdict = this.#locks.judge(lock, event);
    queued.findings = verdict.findings;
    addVerdict(deviceId, verdict, draft);
  }

  #addUplink(pending: PendingUplink, draft: CommitDraft): Promise<void> | undefined {
    const { deviceId, mac } = pending.sender;
    if (!this.#locks.isHere(deviceId)) return this.#addGuest(pending, draft);
    const lock = this.#locks.known(deviceId, mac, pending.receivedAtMs);
    // The marks are the times at which the lock was reflashed. Each starts a new "life" of the lock, which counts its
    // boots from 1 again (uplink-life.ts).
    if (lock.marks.length > 0 && pending.source === 'lock')
      pending.life = lifeOf(lock.marks, pending.uplink.timeMs, pending.receivedAtMs);
    if (this.#locks.isNewest(lock, pending.source, pending)) {
      this.#judgeUplink(lock, pending, draft);
      return undefined;
    }
    return this.#addNotNewest(lock, pending, draft);
  }

  /**
   * Adds a phone's uplink, which does not change the lock's state (protocol.md §3): that state is at another gateway,
   * or has not been read yet.
   */
  async #addGuest(pending: PendingUplink, draft: CommitDraft): Promise<void> {
    const { deviceId, mac } = pending.sender;
    // A new state stands in for the one that is elsewhere, and is dropped afterwards.
    const guest = this.#locks.guest(deviceId, mac, pending.receivedAtMs);
    pending.novelty = await this.#noveltyOf(guest, pending, draft);
    const verdict = this.#locks.judge(guest, pending);
    pending.findings = verdict.findings;
    addVerdict(deviceId, verdict, draft);
    if (pending.novelty !== 'repeat') draft.add(pending);
  }

  /** Judges an uplink that is not newer than all other uplinks of its lock, so its key may have been used before. */
  async #addNotNewest(lock: KnownLock, pending: PendingUplink, draft: CommitDraft): Promise<void> {
    pending.novelty = await this.#noveltyOf(lock, pending, draft);
    this.#judgeUplink(lock, pending, draft);
  }

  #judgeUplink(lock: KnownLock, pending: PendingUplink, draft: CommitDraft): void {
    const locks = this.#locks;
    const { deviceId, source, novelty } = pending;
    const verdict = locks.judge(lock, pending);
    pending.findings = verdict.findings;
    const hasFindings = addVerdict(deviceId, verdict, draft);
    draft.touch(lock);
    // A replay starts from a stored state. Without one, or if the replay would lead elsewhere, this commit stores the
    // state.
    const isJudged = lock.state.unjudged === undefined;
    if (isJudged && isReplayable(pending) && !hasFindings && lock.isStored) locks.markDirty(lock);
    else if (isJudged) draft.changed.add(lock);
    if (novelty === 'repeat') return;
    // A phone's uplink is about the phone, not about the lock.
    if (isJudged && source === 'lock') locks.noteUplink(lock, pending);
    draft.add(pending);
    const ack = ackOf(pending);
    if (ack === undefined) return;
    // The command's new state goes into the same commit as the uplink.
    const { commandId: id, state, detail, atMs } = ack;
    draft.changeCommand({ type: 'acknowledged', id, deviceId, state, detail, atMs }, pending);
  }

  /**
   * Whether the uplink's key (credential, boot, sequence) is new, or was used before by an uplink with the same content
   * (a repeat) or with other content (a conflict).
   */
  async #noveltyOf(lock: KnownLock, pending: PendingUplink, draft: CommitDraft): Promise<UplinkNovelty> {
    const { credentialId, boot, sequence, digest } = pending;
    // The draft being written is read before the store: in the other order, a commit that ends in between is missed.
    const unstored = [this.#writingDraft(), draft].flatMap(
      (each) => each?.digestsOf(credentialId, boot, sequence) ?? [],
    );
    const digests = [...unstored, ...(await this.#store.readDigests(credentialId, boot, sequence))];
    if (digests.length === 0) return 'new';
    // An erased uplink leaves its key and an empty digest, so any uplink with this key counts as its repeat.
    if (digests.some((each) => each.length === 0 || each.equals(digest))) return 'repeat';
    if (lock.marks.length === 0 || pending.source === 'phone') return 'conflict';
    return (await this.#isKeyUsedInLife(lock, pending, draft)) ? 'conflict' : 'new';
  }

  /** Whether an uplink of the same life has this key. An uplink of another life does not conflict. */
  async #isKeyUsedInLife(lock: KnownLock, pending: PendingUplink, draft: CommitDraft): Promise<boolean> {
    const { credentialId, boot, sequence, life } = pending;
    const unstored = [this.#writingDraft(), draft].flatMap((each) => each?.withKey(credentialId, boot, sequence) ?? []);
    if (unstored.some((each) => each.life === life)) return true;
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

/** Adds the verdict to the draft. Returns whether it has findings or withdraws earlier ones. */
function addVerdict(deviceId: number, { withdrawn, findings }: Verdict, draft: CommitDraft): boolean {
  if (findings.length === 0 && withdrawn.length === 0) return false;
  draft.judged.push({ deviceId, withdrawn, findings });
  return true;
}

/**
 * Whether replaying the log leads to the same belief, so that the state need not be written. True for a lock's new
 * ping: a repeat is not logged, a conflict would be replayed as new, and other kinds of uplinks are rare. A phone's
 * uplink advances the belief's time, but a replay skips it (locks/rebuild-state.ts).
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
