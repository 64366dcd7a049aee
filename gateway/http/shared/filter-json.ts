/** Which events a webhook URL gets, as both interfaces show it. */
import type { WebhookUrl } from '../../store/contract/store.js';
import { NO_FILTER } from '../../store/contract/webhooks/webhook-filter.js';

/** Null for what is not limited. */
export function filterJson({ filter }: Pick<WebhookUrl, 'filter'>) {
  const { reasons, pingTypes, labels } = filter ?? NO_FILTER;
  return { reasons, ping_types: pingTypes, labels };
}
