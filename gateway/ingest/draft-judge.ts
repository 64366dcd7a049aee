/**
 * Judges what waits, one after the other, and puts what is to be stored of each into a draft (commit-draft.ts).
 *
 * It is done while the commit before may still be on its way to the disk: what that one has of a name is looked up in
 * its draft, since the store does not show it yet.
 */

import type { UplinkCopy, Verdict } from '../../proto/power/judge/event.js';
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

/** A lock's word on a command, new, and stored. */
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

  /** `underWay` is the draft that the store is making durable at this moment, if there is one. */
  constructor(locks: Locks, store: Pick<Store, 'readDigests' | 'why'>, underWay: () => CommitDraft | undefined) {
    this.#locks = locks;
    this.#store = store;
    this.#underWay = underWay;
  }

  /**
   * Judges it and puts what is to be stored of it into the draft. Undefined where that is done when it returns.
   *
   * @throws what the store throws
   */
  enter(waiting: Judgeable, draft: CommitDraft): Promise<void> | undefined {
    draft.batch.push(waiting);
    if (waiting.type === 'uplink') return this.#enterUplink(waiting, draft);
    if (waiting.type === 'rejection') this.#enterRejection(waiting, draft);
    else this.#enterHappening(waiting, draft);
    return undefined;
  }

  #enterRejection({ sender, receivedAtMs, bytes, rejection }: QueuedRejection, draft: CommitDraft): void {
    const { deviceId, credentialId } = sender;
    const { code, message } = rejection;
    draft.incoming.push({ type: 'quarantine', deviceId, credentialId, receivedAtMs, code, message, bytes });
  }

  #enterHappening(happening: QueuedEvent, draft: CommitDraft): void {
    const { deviceId, mac, event } = happening;
    const lock = this.#locks.known(deviceId, mac, event.atMs);
    const logged = loggedEvent(event);
    if (logged !== undefined) draft.incoming.push({ type: 'lock-event', deviceId, atMs: event.atMs, event: logged });
    // Durable before the bytes leave: what may have reached a lock is never taken for unsent.
    if (event.type === 'command') draft.commands.push({ type: 'sent', id: event.id, atMs: event.atMs });
    draft.touch(lock);
    // Ticks are in no log, and of the rest the log does not say between which uplinks of one commit it was. Where the
    // judge fails the draft leaves the state out.
    draft.changed.add(lock);
    const verdict = this.#locks.judge(lock, event);
    happening.findings = verdict.findings;
    noteVerdict(deviceId, verdict, draft);
  }

  #enterUplink(taken: PendingUplink, draft: CommitDraft): Promise<void> | undefined {
    const { deviceId, mac } = taken.sender;
    const lock = this.#locks.known(deviceId, mac, taken.receivedAtMs);
    if (lock.marks.length > 0 && taken.source === 'lock')
      taken.life = lifeOf(lock.marks, taken.uplink.timeMs, taken.receivedAtMs);
    if (this.#locks.isNewest(lock, taken.source, taken)) {
      this.#judgeUplink(lock, taken, draft);
      return undefined;
    }
    return this.#enterOld(lock, taken, draft);
  }

  /** One that does not come after all others of its lock: its name may have been used before. */
  async #enterOld(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<void> {
    taken.copy = await this.#copyOf(lock, taken, draft);
    this.#judgeUplink(lock, taken, draft);
  }

  #judgeUplink(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): void {
    const locks = this.#locks;
    const { deviceId, source, copy } = taken;
    const verdict = locks.judge(lock, taken);
    taken.findings = verdict.findings;
    const hasFound = noteVerdict(deviceId, verdict, draft);
    draft.touch(lock);
    const isJudged = lock.state.unjudged === undefined;
    if (isJudged && isInLogAlone(taken) && !hasFound && lock.isStored) locks.unsettle(lock);
    else if (isJudged) draft.changed.add(lock);
    if (copy === 'repeat') return;
    // A phone's uplink says where the phone is, and is none of the lock's own.
    if (isJudged && source === 'lock') locks.note(lock, taken);
    draft.add(taken);
    const ack = ackOf(taken);
    if (ack === undefined) return;
    // The command's new state goes into the very commit of the uplink.
    const { commandId: id, state, detail, atMs } = ack;
    draft.commands.push({ type: 'acknowledged', id, deviceId, state, detail, atMs });
  }

  /** Whether the uplink's name was used before. */
  async #copyOf(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<UplinkCopy> {
    const { credentialId, boot, sequence, digest } = taken;
    // Looked at before the store is: what is under way now is in the store by the time that it is under way no longer.
    const underWay = this.#underWay()?.digestsOf(credentialId, boot, sequence) ?? [];
    const inDraft = draft.digestsOf(credentialId, boot, sequence);
    const known = [...underWay, ...inDraft, ...(await this.#store.readDigests(credentialId, boot, sequence))];
    if (known.length === 0) return 'new';
    // Of what was erased only the name is left, so whatever comes under it is taken for it.
    if (known.some((each) => each.length === 0 || each.equals(digest))) return 'repeat';
    if (lock.marks.length === 0 || taken.source === 'phone') return 'conflict';
    return (await this.#isNamedInLife(lock, taken, draft)) ? 'conflict' : 'new';
  }

  /** Whether an uplink of the same life has the name: one of another life is no contradiction. */
  async #isNamedInLife(lock: KnownLock, taken: PendingUplink, draft: CommitDraft): Promise<boolean> {
    const { credentialId, boot, sequence, life } = taken;
    const waiting = [this.#underWay(), draft].flatMap((each) => each?.named(credentialId, boot, sequence) ?? []);
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

/** What a trace will want to know; the passing of time is no event of it. */
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

/** Puts what judging brought into the draft. Returns whether it brought anything. */
function noteVerdict(deviceId: number, { withdrawn, findings }: Verdict, draft: CommitDraft): boolean {
  if (findings.length === 0 && withdrawn.length === 0) return false;
  draft.judged.push({ deviceId, withdrawn, findings });
  return true;
}

/**
 * Whether judging the log once more leads to the same belief, so that no state need be written for it: a lock's new
 * ping, of which the log has everything. It has no repeats, nor that one contradicts another; the rest is rare.
 */
function isInLogAlone({ source, copy, uplink }: PendingUplink): boolean {
  return source === 'lock' && copy === 'new' && uplink.body.kind !== 'ack';
}

/** What an uplink answers to a command; undefined where it is no answer. A phone has no say in commands. */
export function ackOf({ sender, source, uplink, atMs }: PendingUplink): Acknowledgement | undefined {
  const { body } = uplink;
  if (body.kind !== 'ack' || source === 'phone') return undefined;
  const { deviceId, mac } = sender;
  const { commandId, result, detail } = body;
  return { deviceId, mac, commandId, state: STATE_OF_RESULT[result], detail, atMs };
}
