/** The functions of webhooks that the gateway's HTTP interfaces use: settings, redelivery, tests. */
import type { DeliveryReading } from '../store/contract/webhook-store.js';
import type { Dispatcher } from './dispatcher.js';
import { Redelivery } from './redelivery.js';
import type { TargetCheck } from './sending/target-check.js';
import type { DeliveryClock } from './url/delivery-clock.js';
import { WebhookSettings, type WebhookSettingsParts } from './webhook-settings.js';
import { WebhookTester, type WebhookTesterParts } from './webhook-test.js';

export interface WebhooksParts extends WebhookTesterParts, WebhookSettingsParts {
  readonly dispatcher: Dispatcher;
  readonly targets: TargetCheck;
}

export class Webhooks {
  readonly settings: WebhookSettings;
  readonly redelivery: Redelivery;
  readonly tester: WebhookTester;
  /** Whether webhooks may be sent to a URL that an operator wants to set. */
  readonly targets: TargetCheck;
  /** The clock of due times. */
  readonly deliveryClock: DeliveryClock;
  readonly #dispatcher: Dispatcher;

  constructor(parts: WebhooksParts) {
    this.settings = new WebhookSettings(parts);
    this.redelivery = new Redelivery(parts);
    this.deliveryClock = parts.deliveryClock;
    this.tester = new WebhookTester(parts);
    this.targets = parts.targets;
    this.#dispatcher = parts.dispatcher;
  }

  /**
   * The earliest wall-clock time of an attempt at the URL; null at a disabled URL.
   *
   * @param dueAtMs when the attempt is due, by the delivery clock
   */
  earliestAttemptAtMs(urlId: number, dueAtMs: number): number | null {
    return this.#dispatcher.earliestAttemptAtMs(urlId, dueAtMs);
  }

  /** The earliest wall-clock time of a delivery's next attempt; null if none is planned, or at a disabled URL. */
  nextAttemptWallClockMs({ urlId, nextAttemptAtMs: dueAtMs }: DeliveryReading): number | null {
    return dueAtMs === null ? null : this.earliestAttemptAtMs(urlId, dueAtMs);
  }
}
