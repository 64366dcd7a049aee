/** What operators and merchants do with webhooks, each part by its name. */
import type { Clock } from '../../proto/clock.js';
import type { Keys } from '../keys.js';
import type { Store } from '../store/store.js';
import type { Dispatcher } from './dispatcher.js';
import { Redelivery } from './redelivery.js';
import { WebhookSettings } from './webhook-settings.js';

export interface WebhooksParts {
  readonly store: Store;
  readonly keys: Keys;
  readonly dispatcher: Dispatcher;
  /** The wall's clock. */
  readonly clock: Clock;
}

export class Webhooks {
  readonly settings: WebhookSettings;
  readonly redelivery: Redelivery;

  constructor(parts: WebhooksParts) {
    this.settings = new WebhookSettings(parts);
    this.redelivery = new Redelivery(parts);
  }
}
