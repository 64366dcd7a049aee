/**
 * Notices that wait for their write: what happened to one kind and subject meanwhile is one change, however often it
 * happened. Bounded: past the limit, a kind's new subjects are counted together.
 */
import type { NoticeChange, NoticeKind } from '../store/contract/notice-store.js';

/** Kinds and subjects that may wait, what ended not counted: that is at most as much as goes on. */
export const MOST_PENDING = 5_000;

/** The subject of those that have no notice of their own. */
export const OTHERS = 'others';

export class PendingNotices {
  readonly #changes = new Map<string, NoticeChange>();

  get size(): number {
    return this.#changes.size;
  }

  /** It happened. Times are ms since the epoch, by the wall's clock. */
  note(kind: NoticeKind, subject: string, text: string, atMs: number): void {
    const isNew = !this.#changes.has(keyOf(kind, subject));
    const as = isNew && this.#changes.size >= MOST_PENDING ? OTHERS : subject;
    const change = { kind, subject: as, text, count: 1, firstAtMs: atMs, lastAtMs: atMs, resolvedAtMs: null };
    this.#add(this.#changes.get(keyOf(kind, as)), change);
  }

  /** It is over, if it went on at all. */
  end(kind: NoticeKind, subject: string, atMs: number): void {
    const change = { kind, subject, text: null, count: 0, firstAtMs: atMs, lastAtMs: atMs, resolvedAtMs: atMs };
    this.#add(this.#changes.get(keyOf(kind, subject)), change);
  }

  /** Takes the oldest, at most `most`. */
  take(most: number): NoticeChange[] {
    const taken: NoticeChange[] = [];
    for (const [key, change] of this.#changes) {
      if (taken.length >= most) break;
      taken.push(change);
      this.#changes.delete(key);
    }
    return taken;
  }

  /** They were not written: they come before whatever happened since. */
  putBack(changes: readonly NoticeChange[]): void {
    for (const older of changes) {
      const newer = this.#changes.get(keyOf(older.kind, older.subject));
      this.#add(older, newer ?? older, newer === undefined);
    }
  }

  #add(older: NoticeChange | undefined, newer: NoticeChange, isAlone = older === undefined): void {
    this.#changes.set(keyOf(newer.kind, newer.subject), isAlone ? newer : merged(older as NoticeChange, newer));
  }
}

function keyOf(kind: NoticeKind, subject: string): string {
  return `${kind} ${subject}`;
}

function merged(older: NoticeChange, newer: NoticeChange): NoticeChange {
  if (older.text === null) return newer;
  const { resolvedAtMs } = newer;
  if (newer.text === null) return { ...older, resolvedAtMs: older.resolvedAtMs ?? resolvedAtMs };
  return { ...newer, count: older.count + newer.count, firstAtMs: older.firstAtMs };
}
