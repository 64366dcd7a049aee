/**
 * Records traces (recordings of locks' messages, protocol.md §4) live from the gateway's events. The header contains
 * the locks' states at the start.
 */
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { GatewayEvents } from '../../events.js';
import type { Ingest } from '../../ingest/ingest.js';
import type { CommandChanged, LockConnected, LockDisconnected, UplinkTaken } from '../../lock-events.js';
import type { Locks } from '../../locks/locks.js';
import type { Store } from '../../store/contract/store.js';
import { CredentialNumbers } from './credential-numbers.js';
import { traceLockOf, uplinkLine } from './trace-export.js';

export interface RecordParts {
  readonly store: Store;
  readonly events: GatewayEvents;
  readonly ingest: Ingest;
  readonly locks: Locks;
}

/**
 * Calls `write` with each line, the header first.
 * @param macs only these locks; undefined for all
 * @returns the function that stops the recording
 */
export async function recordTrace(
  { store, events, ingest, locks }: RecordParts,
  macs: ReadonlySet<Mac> | undefined,
  write: (line: string) => void,
): Promise<() => void> {
  const isRecorded = (mac: Mac): boolean => macs?.has(mac) ?? true;
  // In a trace, the credentials of a lock have small numbers instead of the store's ids.
  const numbers = new CredentialNumbers(await store.listCredentials());
  // Wait until no uplink is in progress: such an uplink is judged but not reported yet, so it would be counted twice,
  // in the header's state of its lock and in a line.
  await ingest.idle();
  const recordedLocks = [...locks.all()].filter(({ mac }) => isRecorded(mac));
  const header = new Map(recordedLocks.map(({ mac, state, marks }) => [mac, traceLockOf(state.belief, marks)]));
  write(traceHeaderLine({ note: '', locks: header }));

  const onConnected = ({ atMs, mac, source }: LockConnected): void => {
    if (isRecorded(mac)) write(traceEventLine({ event: 'connect', atMs, mac, source }));
  };
  const onDisconnected = ({ atMs, mac, source, cause }: LockDisconnected): void => {
    if (isRecorded(mac)) write(traceEventLine({ event: 'disconnect', atMs, mac, source, cause }));
  };
  const onUplink = (taken: UplinkTaken): void => {
    const { mac, source, credentialId } = taken;
    if (isRecorded(mac)) write(uplinkLine({ ...taken, credential: numbers.numberOf(credentialId, mac, source) }));
  };
  const onCommand = ({ atMs, mac, record }: CommandChanged): void => {
    const { id, command, state, expiresAtMs: expiresMs } = record;
    if (state === 'sent' && isRecorded(mac))
      write(traceEventLine({ event: 'command', atMs, mac, id, command, expiresMs }));
  };
  events.on('command', onCommand);
  events.on('connected', onConnected);
  events.on('disconnected', onDisconnected);
  events.on('uplink', onUplink);
  return () => {
    events.off('command', onCommand);
    events.off('connected', onConnected);
    events.off('disconnected', onDisconnected);
    events.off('uplink', onUplink);
  };
}
