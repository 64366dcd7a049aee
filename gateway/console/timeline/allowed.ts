/** What the power model lets a lock do in a state, in words for people. Pure. */
import type { StateRow } from '../../../proto/power/model.js';

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
