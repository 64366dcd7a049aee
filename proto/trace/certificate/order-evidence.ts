/**
 * Which rows of a certificate (row.ts) a ping shows to hold together with the pings before it: order, cadence, changes,
 * and the commands that it answers. No I/O: changes only the memory of the lock, and reports each row by calling
 * `note`.
 */
import { Hours, Seconds } from '../../clock.js';
import { metersBetween } from '../../power/judge/in-order/geodesy.js';
import type { EffectiveState, PowerModel } from '../../power/model.js';
import type { Ping, PingUplink } from '../../wire/ping.js';
import type { GpsRun, LockMemory } from './lock-memory.js';

/** A ping, and what it is compared with. */
export interface OrderedPing {
  readonly model: PowerModel;
  readonly lock: LockMemory;
  readonly state: EffectiveState;
  readonly uplink: PingUplink;
  readonly body: Ping;
  readonly note: (row: string) => void;
}

/** How much the time between two GPS pings may differ from the model's interval. */
const THEFT_TOLERANCE_MS = Seconds(2);
const RIDE_TOLERANCE_MS = Seconds(5);

/** Two daily pings are a day apart if the time between them is in this range. */
const MIN_DAY_MS = Hours(23);
const MAX_DAY_MS = Hours(25);

/** Reports the rows that the ping shows together with the lock's memory, and updates the memory. */
export function notePingOrder(ping: OrderedPing): void {
  const { lock, body, note } = ping;
  if (body.kind === 'close_connection') {
    if (lock.hasGpsToFollow) note('gps-follows');
    lock.hasGpsToFollow = false;
    return;
  }
  if (body.kind === 'gps') noteGps(ping);
  else noteCellular(ping);
  if (body.reason === 'REASON_GPS_PING' || body.reason === 'REASON_CELL_PING') noteLocate(ping);
}

function noteCellular({ model, lock, state, uplink, body, note }: OrderedPing): void {
  const { timeMs } = uplink;
  const { bounds } = model;
  switch (body.reason) {
    case 'REASON_STATE_PING':
      if (lock.lockState !== 'unknown' && lock.lockState !== body.lockState) note('change-told');
      break;
    case 'REASON_THEFT':
      noteRefresh(lock.theft, timeMs, bounds.refreshOver, () => note('theft-refresh'));
      break;
    case 'REASON_UNLOCKED_MOVEMENT':
      noteRefresh(lock.ride, timeMs, bounds.refreshOver, () => note('ride-refresh'));
      break;
    case 'REASON_PERIOD_TRACKING':
      if (isWithin(timeMs - lock.dailyMs, MIN_DAY_MS, MAX_DAY_MS)) note('daily-once');
      lock.dailyMs = timeMs;
      break;
    case 'REASON_NETWORK_PING': {
      if (isWithin(timeMs - lock.networkPingMs, bounds.networkPingUnder, bounds.networkPingMissingOver)) {
        if (state === 'HIGH') note('connection-kept-high');
        if (state === 'RECOVERY') note('connection-kept-recovery');
      }
      lock.networkPingMs = timeMs;
      break;
    }
  }
  lock.cellularMs.set(body.reason, timeMs);
}

/** Notes a cellular ping in a run of GPS pings, and reports it if it came soon enough after the last cellular ping. */
function noteRefresh(run: GpsRun, timeMs: number, withinMs: number, note: () => void): void {
  // At least 1 ms later: two cellular pings of the same moment are no evidence of a cadence.
  if (run.hasGpsSince && isWithin(timeMs - run.cellularMs, 1, withinMs)) note();
  run.cellularMs = timeMs;
  run.hasGpsSince = false;
}

function noteGps({ model, lock, uplink, body, note }: OrderedPing): void {
  if (body.kind !== 'gps') return;
  const { timeMs } = uplink;
  const { timings, bounds } = model;
  switch (body.reason) {
    case 'REASON_THEFT':
      noteCadence(lock.theft, timeMs, timings.theftGpsEvery, THEFT_TOLERANCE_MS, () => note('theft-cadence'));
      break;
    case 'REASON_UNLOCKED_PING':
      noteCadence(lock.ride, timeMs, timings.rideGpsEvery, RIDE_TOLERANCE_MS, () => note('ride-cadence'));
      break;
    case 'REASON_STATE_PING':
    case 'REASON_PERIOD_TRACKING':
      lock.hasGpsToFollow = true;
      break;
  }
  // The cellular pings of a ride have another reason.
  if (body.reason !== 'REASON_UNLOCKED_PING') {
    const cellularMs = lock.cellularMs.get(body.reason);
    if (cellularMs !== undefined && isWithin(timeMs - cellularMs, 0, bounds.cellularBeforeGpsWithin))
      note('cellular-first');
  }
  const { position } = body;
  const isRecent = isWithin(timeMs - lock.positionMs, 0, bounds.jumpWithin);
  if (isRecent && lock.position !== null) {
    const meters = metersBetween(lock.position, position);
    if (meters > 0 && meters <= (bounds.jumpOverSpeed * (timeMs - lock.positionMs)) / Seconds(1))
      note('position-plausible');
  }
  lock.position = position;
  lock.positionMs = timeMs;
}

/** Notes a GPS ping of a run, and reports it if it came at the model's interval after the GPS ping before. */
function noteCadence(run: GpsRun, timeMs: number, everyMs: number, toleranceMs: number, note: () => void): void {
  if (isWithin(timeMs - run.gpsMs, everyMs - toleranceMs, everyMs + toleranceMs)) note();
  run.gpsMs = timeMs;
  run.hasGpsSince = true;
}

/** Reports a located position if a command of its kind asked for it. */
function noteLocate({ model, lock, uplink, body, note }: OrderedPing): void {
  const type = body.reason === 'REASON_GPS_PING' ? 'locate-gps' : 'locate-cell';
  const { locateWithin, locateSlack } = model.bounds;
  for (const { command, atMs } of lock.commands.values()) {
    if (command.type !== type) continue;
    // The slack allows for a difference between the lock's clock and the trace's.
    if (!isWithin(uplink.timeMs - atMs, -locateSlack, locateWithin + locateSlack)) continue;
    note('locates-asked');
    return;
  }
}

function isWithin(value: number, from: number, to: number): boolean {
  return value >= from && value <= to;
}
