/** Which events a webhook URL gets, as both interfaces show it. */

import { NO_FILTER } from '../../store/contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';

/** The types of events, by default pings alone; the other members are null if they limit nothing. */
export function filterJson({ filter }: Pick<WebhookUrl, 'filter'>) {
  const { events, reasons, pingTypes, labels } = filter ?? NO_FILTER;
  return { events: events ?? ['ping'], reasons, ping_types: pingTypes, labels };
}
