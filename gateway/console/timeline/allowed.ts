/** What the power model lets a lock do in a state: in words for people, and for the rows of a timeline. Pure. */
import type { StateRow } from '../../../proto/power/model.js';

/** For each reason of pings that some states forbid (protocol.md §2): whether a state lets the lock send them. */
const ALLOWED: Readonly<Record<string, (row: StateRow) => boolean>> = {
  REASON_THEFT: ({ theft }) => theft,
  REASON_PERIOD_TRACKING: ({ period }) => period,
  REASON_STATE_PING: ({ stateChange }) => stateChange,
  REASON_UNLOCKED_MOVEMENT: ({ cellOnInRide }) => cellOnInRide,
  REASON_UNLOCKED_PING: ({ rideTracking }) => rideTracking,
  REASON_GPS_PING: ({ commands }) => commands,
  REASON_CELL_PING: ({ commands }) => commands,
  REASON_NETWORK_PING: ({ connectionKept }) => connectionKept !== 'never',
};

/** Whether the model lets a lock send pings of a reason in a state. True for a reason that no state forbids. */
export function allowsReason(row: StateRow, reason: string): boolean {
  return ALLOWED[reason]?.(row) ?? true;
}

/**
 * Such as `allows theft pings, daily pings, commands`. The high window is the daily span of hours in which a lock in
 * the mode HIGH stays connected.
 *
 * @param row a state's row in the power model's table
 */
export function describeAllowed(row: StateRow): string {
  const allowed = [
    row.theft && 'theft pings',
    row.period && 'daily pings',
    row.stateChange && 'state-change pings',
    row.cellOnInRide && 'pings in a ride',
    row.rideTracking && 'ride tracking if it is switched on',
    row.commands && 'commands',
    row.connectionKept === 'always' && 'a connection that is always kept',
    row.connectionKept === 'in-window' && 'a connection that is kept in the high window',
  ].filter((each) => each !== false);
  return allowed.length === 0 ? 'allows nothing' : `allows ${allowed.join(', ')}`;
}
