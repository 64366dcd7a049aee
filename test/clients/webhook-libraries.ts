/** Loads the two libraries with which merchants verify webhooks: Standard Webhooks and Svix. */
import { loadClient } from './client-package.js';

/** The interface that the `Webhook` classes of both libraries have in common. */
export interface Webhook {
  /** Returns the body as JSON; throws if the signature or the time is wrong. */
  verify(body: string | Buffer, headers: Readonly<Record<string, string>>): unknown;
  /** The value of the header `webhook-signature`. */
  sign(id: string, sent: Date, body: string): string;
}

interface WebhookLibrary {
  readonly Webhook: new (secret: string) => Webhook;
}

export const { Webhook } = loadClient<WebhookLibrary>('standardwebhooks');

/** Svix's class. The package is loaded on the first call, because it is large. */
export function svixWebhook(): WebhookLibrary['Webhook'] {
  return loadClient<WebhookLibrary>('svix').Webhook;
}
