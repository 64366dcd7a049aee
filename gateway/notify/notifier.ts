/**
 * Sends notifications: notices to the operators' notify URL, and troubles of webhook URLs to their merchants' notify
 * URLs. A recipient is one merchant, or all operators together. The notifier has a sender for each recipient with a
 * URL, and makes the changes that operators ask for: setting a URL, replacing a secret, sending a test message.
 *
 * A URL that fails must not cause a growing number of notifications: it opens one notice, and the notice about the
 * operators' own URL is not sent.
 */
import { Days, Hours, type Milliseconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { checkUrl } from '../accounts/accounts.js';
import type { Keys } from '../data-folder/keys.js';
import {
  FLAP_HOLD,
  type MessageCounts,
  OPERATOR_RECIPIENT,
  type Recipient,
} from '../store/contract/notify/notification-store.js';
import type { Store } from '../store/contract/store.js';
import { makeWebhookSecret } from '../webhooks/payload/signature.js';
import type { AttemptResult } from '../webhooks/sending/attempt.js';
import type { SigningSecret } from '../webhooks/sending/delivery-sender.js';
import { maxRetryDelay, RETRY_DELAYS } from '../webhooks/url/schedule.js';
import { RecipientSender, type SenderParts } from './recipient-sender.js';
import { UrlTroubles } from './url-troubles.js';

/** How long a recipient's older secrets stay valid after it gets a new one: default and maximum. */
const DEFAULT_SECRET_GRACE: Milliseconds = Hours(24);
const MAX_SECRET_GRACE: Milliseconds = Days(30);

export interface NotifierParts extends Omit<SenderParts, 'maySend'> {
  readonly store: Pick<Store, 'notifications' | 'webhooks' | 'listWebhookUrls' | 'listMerchants' | 'ownership'>;
  readonly keys: Keys;
}

/** A recipient with the state of its messages. */
export interface RecipientReading extends Recipient, MessageCounts {
  readonly url: string;
  /** So many of the last attempts have failed in a row that this was reported. */
  readonly isFailing: boolean;
  /** Until when each secret except the newest is valid, newest first; ms since the epoch. */
  readonly oldSecretsUntilMs: readonly number[];
}

export class Notifier {
  readonly #parts: NotifierParts & SenderParts;
  readonly #senders = new Map<number, RecipientSender>();
  readonly #troubles: UrlTroubles;

  private constructor(parts: NotifierParts) {
    const { duties } = parts.store.ownership;
    this.#parts = { ...parts, maySend: () => duties.holds('notifications') };
    const { deliveryClock } = parts;
    this.#troubles = new UrlTroubles({ ...parts, clock: deliveryClock.wall, onStored: () => this.wake() });
  }

  /**
   * Starts to send. What was queued before, and is due, is sent at once.
   *
   * @param operatorUrl where operators' notices are sent; null for nowhere
   * @throws LockgateError `wrong-key`
   */
  static async start(parts: NotifierParts, operatorUrl: string | null): Promise<Notifier> {
    const notifier = new Notifier(parts);
    const { notifications } = parts.store;
    const recipients = await notifications.readRecipients();
    const isKnown = recipients.some(({ id }) => id === OPERATOR_RECIPIENT);
    // A URL that an earlier start stored is removed if the setting is empty now.
    if (operatorUrl !== null || isKnown) await notifier.#setUrl(OPERATOR_RECIPIENT, operatorUrl);
    // A wrong machine clock must not delay messages for longer than they can wait: FLAP_HOLD for a message that is held
    // because its trouble opened again soon after its end, or the delay before a retry.
    await notifications.shortenWaits(parts.deliveryClock.now(), [
      FLAP_HOLD,
      ...RETRY_DELAYS.map((_, i) => maxRetryDelay(i + 1)),
    ]);
    for (const { id, url } of recipients)
      if (id !== OPERATOR_RECIPIENT && url !== null) await notifier.#startSender(id, url);
    await notifier.#troubles.start();
    notifier.#listen();
    notifier.wake();
    return notifier;
  }

  /** Sends what other gateways queue, if that is this one's duty, and follows what they change. */
  #listen(): void {
    const { duties, signals } = this.#parts.store.ownership;
    duties.onGain(() => this.#wakeSenders());
    signals.onSignal((signal) => {
      if (signal.type !== 'notifications' && signal.type !== 'missed') return;
      void this.#readAgain(signal.type === 'missed' || signal.recipientId !== null).catch(({ message: why }: Error) => {
        this.#parts.events.emit('store-failed', { atMs: this.#parts.runClock.now(), why });
      });
    });
  }

  /** @param withRecipients whether URLs or secrets of recipients may have changed */
  async #readAgain(withRecipients: boolean): Promise<void> {
    await this.#troubles.readElsewhere();
    if (withRecipients)
      for (const { id, url } of await this.#parts.store.notifications.readRecipients()) {
        const sender = this.#senders.get(id);
        if (url !== null && sender?.url === url) sender.setSecrets(await this.#readSecrets(id));
        else await this.#replaceSender(id, url);
      }
    this.#wakeSenders();
  }

  #wakeSenders(): void {
    for (const sender of this.#senders.values()) sender.wake();
  }

  /** Sends what is due. Must be called after notices were stored. */
  wake(): void {
    this.#wakeSenders();
    this.#signal(null);
  }

  /** Tells other gateways that a recipient was changed or, if null, that messages were queued. */
  #signal(recipientId: number | null): void {
    this.#parts.store.ownership.signals.send({ type: 'notifications', recipientId });
  }

  /**
   * Sets or removes (null) a merchant's notify URL.
   *
   * @returns the signing secret if the merchant had none; it can't be read again
   * @throws LockgateError `input-url`
   */
  async setMerchantUrl(merchantId: number, url: string | null): Promise<{ readonly secret: string | null }> {
    const secret = await this.#setUrl(merchantId, url === null ? null : checkUrl(url));
    if (url !== null) await this.#troubles.report(merchantId);
    return { secret };
  }

  /**
   * Gives a recipient a new secret, and returns it. For up to `graceMs`, messages are also signed with the older ones.
   *
   * @throws LockgateError `no-notify-url`, `input-grace`, `notify-secrets`
   */
  async rotateSecret(recipientId: number, graceMs = DEFAULT_SECRET_GRACE): Promise<string> {
    const { store, keys, deliveryClock } = this.#parts;
    const sender = this.#senderOf(recipientId);
    if (!(graceMs >= 0 && graceMs <= MAX_SECRET_GRACE))
      throw new LockgateError('input-grace', 'the old secret stays valid for 0 s to 30 days');
    const secret = makeWebhookSecret();
    const nowMs = deliveryClock.wall.now();
    await store.notifications.addSecret(recipientId, keys.seal(secret), nowMs, nowMs + graceMs);
    sender.setSecrets(await this.#readSecrets(recipientId));
    this.#signal(recipientId);
    return secret;
  }

  /** Sends a test message, once. @throws LockgateError `no-notify-url` */
  async test(recipientId: number): Promise<AttemptResult & { readonly url: string }> {
    const sender = this.#senderOf(recipientId);
    return { ...(await sender.test()), url: sender.url };
  }

  /** All recipients with a URL; with `recipientId` only that one, and none if it has no URL. */
  async read(recipientId?: number): Promise<RecipientReading[]> {
    const { notifications } = this.#parts.store;
    const readings: RecipientReading[] = [];
    for (const recipient of await notifications.readRecipients()) {
      const { id, url } = recipient;
      if (url === null || (recipientId !== undefined && id !== recipientId)) continue;
      const counts = await notifications.countMessages(id);
      const old = (await notifications.readSecrets(id, this.#parts.deliveryClock.wall.now())).flatMap(
        ({ validUntilMs }) => (validUntilMs === null ? [] : [validUntilMs]),
      );
      const isFailing = this.#senders.get(id)?.isFailing === true;
      readings.push({ ...recipient, ...counts, url, isFailing, oldSecretsUntilMs: old });
    }
    return readings;
  }

  /** Starts nothing new, and gives running attempts up to `grace` ms. */
  async stop(grace: Milliseconds): Promise<void> {
    await this.#troubles.stop();
    await Promise.all([...this.#senders.values()].map((sender) => sender.stop(grace)));
  }

  /** Stores the URL, and replaces the recipient's sender if the URL changed. Returns the secret if it is new. */
  async #setUrl(recipientId: number, url: string | null): Promise<string | null> {
    const { store, keys } = this.#parts;
    const secret = makeWebhookSecret();
    const { isSecretNew } = await store.notifications.setUrl(recipientId, url, keys.seal(secret));
    if (this.#senders.get(recipientId)?.url !== url) await this.#replaceSender(recipientId, url);
    this.#senders.get(recipientId)?.wake();
    this.#signal(recipientId);
    return isSecretNew ? secret : null;
  }

  async #replaceSender(recipientId: number, url: string | null): Promise<void> {
    const sender = this.#senders.get(recipientId);
    this.#senders.delete(recipientId);
    await sender?.stop(0);
    if (sender?.isFailing === true) await this.#report(recipientId, 'working', 'its URL was changed');
    if (url !== null) await this.#startSender(recipientId, url);
  }

  async #startSender(recipientId: number, url: string): Promise<void> {
    const secrets = await this.#readSecrets(recipientId);
    const sender = new RecipientSender({ recipientId, url, secrets }, this.#parts, (id, state, why) => {
      void this.#report(id, state, why);
    });
    this.#senders.set(recipientId, sender);
  }

  /** Emits the event that a notify URL fails or works again. */
  async #report(recipientId: number, state: 'failing' | 'working', why: string): Promise<void> {
    const { store, events, runClock } = this.#parts;
    const merchants = recipientId === OPERATOR_RECIPIENT ? [] : await store.listMerchants().catch(() => []);
    const name = merchants.find(({ id }) => id === recipientId)?.name ?? String(recipientId);
    const merchant = recipientId === OPERATOR_RECIPIENT ? null : { id: recipientId, name };
    events.emit('notify-url', { atMs: runClock.now(), merchant, state, why });
  }

  async #readSecrets(recipientId: number): Promise<SigningSecret[]> {
    const { store, keys, deliveryClock } = this.#parts;
    const sealed = await store.notifications.readSecrets(recipientId, deliveryClock.wall.now());
    return sealed.map(({ secretSealed, validUntilMs }) => {
      return { secret: keys.unseal(secretSealed), validUntilMs: validUntilMs ?? undefined };
    });
  }

  /** @throws LockgateError `no-notify-url` */
  #senderOf(recipientId: number): RecipientSender {
    const sender = this.#senders.get(recipientId);
    if (sender !== undefined) return sender;
    const remedy =
      recipientId === OPERATOR_RECIPIENT
        ? 'operators have no notify URL: start the gateway with --notify-url'
        : 'the merchant has no notify URL: set one first';
    throw new LockgateError('no-notify-url', remedy);
  }
}
