/**
 * Follows the merchants' webhook URLs by the gateway's events, and queues a notification for the merchant when one of
 * its URLs fails, is disabled, or works again. A URL *fails* when its circuit opens, or when an event has failed three
 * times; it works again with the first attempt that succeeds. A URL that is disabled is no longer failing.
 *
 * A message names the URL as GET /v1/webhooks does: by id and origin. Changes that can't be stored wait in memory.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { EndedHow, NotificationChange, UrlTrouble } from '../store/contract/notify/notification-store.js';
import type { Store } from '../store/contract/store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import type { DeliveryAttempted } from '../webhook-events.js';
import { DISABLED_BY_OPERATOR } from '../webhooks/webhook-settings.js';

/** An event whose delivery has failed this often makes its URL count as failing; that is after some five minutes. */
const FAILED_ATTEMPTS = 3;
/** The wait after a failed write. */
const FAILED_WRITE_DELAY: Milliseconds = Seconds(5);
/** Maximum number of changes that wait for the store; beyond it the oldest is dropped. */
const MAX_WAITING_CHANGES = 1_000;

/** The state of a URL in trouble. */
type State = 'failing' | 'disabled';

/** A change of a URL's state: it gets into trouble, or its trouble ends. */
interface StateChange {
  readonly urlId: number;
  readonly to: State | Exclude<EndedHow, 'resolved'>;
  readonly why: string;
  readonly atMs: number;
}

/** The states in which a change applies; undefined is the state of a URL without trouble. */
const STATES_BEFORE: Readonly<Record<StateChange['to'], readonly (State | undefined)[]>> = {
  failing: [undefined],
  disabled: [undefined, 'failing'],
  working: ['failing'],
  enabled: ['disabled'],
  removed: ['failing', 'disabled'],
};

export interface UrlTroublesParts {
  readonly store: Pick<Store, 'webhooks' | 'listWebhookUrls' | 'notifications' | 'ownership'>;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** Called after changes were stored. */
  readonly onStored: () => void;
}

export class UrlTroubles {
  readonly #parts: UrlTroublesParts;
  /** The URLs in trouble. */
  readonly #states = new Map<number, State>();
  /** The merchants of URLs in trouble: a removed URL can't be looked up. */
  readonly #merchantIds = new Map<number, number>();
  readonly #waiting: StateChange[] = [];
  #storing: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(parts: UrlTroublesParts) {
    this.#parts = parts;
  }

  /** Reads the open troubles, corrects those that a crash left behind, and follows events from now on. */
  async start(): Promise<void> {
    const { store } = this.#parts;
    const urls = new Map((await store.listWebhookUrls()).map((url) => [url.id, url]));
    for (const { recipientId, kind, subject } of await store.notifications.readOpenTroubles()) {
      const urlId = Number(subject);
      this.#states.set(urlId, kind === 'webhook-disabled' ? 'disabled' : 'failing');
      this.#merchantIds.set(urlId, recipientId);
      if (!urls.has(urlId)) this.#change(urlId, 'removed', 'removed');
      else if (urls.get(urlId)?.state === 'active') this.#change(urlId, 'enabled', 'enabled');
    }
    for (const url of urls.values()) this.#noteDisabled(url);
    this.#listen();
  }

  /** Reads the troubles of URLs that other gateways deliver to: this one may deliver to them later. */
  async readElsewhere(): Promise<void> {
    const { notifications, ownership } = this.#parts.store;
    const open = await notifications.readOpenTroubles();
    for (const urlId of this.#states.keys()) if (!ownership.urls.owns(urlId)) this.#states.delete(urlId);
    for (const { recipientId, kind, subject } of open) {
      const urlId = Number(subject);
      if (ownership.urls.owns(urlId)) continue;
      this.#states.set(urlId, kind === 'webhook-disabled' ? 'disabled' : 'failing');
      this.#merchantIds.set(urlId, recipientId);
    }
  }

  /** Queues the present troubles of a merchant's URLs. Called when the merchant gets a notify URL. */
  async report(merchantId: number): Promise<void> {
    const urls = (await this.#parts.store.listWebhookUrls()).filter((url) => url.merchantId === merchantId);
    for (const url of urls) {
      const before = this.#states.get(url.id);
      // As if the URL had no trouble yet, so that its trouble is queued as a change.
      this.#states.delete(url.id);
      if (url.state === 'disabled') this.#noteDisabled(url);
      else if (before === 'failing') this.#change(url.id, 'failing', 'its last attempts failed');
    }
    await this.stored();
  }

  /** Resolves when the waiting changes are stored, or could not be. */
  async stored(): Promise<void> {
    await this.#storing;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.stored();
  }

  #noteDisabled({ id, state, disabledWhy }: WebhookUrl): void {
    if (state === 'disabled') this.#change(id, 'disabled', disabledWhy ?? 'the reason is unknown');
  }

  #listen(): void {
    const { events } = this.#parts;
    events.on('url-disabled', ({ urlId, why }) => this.#change(urlId, 'disabled', why));
    events.on('url-changed', ({ urlId, state }) => {
      if (state === 'disabled') this.#change(urlId, 'disabled', DISABLED_BY_OPERATOR);
      else this.#change(urlId, state === 'active' ? 'enabled' : 'removed', state);
    });
    events.on('circuit', ({ urlId, state, why }) => {
      this.#change(urlId, state === 'opened' ? 'failing' : 'working', why);
    });
    events.on('delivery', (attempt) => this.#noteAttempt(attempt));
  }

  /** Runs for each attempt, so it must be cheap. */
  #noteAttempt({ urlId, number, outcome, error }: DeliveryAttempted): void {
    if (outcome === 'delivered') {
      if (this.#states.size > 0) this.#change(urlId, 'working', 'an attempt succeeded');
    } else if (number >= FAILED_ATTEMPTS) this.#change(urlId, 'failing', error ?? 'attempts fail');
  }

  /** Changes the URL's state, and queues the change. Does nothing if the change does not apply in the present state. */
  #change(urlId: number, to: StateChange['to'], why: string): void {
    if (this.#isStopped || !STATES_BEFORE[to].includes(this.#states.get(urlId))) return;
    if (to === 'failing' || to === 'disabled') this.#states.set(urlId, to);
    else this.#states.delete(urlId);
    this.#waiting.push({ urlId, to, why, atMs: this.#parts.clock.now() });
    if (this.#waiting.length > MAX_WAITING_CHANGES) this.#waiting.shift();
    if (this.#timer === undefined) this.#startStoring();
  }

  #startStoring(): void {
    this.#storing ??= this.#storeWaiting().finally(() => {
      this.#storing = undefined;
      // A change may have been queued after the queue was last found empty.
      if (this.#waiting.length > 0 && this.#timer === undefined && !this.#isStopped) this.#startStoring();
    });
  }

  async #storeWaiting(): Promise<void> {
    try {
      for (let change = this.#waiting[0]; change !== undefined; change = this.#waiting[0]) {
        const notifications = await this.#notificationsOf(change);
        if (notifications.length > 0) await this.#parts.store.notifications.record(notifications);
        // The queue may have dropped it meanwhile, as the oldest.
        if (this.#waiting[0] === change) this.#waiting.shift();
      }
    } catch {
      // The store reports its own failures.
      if (this.#isStopped) return;
      this.#timer = this.#parts.clock.after(FAILED_WRITE_DELAY, () => {
        this.#timer = undefined;
        this.#startStoring();
      });
      return;
    }
    this.#parts.onStored();
  }

  /** The merchant's notifications that a change of a URL's state opens or ends. */
  async #notificationsOf({ urlId, to, why, atMs }: StateChange): Promise<NotificationChange[]> {
    const url = to === 'removed' ? null : await this.#parts.store.webhooks.find(urlId);
    const recipientId = url?.merchantId ?? this.#merchantIds.get(urlId);
    if (recipientId === undefined) return [];
    if (to === 'removed') this.#merchantIds.delete(urlId);
    else this.#merchantIds.set(urlId, recipientId);
    const about = (kind: UrlTrouble) => ({ recipientId, kind, subject: String(urlId), atMs });
    const end = (kind: UrlTrouble, how: EndedHow | null): NotificationChange => {
      return { ...about(kind), change: { type: 'end', how } };
    };
    const origin = url === null ? '' : new URL(url.url).origin;
    const details = { webhookId: urlId, origin };
    const name = `Webhook URL ${urlId} (${origin})`;
    // `mayHold`: if the same trouble has ended only recently, the message waits until the trouble has lasted for a
    // while.
    switch (to) {
      case 'failing': {
        const text = `${name} fails: ${why}. Its events are stored, and attempts go on.`;
        return [{ ...about('webhook-failing'), change: { type: 'open', text, details, mayHold: true } }];
      }
      case 'disabled': {
        const text = `${name} is disabled: ${url?.disabledWhy ?? why}. Its events are stored.`;
        const opening: NotificationChange['change'] = { type: 'open', text, details, mayHold: false };
        // The end of `failing` gets no message of its own (null): the URL does not work again.
        return [end('webhook-failing', null), { ...about('webhook-disabled'), change: opening }];
      }
      case 'working':
        return [end('webhook-failing', 'working')];
      case 'enabled':
        return [end('webhook-disabled', 'enabled')];
      case 'removed':
        return [end('webhook-failing', 'removed'), end('webhook-disabled', 'removed')];
    }
  }
}
