/**
 * Creates and resolves notices: conditions that an operator should know about. Notices are made from the gateway's
 * events, so no other code calls this file to create one, and are stored.
 *
 * Nothing waits for a notice. Changes are collected in memory and written once a second, in one commit of a bounded
 * size; then a `notices` event is emitted. While the store can't write, the changes wait, merged to one for each kind
 * and subject (what the notice is about: a MAC, a URL's id). A crash may lose the changes of the last second; the next
 * start restores them from the stored state: disabled URLs, late locks.
 */
import { type Clock, type Milliseconds, Minutes, Seconds, type Timer } from '../../proto/clock.js';
import { bootBackSinceMs } from '../../proto/power/judge/boots.js';
import type { Presence } from '../../proto/power/judge/presence.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { GatewayEvents } from '../events.js';
import type { BudgetChanged } from '../lock-events.js';
import type { KnownLock } from '../locks/locks.js';
import type { NotifyUrlChanged } from '../operation-events.js';
import { MERCHANT_CLOSED } from '../store/contract/merchants/merchant-store.js';
import {
  NOTICE_KINDS,
  type Notice,
  type NoticeFilter,
  type NoticeKind,
  OPERATOR_SUBJECT,
} from '../store/contract/operators/notice-store.js';
import type { Store } from '../store/contract/store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { DISABLED_BY_OPERATOR } from '../webhooks/webhook-settings.js';
import { LockNotices } from './lock-notices.js';
import { PendingNotices } from './pending-notices.js';

/** The wait between the first waiting change and its write. */
const WRITE_DELAY: Milliseconds = Seconds(1);
/** A commit of this size takes some 10 ms, for which pings wait. */
const MAX_CHANGES_PER_COMMIT = 500;
/** The wait after a failed write. */
const FAILED_WRITE_DELAY: Milliseconds = Seconds(5);
/** How often the notices of late locks are checked for locks that were removed or moved, which causes no event. */
const LATE_CHECK_INTERVAL: Milliseconds = Minutes(10);
/**
 * Maximum number of damaged events whose notices are resolved once the events are delivered. The notices of further
 * damaged events stay open.
 */
const MAX_TRACKED_DAMAGED_EVENTS = 10_000;
const MAX_TEXT_CHARS = 500;

/** Kinds whose open notices are resolved when the gateway starts: their conditions don't survive a restart. */
const RESOLVED_AT_START: ReadonlySet<NoticeKind> = new Set([
  'circuit-open',
  'url-behind',
  'cannot-send',
  'cannot-record',
  'degraded',
  'descriptors',
  'lock-over-budget',
  'clock-leapt',
  'notify-failing',
]);

/** Kinds of notices about the gateway itself, which may concern several gateways at the same time. */
const ABOUT_THE_GATEWAY: ReadonlySet<NoticeKind> = new Set(['cannot-send', 'degraded', 'descriptors', 'clock-leapt']);

/** Reasons for which an operator disabled a URL on purpose: such a URL gets no notice. */
const INTENDED_REASONS: ReadonlySet<string> = new Set([DISABLED_BY_OPERATOR, MERCHANT_CLOSED]);

type Late = Extract<Presence, { presence: 'late' }>;

export interface NoticesParts {
  readonly store: Pick<Store, 'notices'>;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** The run's clock (wall-clock time, except in a sped-up simulation), for emitted events; ms since the epoch. */
  readonly now: () => number;
  /** While this returns true, nothing is written. */
  readonly isStoreFailing: () => boolean;
  /** Called after a write: notifications may be due. */
  readonly onWritten?: () => void;
  /**
   * If several gateways share the store, the name of this one, as in "gateway 2": it is in the subjects of notices
   * about the gateway itself. Then each gateway notes and resolves only what concerns the locks that it serves.
   */
  readonly gateway?: string | undefined;
}

/** The stored state that open notices must agree with. */
export interface NoticeSources {
  /** The locks of open merchants. */
  readonly locks: () => Iterable<
    Pick<KnownLock, 'mac' | 'presence'> & { readonly state?: Pick<KnownLock['state'], 'unjudged' | 'belief'> }
  >;
  /** Whether the lock's merchant is closed: then it is not among `locks`, and gets no notice. */
  readonly isClosed?: (mac: Mac) => boolean;
  readonly urls: readonly Pick<WebhookUrl, 'id' | 'state' | 'disabledWhy'>[];
}

export class Notices {
  readonly #parts: NoticesParts;
  readonly #pending = new PendingNotices();
  readonly #late: LockNotices;
  readonly #overBudget: LockNotices;
  /** Notices of locks whose messages the judge (the check against the power model) no longer checks, after an error. */
  readonly #unjudged: LockNotices;
  /** Per MAC, who exceeds the budget: the lock, its phones, or both. */
  readonly #sourcesOverBudget = new Map<string, Set<Source>>();
  #locks: NoticeSources['locks'] | undefined;
  #isClosed: (mac: Mac) => boolean = () => false;
  #unread: ReadonlyMap<NoticeKind, number> = new Map();
  /** The ids of URLs with an open `url-disabled` notice at the start. */
  #disabledAtStart: ReadonlySet<string> = new Set();
  /** The ids of events with an open `event-damaged` notice; at most {@link MAX_TRACKED_DAMAGED_EVENTS}. */
  readonly #damaged = new Set<string>();
  /** The MACs of locks with an open `boot-back` notice (the lock's boot counter went back) at the start. */
  #bootBacksAtStart: ReadonlySet<string> = new Set();
  /** Resolves when the last commit that was asked for has ended. */
  #writing: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #lateCheckTimer: Timer | undefined;
  #isStopped = false;

  private constructor(parts: NoticesParts) {
    this.#parts = parts;
    const lockNotices = (kind: NoticeKind, sharedText: string): LockNotices =>
      new LockNotices(sharedText, {
        note: (mac, text) => this.#note(kind, mac, text),
        close: (mac) => this.#resolve(kind, mac),
      });
    this.#late = lockNotices('lock-late', 'locks are late: device list shows each');
    this.#unjudged = lockNotices('lock-unjudged', 'locks are not judged: device list shows each');
    this.#overBudget = lockNotices('lock-over-budget', 'locks send more than they may: tail shows each');
  }

  /** Starts to listen to events. Rejects if the store can't be read. */
  static async start(parts: NoticesParts): Promise<Notices> {
    const notices = new Notices(parts);
    const open = await parts.store.notices.readOpen();
    notices.#unread = await parts.store.notices.readUnread();
    const isSole = parts.gateway === undefined;
    for (const { kind, subject } of open) {
      // Of a shared store's locks this gateway serves none yet.
      if (kind === 'lock-late' && isSole) notices.#late.resume(subject);
      if (kind === 'lock-unjudged' && isSole) notices.#unjudged.resume(subject);
      if (kind === 'event-damaged') notices.#trackDamaged(subject);
    }
    await notices.endLeftOpen();
    notices.#disabledAtStart = new Set(open.filter(({ kind }) => kind === 'url-disabled').map((each) => each.subject));
    const bootBacks = isSole ? open.filter(({ kind }) => kind === 'boot-back') : [];
    notices.#bootBacksAtStart = new Set(bootBacks.map(({ subject }) => subject));
    notices.#listen();
    return notices;
  }

  /** Resolves the notices of conditions that ended with the gateways that noted them. @throws StoreFailure */
  async endLeftOpen(): Promise<void> {
    for (const { kind, subject } of await this.#parts.store.notices.readLeftOpen())
      if (RESOLVED_AT_START.has(kind)) this.#pending.close(kind, subject, this.#parts.clock.now());
    this.#setTimers();
  }

  /** Must be called when this gateway serves a lock from now on: its trouble is this gateway's to resolve. */
  lockTaken({ mac, presence, state }: Pick<KnownLock, 'mac' | 'presence' | 'state'>): void {
    this.#notePresence(mac, presence);
    const { unjudged } = state;
    if (unjudged !== undefined && !this.#isClosed(mac))
      this.#unjudged.open(formatMac(mac), unjudgedText(formatMac(mac), unjudged.why));
  }

  /** Must be called when another gateway serves a lock from now on, and with it the lock's notices. */
  lockGiven(mac: Mac): void {
    for (const notices of [this.#late, this.#unjudged, this.#overBudget]) notices.forget(formatMac(mac));
  }

  /**
   * Opens and resolves notices so that they agree with the stored state. Call it once, after locks and URLs are read.
   */
  reconcile({ locks, isClosed, urls }: NoticeSources): void {
    this.#locks = locks;
    if (isClosed !== undefined) this.#isClosed = isClosed;
    this.reconcileLocks();
    this.#reconcileBootBacks();
    const disabled = urls.filter(
      ({ state, disabledWhy }) => state === 'disabled' && !INTENDED_REASONS.has(disabledWhy ?? ''),
    );
    const ids = new Set(disabled.map(({ id }) => String(id)));
    for (const id of this.#disabledAtStart) if (!ids.has(id)) this.#resolve('url-disabled', id);
    for (const { id, disabledWhy } of disabled)
      if (!this.#disabledAtStart.has(String(id))) this.#noteDisabled(id, disabledWhy ?? 'the reason is unknown');
  }

  /** The stored notices, latest first. Waiting changes are written first, if the store can write. */
  async list(filter: NoticeFilter): Promise<Notice[]> {
    await this.writePending();
    return await this.#parts.store.notices.list(filter);
  }

  /** Marks notices as read, and returns how many were unread before. @throws LockgateError `no-such-notice` */
  async markRead(ids: readonly number[] | 'all'): Promise<number> {
    const { store, clock } = this.#parts;
    await this.writePending();
    const count = await store.notices.markRead(ids, clock.now());
    await this.#countUnread();
    return count;
  }

  /** The number of stored unread notices of each kind. */
  *unread(): Iterable<readonly [kind: NoticeKind, unread: number]> {
    for (const kind of NOTICE_KINDS) yield [kind, this.#unread.get(kind) ?? 0];
  }

  /** Writes waiting changes, at most one commit. Never rejects: changes that can't be written continue to wait. */
  writePending(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeOneCommit());
    return this.#writing;
  }

  /** Writes all waiting changes, if the store can write. Call it after the last event. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#lateCheckTimer?.cancel();
    // Each commit writes a part of the changes. If no fewer wait after it, it has failed, and the next one would too.
    let pendingBefore: number;
    do {
      pendingBefore = this.#pending.size;
      await this.writePending();
    } while (this.#pending.size > 0 && this.#pending.size < pendingBefore);
  }

  #listen(): void {
    const { events } = this.#parts;
    events.on('url-disabled', ({ urlId, why }) => {
      this.#noteDisabled(urlId, why);
      this.#resolve('circuit-open', String(urlId));
    });
    events.on('url-changed', ({ urlId, state }) => {
      // A change closes the URL's circuit (while open, the failing URL gets only single events as probes).
      this.#resolve('circuit-open', String(urlId));
      if (state !== 'disabled') this.#resolve('url-disabled', String(urlId));
    });
    events.on('event-damaged', ({ eventId, urlId }) => {
      this.#trackDamaged(eventId);
      this.#note('event-damaged', eventId, damagedText(eventId, urlId));
    });
    events.on('delivery', ({ eventId, outcome }) => {
      // Most deliveries are of undamaged events, for which this must cost nothing.
      if (this.#damaged.size === 0 || outcome !== 'delivered' || !this.#damaged.delete(eventId)) return;
      this.#resolve('event-damaged', eventId);
    });
    events.on('circuit', ({ urlId, state, why }) => {
      if (state === 'closed') this.#resolve('circuit-open', String(urlId));
      else this.#note('circuit-open', String(urlId), `URL ${urlId} fails and gets only probes: ${why}`);
    });
    events.on('backlog', ({ urlId, state, why }) => {
      if (state === 'caught-up') this.#resolve('url-behind', String(urlId));
      else this.#note('url-behind', String(urlId), `URL ${urlId} is far behind: ${why}`);
    });
    events.on('cannot-send', ({ what, state, why }) => {
      if (state === 'ended') this.#resolve('cannot-send', what);
      else
        this.#note(
          'cannot-send',
          what,
          `webhooks can't be sent: ${why}; they wait, and this does not count as a failure`,
        );
    });
    events.on('cannot-record', ({ urlId, state, why }) => {
      if (state === 'ended') this.#resolve('cannot-record', String(urlId));
      else this.#note('cannot-record', String(urlId), `URL ${urlId}: the outcome of a delivery is set aside: ${why}`);
    });
    events.on('notify-url', (change) => this.#noteNotifyUrl(change));
    events.on('statement-closed', ({ merchant, month }) =>
      this.#note('statement', `${month} ${merchant}`, `${month} is closed for ${merchant}: usage statement shows it`),
    );
    events.on('degraded', ({ reason, why }) => this.#note('degraded', reason, `not ready (${reason}): ${why}`));
    events.on('recovered', ({ reason }) => this.#resolve('degraded', reason));
    events.on('clock', ({ state, why }) => {
      for (const subject of ['ahead', 'behind']) if (subject !== state) this.#resolve('clock-leapt', subject);
      if (state !== 'agrees') this.#note('clock-leapt', state, why);
    });
    events.on('descriptors', ({ state, why }) => {
      if (state === 'short') this.#note('descriptors', 'open-files', why);
      if (state === 'enough') this.#resolve('descriptors', 'open-files');
    });
    events.on('boot-back', ({ mac, sinceMs }) => this.#noteBootBack(formatMac(mac), sinceMs));
    events.on('reflashed', ({ mac, backSinceMs }) => {
      if (backSinceMs === undefined) this.#resolve('boot-back', formatMac(mac));
      else this.#noteBootBack(formatMac(mac), backSinceMs);
    });
    events.on('presence', ({ mac, presence }) => this.#notePresence(mac, presence));
    events.on('judging', ({ mac, state, why }) => {
      if (state === 'stopped' && !this.#isClosed(mac))
        this.#unjudged.open(formatMac(mac), unjudgedText(formatMac(mac), why));
      else this.#unjudged.close(formatMac(mac));
    });
    events.on('budget', (change) => this.#noteBudget(change));
  }

  #notePresence(mac: Mac, presence: Presence): void {
    if (presence.presence === 'late' && !this.#isClosed(mac))
      this.#late.open(formatMac(mac), lateText(formatMac(mac), presence));
    else if (!this.#late.isEmpty) this.#late.close(formatMac(mac));
  }

  /** A lock and its phones share a notice, which is resolved when both are within their budgets. */
  #noteBudget({ mac, source, state, why }: BudgetChanged): void {
    const subject = formatMac(mac);
    const sources = this.#sourcesOverBudget.get(subject) ?? new Set();
    if (state === 'over') {
      this.#sourcesOverBudget.set(subject, sources.add(source));
      this.#overBudget.open(subject, `${subject}: ${why}`);
      return;
    }
    sources.delete(source);
    if (sources.size > 0) return;
    this.#sourcesOverBudget.delete(subject);
    this.#overBudget.close(subject);
  }

  /** The subject of a merchant's notify URL is the merchant's id, since a merchant's name may change. */
  #noteNotifyUrl({ merchant, state, why }: NotifyUrlChanged): void {
    const subject = merchant === null ? OPERATOR_SUBJECT : String(merchant.id);
    if (state === 'working') {
      this.#resolve('notify-failing', subject);
      return;
    }
    const whose = merchant === null ? 'the operators’ notify URL' : `the notify URL of ${merchant.name}`;
    this.#note('notify-failing', subject, `${whose} fails, its notifications are retried: ${why}`);
  }

  #trackDamaged(eventId: string): void {
    if (this.#damaged.size < MAX_TRACKED_DAMAGED_EVENTS) this.#damaged.add(eventId);
  }

  #noteBootBack(mac: string, sinceMs: number): void {
    const since = formatDate(sinceMs);
    const text =
      `${mac}: its boot counter went back at ${since}, so everything it has sent since counts as late old data. ` +
      `If its flash was wiped, run: lockgate device reflashed ${mac} --at ${since}`;
    this.#note('boot-back', mac, text);
  }

  /** Opens and resolves `boot-back` notices by the locks' current states: a crash may have lost the last second. */
  #reconcileBootBacks(): void {
    const open = new Set(this.#bootBacksAtStart);
    for (const { mac, state } of this.#locks?.() ?? []) {
      const sinceMs = state === undefined ? undefined : bootBackSinceMs(state.belief);
      if (sinceMs === undefined || open.delete(formatMac(mac))) continue;
      this.#noteBootBack(formatMac(mac), sinceMs);
    }
    for (const mac of open) this.#resolve('boot-back', mac);
  }

  #noteDisabled(urlId: number, why: string): void {
    this.#note('url-disabled', String(urlId), `URL ${urlId} is disabled: ${why}`);
  }

  /**
   * Opens and closes the notices of late and unjudged locks by their current state; repeats while any lock is late.
   * Call it when a merchant was closed or opened again.
   */
  reconcileLocks(): void {
    const textByMac = new Map<string, string>();
    for (const { mac, presence } of this.#locks?.() ?? [])
      if (presence.presence === 'late') textByMac.set(formatMac(mac), lateText(formatMac(mac), presence));
    this.#late.reconcile(textByMac);
    this.#reconcileUnjudged();
    this.#setTimers();
  }

  /** Opens and closes the notices of unjudged locks: after a restart, the judge may work again for a lock, or fail. */
  #reconcileUnjudged(): void {
    const textByMac = new Map<string, string>();
    for (const { mac, state } of this.#locks?.() ?? [])
      if (state?.unjudged !== undefined)
        textByMac.set(formatMac(mac), unjudgedText(formatMac(mac), state.unjudged.why));
    this.#unjudged.reconcile(textByMac);
  }

  #note(kind: NoticeKind, subject: string, text: string): void {
    this.#pending.note(
      kind,
      this.#subjectOf(kind, subject),
      [...text].slice(0, MAX_TEXT_CHARS).join(''),
      this.#parts.clock.now(),
    );
    this.#setTimers();
  }

  #resolve(kind: NoticeKind, subject: string): void {
    this.#pending.close(kind, this.#subjectOf(kind, subject), this.#parts.clock.now());
    this.#setTimers();
  }

  #subjectOf(kind: NoticeKind, subject: string): string {
    const { gateway } = this.#parts;
    return gateway === undefined || !ABOUT_THE_GATEWAY.has(kind) ? subject : `${subject} (${gateway})`;
  }

  /** Sets the timers for the next write and the next check of late locks, unless they are set already. */
  #setTimers(delay = WRITE_DELAY): void {
    if (this.#isStopped) return;
    const { clock } = this.#parts;
    if (this.#pending.size > 0)
      this.#timer ??= clock.after(delay, () => {
        this.#timer = undefined;
        void this.writePending();
      });
    if (!this.#late.isEmpty && this.#locks !== undefined)
      this.#lateCheckTimer ??= clock.after(LATE_CHECK_INTERVAL, () => {
        this.#lateCheckTimer = undefined;
        this.reconcileLocks();
      });
  }

  async #writeOneCommit(): Promise<void> {
    const { store, isStoreFailing } = this.#parts;
    const changes = isStoreFailing() ? [] : this.#pending.take(MAX_CHANGES_PER_COMMIT);
    if (changes.length === 0) return this.#setTimers();
    try {
      await store.notices.write(changes);
    } catch {
      // The store reports its own failures. A failed notice must not affect anything else.
      this.#pending.putBack(changes);
      return this.#setTimers(FAILED_WRITE_DELAY);
    }
    this.#parts.onWritten?.();
    await this.#countUnread();
    // A change without a text only resolves a notice.
    this.#emitNotices(changes.filter(({ text }) => text !== null).length);
    this.#setTimers();
  }

  async #countUnread(): Promise<void> {
    try {
      this.#unread = await this.#parts.store.notices.readUnread();
    } catch {
      // The last count stays.
    }
  }

  /** Announces that a commit created or repeated this many notices. */
  #emitNotices(noted: number): void {
    if (noted === 0) return;
    const { events, now } = this.#parts;
    let unread = 0;
    for (const count of this.#unread.values()) unread += count;
    events.emit('notices', { atMs: now(), noted, unread });
  }
}

function damagedText(eventId: string, urlId: number): string {
  return `${eventId} is not sent to URL ${urlId}: its stored ping does not match its checksum (lockgate db check)`;
}

function unjudgedText(mac: string, why: string): string {
  return `${mac} is not judged, its pings are stored and delivered all the same (device rejudge tries again): ${why}`;
}

function lateText(mac: string, { sinceMs, rule }: Late): string {
  return `${mac} has been late since ${formatDate(sinceMs)} (${rule})`;
}
