/**
 * Notices: what an operator should know, and has not read yet. They are made of the gateway's events, so that nobody
 * has to call this, and kept in the store.
 *
 * Nothing waits for a notice. What happens is noted in memory and written once a second, in one commit of a bounded
 * size, after which it is told. While the store can't write they wait, as one change for each kind and subject. What a
 * crash takes of the last second is made again at the next start from what lasts: URLs that are disabled, locks that
 * are late.
 */
import { type Clock, type Milliseconds, Minutes, Seconds, type Timer } from '../../proto/clock.js';
import { backSinceMs } from '../../proto/power/judge/boots.js';
import type { Presence } from '../../proto/power/judge/presence.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { BudgetTurned, GatewayEvents } from '../events.js';
import type { KnownLock } from '../locks/locks.js';
import { NOTICE_KINDS, type Notice, type NoticeFilter, type NoticeKind } from '../store/contract/notice-store.js';
import type { Store, WebhookUrl } from '../store/contract/store.js';
import { DISABLED_BY_HAND } from '../webhooks/webhook-settings.js';
import { LockNotices } from './lock-notices.js';
import { PendingNotices } from './pending-notices.js';

/** From the first that waits to the write. */
const WRITE_EVERY: Milliseconds = Seconds(1);
/** Changes of one commit: it takes some 10 ms, for which pings wait. */
const MOST_WRITTEN = 500;
/** The wait after a write that failed. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(5);
/** How often late locks are looked at for those that were removed or moved, of which no event tells. */
const LOOK_EVERY: Milliseconds = Minutes(10);
/** Damaged events whose notice ends by itself once they are delivered; the notices of more stay open. */
const DAMAGED_FOLLOWED = 10_000;
/** What a sentence may have at most, in characters. */
const TEXT_LIMIT = 500;

/** What is over when the gateway starts, until it happens again. */
const ENDED_BY_A_START: ReadonlySet<NoticeKind> = new Set([
  'circuit-open',
  'url-behind',
  'cannot-send',
  'cannot-record',
  'degraded',
  'descriptors',
  'lock-over-budget',
  'clock-leapt',
]);

type Late = Extract<Presence, { presence: 'late' }>;

export interface NoticesParts {
  readonly store: Pick<Store, 'notices'>;
  readonly events: GatewayEvents;
  /** The wall's clock. */
  readonly clock: Clock;
  /** Stamps the events. */
  readonly now: () => number;
  /** While it is so, nothing is written. */
  readonly isStoreFailing: () => boolean;
}

/** What lasts, so that notices can be held against it. */
export interface NoticeTruth {
  readonly locks: () => Iterable<
    Pick<KnownLock, 'mac' | 'presence'> & { readonly state?: Pick<KnownLock['state'], 'unjudged' | 'belief'> }
  >;
  readonly urls: readonly Pick<WebhookUrl, 'id' | 'state' | 'disabledWhy'>[];
}

export class Notices {
  readonly #parts: NoticesParts;
  readonly #pending = new PendingNotices();
  readonly #late: LockNotices;
  readonly #overBudget: LockNotices;
  readonly #unjudged: LockNotices;
  /** Whose budget is over: a lock's own, its phones', or both. */
  readonly #overSources = new Map<string, Set<Source>>();
  #locks: NoticeTruth['locks'] | undefined;
  #unread: ReadonlyMap<NoticeKind, number> = new Map();
  /** URLs that the store has an open notice of as disabled; read at the start. */
  #disabledAtStart: ReadonlySet<string> = new Set();
  /** Events with an open notice that they are damaged, by their ids; at most {@link DAMAGED_FOLLOWED}. */
  readonly #damaged = new Set<string>();
  /** Locks that the store has an open notice of as of a boot counter that went back; read at the start. */
  #bootBacksAtStart: ReadonlySet<string> = new Set();
  #storing: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #lookTimer: Timer | undefined;
  #isStopped = false;

  private constructor(parts: NoticesParts) {
    this.#parts = parts;
    const about = (kind: NoticeKind, many: string): LockNotices =>
      new LockNotices(many, {
        note: (mac, text) => this.#note(kind, mac, text),
        end: (mac) => this.#end(kind, mac),
      });
    this.#late = about('lock-late', 'locks are late: device list shows each');
    this.#unjudged = about('lock-unjudged', 'locks are not judged: device list shows each');
    this.#overBudget = about('lock-over-budget', 'locks send more than they may: tail tells of each');
  }

  /** Listens from now on. Rejects where the store can't be read. */
  static async start(parts: NoticesParts): Promise<Notices> {
    const notices = new Notices(parts);
    const open = await parts.store.notices.readOpen();
    notices.#unread = await parts.store.notices.readUnread();
    for (const { kind, subject } of open) {
      if (kind === 'lock-late') notices.#late.resume(subject);
      if (kind === 'lock-unjudged') notices.#unjudged.resume(subject);
      if (kind === 'event-damaged') notices.#followDamaged(subject);
      if (ENDED_BY_A_START.has(kind)) notices.#end(kind, subject);
    }
    notices.#disabledAtStart = new Set(open.filter(({ kind }) => kind === 'url-disabled').map((each) => each.subject));
    notices.#bootBacksAtStart = new Set(open.filter(({ kind }) => kind === 'boot-back').map((each) => each.subject));
    notices.#listen();
    return notices;
  }

  /** Makes and ends what changed while nobody was here. To be called once, when locks and URLs are known. */
  settle({ locks, urls }: NoticeTruth): void {
    this.#locks = locks;
    this.#look();
    this.#settleBootBacks();
    const disabled = urls.filter(({ state, disabledWhy }) => state === 'disabled' && disabledWhy !== DISABLED_BY_HAND);
    const ids = new Set(disabled.map(({ id }) => String(id)));
    for (const id of this.#disabledAtStart) if (!ids.has(id)) this.#end('url-disabled', id);
    for (const { id, disabledWhy } of disabled)
      if (!this.#disabledAtStart.has(String(id))) this.#noteDisabled(id, disabledWhy ?? 'nobody knows why');
  }

  /** What is kept, up to this moment where the store can write, the latest first. */
  async list(filter: NoticeFilter): Promise<Notice[]> {
    await this.store();
    return await this.#parts.store.notices.list(filter);
  }

  /** Marks as read. Answers how many were not before. @throws LockgateError `no-such-notice` */
  async markRead(ids: readonly number[] | 'all'): Promise<number> {
    const { store, clock } = this.#parts;
    await this.store();
    const count = await store.notices.markRead(ids, clock.now());
    await this.#countUnread();
    return count;
  }

  /** How many are kept and unread, of every kind. */
  *unread(): Iterable<readonly [kind: NoticeKind, unread: number]> {
    for (const kind of NOTICE_KINDS) yield [kind, this.#unread.get(kind) ?? 0];
  }

  /** Writes what waits, as much as one commit may have. It never rejects: what can't be written waits on. */
  store(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storePending());
    return this.#storing;
  }

  /** Keeps what waits, if the store lets it. To be called when nothing more happens. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#lookTimer?.cancel();
    let before: number;
    do {
      before = this.#pending.size;
      await this.store();
    } while (this.#pending.size > 0 && this.#pending.size < before);
  }

  #listen(): void {
    const { events } = this.#parts;
    events.on('url-disabled', ({ urlId, why }) => {
      this.#noteDisabled(urlId, why);
      this.#end('circuit-open', String(urlId));
    });
    events.on('url-changed', ({ urlId, state }) => {
      // It is tried anew, with its circuit closed.
      this.#end('circuit-open', String(urlId));
      if (state !== 'disabled') this.#end('url-disabled', String(urlId));
    });
    events.on('event-damaged', ({ eventId, urlId }) => {
      this.#followDamaged(eventId);
      this.#note('event-damaged', eventId, damagedText(eventId, urlId));
    });
    events.on('delivery', ({ eventId, outcome }) => {
      // Most deliveries are of events that nothing is wrong with, and pass here at no cost.
      if (this.#damaged.size === 0 || outcome !== 'delivered' || !this.#damaged.delete(eventId)) return;
      this.#end('event-damaged', eventId);
    });
    events.on('circuit', ({ urlId, state, why }) => {
      if (state === 'closed') this.#end('circuit-open', String(urlId));
      else this.#note('circuit-open', String(urlId), `URL ${urlId} fails and gets probes alone: ${why}`);
    });
    events.on('backlog', ({ urlId, state, why }) => {
      if (state === 'caught-up') this.#end('url-behind', String(urlId));
      else this.#note('url-behind', String(urlId), `URL ${urlId} is far behind: ${why}`);
    });
    events.on('cannot-send', ({ what, state, why }) => {
      if (state === 'ended') this.#end('cannot-send', what);
      else
        this.#note('cannot-send', what, `webhooks can't be sent: ${why}; they wait, and nothing is held against them`);
    });
    events.on('cannot-record', ({ urlId, state, why }) => {
      if (state === 'ended') this.#end('cannot-record', String(urlId));
      else this.#note('cannot-record', String(urlId), `URL ${urlId}: what came of a delivery is set aside: ${why}`);
    });
    events.on('statement-closed', ({ merchant, month }) =>
      this.#note('statement', `${month} ${merchant}`, `${month} is closed for ${merchant}: usage statement shows it`),
    );
    events.on('degraded', ({ reason, why }) => this.#note('degraded', reason, `not ready (${reason}): ${why}`));
    events.on('recovered', ({ reason }) => this.#end('degraded', reason));
    events.on('clock', ({ state, why }) => {
      for (const subject of ['ahead', 'behind']) if (subject !== state) this.#end('clock-leapt', subject);
      if (state !== 'agrees') this.#note('clock-leapt', state, why);
    });
    events.on('descriptors', ({ state, why }) => {
      if (state === 'short') this.#note('descriptors', 'open-files', why);
      if (state === 'enough') this.#end('descriptors', 'open-files');
    });
    events.on('boot-back', ({ mac, sinceMs }) => this.#noteBootBack(formatMac(mac), sinceMs));
    events.on('reflashed', ({ mac, backSinceMs }) => {
      if (backSinceMs === undefined) this.#end('boot-back', formatMac(mac));
      else this.#noteBootBack(formatMac(mac), backSinceMs);
    });
    events.on('presence', ({ mac, presence }) => {
      if (presence.presence === 'late') this.#late.begin(formatMac(mac), lateText(formatMac(mac), presence));
      else if (!this.#late.isEmpty) this.#late.end(formatMac(mac));
    });
    events.on('judging', ({ mac, state, why }) => {
      if (state === 'stopped') this.#unjudged.begin(formatMac(mac), unjudgedText(formatMac(mac), why));
      else this.#unjudged.end(formatMac(mac));
    });
    events.on('budget', (turned) => this.#noteBudget(turned));
  }

  /** A lock and its phones share a notice: it is over when both are within their budgets. */
  #noteBudget({ mac, source, state, why }: BudgetTurned): void {
    const subject = formatMac(mac);
    const over = this.#overSources.get(subject) ?? new Set();
    if (state === 'over') {
      this.#overSources.set(subject, over.add(source));
      this.#overBudget.begin(subject, `${subject}: ${why}`);
      return;
    }
    over.delete(source);
    if (over.size > 0) return;
    this.#overSources.delete(subject);
    this.#overBudget.end(subject);
  }

  #followDamaged(eventId: string): void {
    if (this.#damaged.size < DAMAGED_FOLLOWED) this.#damaged.add(eventId);
  }

  #noteBootBack(mac: string, sinceMs: number): void {
    const since = toDate(sinceMs);
    const text =
      `${mac}: its boot counter went back at ${since}, so all that it has sent since counts as late data of before. ` +
      `If its flash was wiped, run: lockgate device reflashed ${mac} --at ${since}`;
    this.#note('boot-back', mac, text);
  }

  /** Makes and ends what is true of boot counters, of which a crash may have taken the last second. */
  #settleBootBacks(): void {
    const open = new Set(this.#bootBacksAtStart);
    for (const { mac, state } of this.#locks?.() ?? []) {
      const sinceMs = state === undefined ? undefined : backSinceMs(state.belief);
      if (sinceMs === undefined || open.delete(formatMac(mac))) continue;
      this.#noteBootBack(formatMac(mac), sinceMs);
    }
    for (const mac of open) this.#end('boot-back', mac);
  }

  #noteDisabled(urlId: number, why: string): void {
    this.#note('url-disabled', String(urlId), `URL ${urlId} is disabled: ${why}`);
  }

  /** Holds late locks against what is true, and does so again while there are any. */
  #look(): void {
    const now = new Map<string, string>();
    for (const { mac, presence } of this.#locks?.() ?? [])
      if (presence.presence === 'late') now.set(formatMac(mac), lateText(formatMac(mac), presence));
    this.#late.compare(now);
    this.#lookAtUnjudged();
    this.#arm();
  }

  /** A start may have judged again what an earlier one could not, or the other way about. */
  #lookAtUnjudged(): void {
    const unjudged = new Map<string, string>();
    for (const { mac, state } of this.#locks?.() ?? [])
      if (state?.unjudged !== undefined) unjudged.set(formatMac(mac), unjudgedText(formatMac(mac), state.unjudged.why));
    this.#unjudged.compare(unjudged);
  }

  #note(kind: NoticeKind, subject: string, text: string): void {
    this.#pending.note(kind, subject, [...text].slice(0, TEXT_LIMIT).join(''), this.#parts.clock.now());
    this.#arm();
  }

  #end(kind: NoticeKind, subject: string): void {
    this.#pending.end(kind, subject, this.#parts.clock.now());
    this.#arm();
  }

  #arm(delay = WRITE_EVERY): void {
    if (this.#isStopped) return;
    const { clock } = this.#parts;
    if (this.#pending.size > 0)
      this.#timer ??= clock.after(delay, () => {
        this.#timer = undefined;
        void this.store();
      });
    if (!this.#late.isEmpty && this.#locks !== undefined)
      this.#lookTimer ??= clock.after(LOOK_EVERY, () => {
        this.#lookTimer = undefined;
        this.#look();
      });
  }

  async #storePending(): Promise<void> {
    const { store, isStoreFailing } = this.#parts;
    const changes = isStoreFailing() ? [] : this.#pending.take(MOST_WRITTEN);
    if (changes.length === 0) return this.#arm();
    try {
      await store.notices.write(changes);
    } catch {
      // The watch on the store has told of it. Nobody else is to suffer for a notice.
      this.#pending.putBack(changes);
      return this.#arm(AFTER_STORE_FAILURE);
    }
    await this.#countUnread();
    this.#tell(changes.filter(({ text }) => text !== null).length);
    this.#arm();
  }

  async #countUnread(): Promise<void> {
    try {
      this.#unread = await this.#parts.store.notices.readUnread();
    } catch {
      // The figure is that of the last time.
    }
  }

  #tell(noted: number): void {
    if (noted === 0) return;
    const { events, now } = this.#parts;
    let unread = 0;
    for (const count of this.#unread.values()) unread += count;
    events.emit('notices', { atMs: now(), noted, unread });
  }
}

function damagedText(eventId: string, urlId: number): string {
  return `${eventId} is not sent to URL ${urlId}: its stored ping does not fit its checksum (lockgate db check)`;
}

function unjudgedText(mac: string, why: string): string {
  return `${mac} is not judged, its pings are stored and delivered all the same (device rejudge tries again): ${why}`;
}

function lateText(mac: string, { sinceMs, rule }: Late): string {
  return `${mac} is late since ${toDate(sinceMs)} (${rule})`;
}
