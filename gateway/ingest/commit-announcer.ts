/**
 * Announces what a commit stored, when it is on disk and its uplinks are answered: to listeners of the gateway's events
 * (the live view, figures, notices), to the commands, and to the webhook workers. Called by the commit loop
 * (commit-loop.ts) for each commit, so it reads nothing from the store and awaits nothing.
 */

import { bootBackSinceMs } from '../../proto/power/judge/boots.js';
import type { Finding } from '../../proto/power/judge/event.js';
import type { KnownLock } from '../locks/locks.js';
import type { CommitDraft, PresenceChange } from './commit-draft.js';
import { ackOf } from './draft-judge.js';
import type { IngestParts } from './ingest-parts.js';
import type { Judgeable } from './ingest-queue.js';
import { messageOf } from './judging.js';
import type { PendingUplink } from './pending-uplink.js';

export type AnnouncerParts = Pick<
  IngestParts,
  'locks' | 'clock' | 'events' | 'onStored' | 'onMerchantEvents' | 'commands'
>;

export class CommitAnnouncer {
  readonly #parts: AnnouncerParts;

  constructor(parts: AnnouncerParts) {
    this.#parts = parts;
  }

  /** Announces the contents of a stored commit, and the changes of presence that it led to. */
  announce(draft: CommitDraft, presenceChanges: readonly PresenceChange[]): void {
    const { locks, clock, events, onStored, commands } = this.#parts;
    this.#announceItems(draft.batch);
    for (const { lock, presence } of presenceChanges)
      events.emit('presence', { atMs: clock.now(), mac: lock.mac, presence });
    if (draft.touched.length > 0) events.emit('locks-changed', { locks: draft.touched });
    for (const lock of draft.touched) this.#guardLock(lock, () => commands.judged(lock));
    for (const { deviceId, findings } of draft.judged)
      this.#guardLock(locks.find(deviceId), () => this.#announceBootBack(deviceId, findings));
    if (draft.merchantIds.size > 0) onStored(draft.merchantIds, draft.uplinkCount);
    if (draft.merchantEvents.length > 0) this.#parts.onMerchantEvents?.();
  }

  /** Announces the commit's items in order. Creates event objects only if there are listeners. */
  #announceItems(items: readonly Judgeable[]): void {
    const { events, commands, locks } = this.#parts;
    const hasListeners = events.listenerCount('uplink') > 0;
    const uplinks: PendingUplink[] = [];
    for (const item of items) {
      if (item.type === 'uplink') {
        uplinks.push(item);
        if (hasListeners) events.emit('uplink', item.report());
        const ack = item.novelty === 'repeat' ? undefined : ackOf(item);
        if (ack !== undefined)
          this.#guardLock(locks.find(ack.deviceId), () => commands.acknowledged(ack, item.isRefused));
      } else if (item.type === 'rejection') {
        const { receivedAtMs: atMs, sender, rejection, bytes } = item;
        events.emit('quarantined', { atMs, mac: sender.mac, ...rejection, bytes });
      } else {
        item.announce(item.isRefused);
        const { atMs } = item.event;
        for (const finding of item.findings) events.emit('finding', { atMs, mac: item.mac, finding });
      }
    }
    if (uplinks.length > 0) events.emit('stored', { uplinks });
  }

  /** Reports a lock whose boot counter went back: its flash may have been wiped. */
  #announceBootBack(deviceId: number, findings: readonly Finding[]): void {
    if (!findings.some(({ rule }) => rule === 'boot-back')) return;
    const { locks, clock, events } = this.#parts;
    const lock = locks.find(deviceId);
    const sinceMs = lock === undefined ? undefined : bootBackSinceMs(lock.state.belief);
    if (lock !== undefined && sinceMs !== undefined)
      events.emit('boot-back', { atMs: clock.now(), mac: lock.mac, sinceMs });
  }

  /**
   * Runs `work`; if it throws, stops judging the lock. A bug with one lock must not block other locks'
   * acknowledgements.
   */
  #guardLock(lock: KnownLock | undefined, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (lock === undefined) throw error;
      this.#parts.locks.stopJudging(lock, messageOf(error));
    }
  }
}
