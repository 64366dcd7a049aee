/** The two libraries that merchants verify webhooks with: Standard Webhooks' own, and Svix's. */
import { loadClient } from './client-package.js';

/** The part of their `Webhook` classes that is the same in both. */
export interface Webhook {
  /** The body as JSON; throws where the signature or the time is wrong. */
  verify(body: string | Buffer, headers: Readonly<Record<string, string>>): unknown;
  /** The value of the header `webhook-signature`. */
  sign(id: string, sent: Date, body: string): string;
}

interface WebhookLibrary {
  readonly Webhook: new (secret: string) => Webhook;
}

export const { Webhook } = loadClient<WebhookLibrary>('standardwebhooks');

/** Svix's class. It is loaded when asked for, since its package has clients of a whole service too. */
export function svixWebhook(): WebhookLibrary['Webhook'] {
  return loadClient<WebhookLibrary>('svix').Webhook;
}
