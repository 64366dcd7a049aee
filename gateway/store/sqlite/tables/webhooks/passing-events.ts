/** Selects the events that pass a webhook URL's filter, by the present labels of their locks. */
import type { Database, Statement } from 'better-sqlite3';
import type { Labels } from '../../../contract/devices/device-labels.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import { passesFilter, type WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import { readLabels } from '../../../tables/devices/label-column.js';

export class PassingEvents {
  readonly #labels: Statement;

  constructor(db: Database) {
    this.#labels = db.prepare('SELECT labels FROM device WHERE id = ?').pluck();
  }

  /** Returns those of the events that pass, in their order. */
  select<Event extends StoredUplink>(filter: WebhookFilter, events: readonly Event[]): Event[] {
    const labels = new Map<number, Labels>();
    const labelsOf = (deviceId: number): Labels => {
      const ofLock = labels.get(deviceId) ?? readLabels((this.#labels.get(deviceId) as string | null) ?? null);
      labels.set(deviceId, ofLock);
      return ofLock;
    };
    return events.filter((event) => passesFilter(filter, event, labelsOf));
  }
}
