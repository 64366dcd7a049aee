/**
 * Holds changes of notices that wait for their write: one change for each kind and subject (what the notice is about),
 * however often the notice changed. Beyond a limit, the new subjects of a kind are counted together. Does no I/O.
 */
import type { NoticeChange, NoticeKind } from '../store/contract/operators/notice-store.js';

/** Maximum number of waiting kinds and subjects. Closings may exceed it: there are at most as many as open notices. */
export const MAX_PENDING_CHANGES = 5_000;

/** The subject of the notice that several subjects share. */
export const OTHERS = 'others';

export class PendingNotices {
  readonly #changes = new Map<string, NoticeChange>();

  get size(): number {
    return this.#changes.size;
  }

  /** Adds an occurrence of a notice. `atMs` is wall-clock time, ms since the epoch. */
  note(kind: NoticeKind, subject: string, text: string, atMs: number): void {
    const isNew = !this.#changes.has(keyOf(kind, subject));
    const usedSubject = isNew && this.#changes.size >= MAX_PENDING_CHANGES ? OTHERS : subject;
    const change = { kind, subject: usedSubject, text, count: 1, firstAtMs: atMs, lastAtMs: atMs, resolvedAtMs: null };
    this.#add(this.#changes.get(keyOf(kind, usedSubject)), change);
  }

  /** Resolves a notice, if it is open. */
  close(kind: NoticeKind, subject: string, atMs: number): void {
    const change = { kind, subject, text: null, count: 0, firstAtMs: atMs, lastAtMs: atMs, resolvedAtMs: atMs };
    this.#add(this.#changes.get(keyOf(kind, subject)), change);
  }

  /** Removes and returns the oldest changes. */
  take(maxCount: number): NoticeChange[] {
    const taken: NoticeChange[] = [];
    for (const [key, change] of this.#changes) {
      if (taken.length >= maxCount) break;
      taken.push(change);
      this.#changes.delete(key);
    }
    return taken;
  }

  /** Takes back changes that could not be written. They are older than the changes added since. */
  putBack(changes: readonly NoticeChange[]): void {
    for (const older of changes) {
      const newer = this.#changes.get(keyOf(older.kind, older.subject));
      if (newer === undefined) this.#add(undefined, older);
      else this.#add(older, newer);
    }
  }

  #add(older: NoticeChange | undefined, newer: NoticeChange): void {
    this.#changes.set(keyOf(newer.kind, newer.subject), older === undefined ? newer : merged(older, newer));
  }
}

function keyOf(kind: NoticeKind, subject: string): string {
  return `${kind} ${subject}`;
}

/** Two changes of a notice as one. A change without a text only resolves the notice. */
function merged(older: NoticeChange, newer: NoticeChange): NoticeChange {
  // The older change only ends the notice; the newer one replaces that.
  if (older.text === null) return newer;
  const { resolvedAtMs } = newer;
  if (newer.text === null) return { ...older, resolvedAtMs: older.resolvedAtMs ?? resolvedAtMs };
  return { ...newer, count: older.count + newer.count, firstAtMs: older.firstAtMs };
}
