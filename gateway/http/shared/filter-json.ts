/** Which events a webhook URL gets, as both interfaces show it. */
import type { WebhookUrl } from '../../store/contract/store.js';
import { NO_FILTER } from '../../store/contract/webhooks/webhook-filter.js';

/** The types of events; and null for what is not limited. */
export function filterJson({ filter }: Pick<WebhookUrl, 'filter'>) {
  const { events, reasons, pingTypes, labels } = filter ?? NO_FILTER;
  return { events: events ?? ['ping'], reasons, ping_types: pingTypes, labels };
}
