/** Loads what the Lock screen shows of a lock's past: states, pings, findings, commands and deliveries. */
import { Days, Minutes } from '../../../../../proto/clock.js';
import type { TimeRange } from '../../../timeline/timeline-data.js';
import type { ConsoleApi } from '../../api/console-calls.js';
import type { Command } from '../../api/shapes.js';
import { runClock } from '../../app/run-clock.js';
import type { LockPast } from '../../timeline/lock-timeline.js';

/** The timeline starts shortly before the first ping, but is never shorter than this. */
const MIN_SHOWN = Minutes(10);
const BEFORE_FIRST_PING = Minutes(1);
/** The maximum number of pings, commands and findings that are loaded. */
const MAX_LOADED = 1000;

/** A lock's past, and the time that it covers. */
export interface LoadedPast {
  readonly whole: TimeRange;
  readonly past: LockPast;
  /** Whether there are older pings of this time, or older findings, that were not loaded. */
  readonly hasMore: { readonly pings: boolean; readonly findings: boolean };
}

/** @throws ApiFailure */
export async function loadPast(api: ConsoleApi, mac: string, days: number): Promise<LoadedPast> {
  const toMs = runClock.now();
  const fromMs = toMs - Days(days);
  const from = new Date(fromMs).toISOString();
  const [history, pings, findings, commands, deliveries] = await Promise.all([
    api.history(mac, { from }),
    api.pings(mac, { from, limit: MAX_LOADED }),
    api.findings(mac, { limit: MAX_LOADED }),
    // A viewer may not read commands.
    api.commands({ mac_addr: mac, limit: MAX_LOADED }).catch(() => ({ data: [] as Command[] })),
    api.lockDeliveries(mac, { from }),
  ]);
  const past = { history, pings: pings.data, findings: findings.data, commands: commands.data, deliveries };
  const firstMs = Math.min(toMs - MIN_SHOWN, ...pings.data.map(({ received_at }) => Date.parse(received_at)));
  const hasMore = { pings: pings.next_cursor !== null, findings: findings.next_cursor !== null };
  return { hasMore, whole: { fromMs: Math.max(fromMs, firstMs - BEFORE_FIRST_PING), toMs }, past };
}
