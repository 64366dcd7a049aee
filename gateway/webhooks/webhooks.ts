/** What operators and merchants do with webhooks, each part by its name. */
import type { Dispatcher } from './dispatcher.js';
import { Redelivery } from './redelivery.js';
import { WebhookSettings, type WebhookSettingsParts } from './webhook-settings.js';
import { WebhookTester, type WebhookTesterParts } from './webhook-test.js';

export interface WebhooksParts extends WebhookTesterParts, WebhookSettingsParts {
  readonly dispatcher: Dispatcher;
}

export class Webhooks {
  readonly settings: WebhookSettings;
  readonly redelivery: Redelivery;
  readonly tester: WebhookTester;

  constructor(parts: WebhooksParts) {
    this.settings = new WebhookSettings(parts);
    this.redelivery = new Redelivery(parts);
    this.tester = new WebhookTester(parts);
  }
}
