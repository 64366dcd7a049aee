/**
 * Corrects the times of a lock's uplinks to the gateway's clock, the clock of receipt, because a lock's clock may be
 * wrong by hours. Pure.
 */
import { Seconds } from '../../../proto/clock.js';
import type { TraceAck, TraceEvent, TracePing } from '../../../proto/trace/trace.js';

/** Clocks that differ by less count as equal, because an uplink may be on its way for that long. */
const SAME_CLOCK_WITHIN = Seconds(2);

/**
 * The events, with the times of uplinks corrected. Of all uplinks of a boot, the one that arrived soonest after it was
 * made was on its way for hardly any time, so its delay is the difference between the clocks.
 */
export function onReceiptClock(events: readonly TraceEvent[]): TraceEvent[] {
  const delays = new Map<number, number>();
  for (const event of events) {
    if (!isOwnUplink(event)) continue;
    const { boot } = event.uplink;
    delays.set(boot, Math.min(delays.get(boot) ?? Number.POSITIVE_INFINITY, event.atMs - event.uplink.timeMs));
  }
  return events.map((event) => {
    if (!isOwnUplink(event)) return event;
    const delay = delays.get(event.uplink.boot) ?? 0;
    if (Math.abs(delay) < SAME_CLOCK_WITHIN) return event;
    // A cast, since the compiler loses track of which uplink belongs to which type of event.
    return { ...event, uplink: { ...event.uplink, timeMs: event.uplink.timeMs + delay } } as TraceEvent;
  });
}

/** Whether the event is an uplink of the lock itself, not of a phone. */
export function isOwnUplink(event: TraceEvent): event is TracePing | TraceAck {
  return (event.event === 'ping' || event.event === 'ack') && event.source === 'lock';
}
