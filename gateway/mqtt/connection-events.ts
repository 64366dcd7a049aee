/**
 * Records the connects and disconnects of locks and phones: queues them for the judge, in order with their uplinks, and
 * announces them when they are on disk. broker.ts says when a session connects and disconnects.
 */
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { BrokerOptions } from './broker-options.js';
import type { Session } from './sessions.js';

type Parts = Pick<BrokerOptions, 'ingest' | 'events' | 'clock'>;

/** Marks an authenticated session as connected, and records it. */
export function recordConnect(session: Session, { ingest, events, clock }: Parts): void {
  session.connect();
  const { deviceId, mac, simulated, source } = session.sender;
  const atMs = clock.now();
  ingest.recordEvent(deviceId, mac, { type: 'connect', source, atMs }, () => {
    events.emit('connected', { atMs, mac, source, simulated });
  });
}

/** Marks a connected session as disconnected, and records it. */
export function recordDisconnect(session: Session, cause: DisconnectCause, { ingest, events, clock }: Parts): void {
  session.disconnect();
  const { deviceId, mac, source } = session.sender;
  const atMs = clock.now();
  ingest.recordEvent(deviceId, mac, { type: 'disconnect', source, cause, atMs }, () => {
    events.emit('disconnected', { atMs, mac, source, cause });
  });
}
