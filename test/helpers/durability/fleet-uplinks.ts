/**
 * Makes random uplinks (messages) of locks over some boots, and the order in which they arrive. Locks' clocks may be
 * years off and jump at a boot. Uplinks may arrive twice, and long after uplinks that were made later.
 */
import type { Prng } from '../../../firmware-sim/prng.js';
import { Days, Minutes, Seconds } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type LockState, type Ping, type PowerSettings, type Uplink } from '../../../proto/wire/ping.js';
import type { Reason } from '../../../proto/wire/reasons.js';

/** An uplink and its bytes, which never change. */
export interface FleetUplink {
  /** The true time at which the lock made it; the lock's clock may differ. */
  readonly trueMs: number;
  readonly uplink: Uplink;
  readonly bytes: Buffer;
}

const TEN_YEARS = Days(3652);
const REASONS: readonly Reason[] = [
  'REASON_THEFT',
  'REASON_PERIOD_TRACKING',
  'REASON_STATE_PING',
  'REASON_UNLOCKED_PING',
  'REASON_UNLOCKED_MOVEMENT',
  'REASON_NETWORK_PING',
  'REASON_RESET',
];

/** Returns 20 to 30 uplinks of a lock, over some boots, in the order in which the lock makes them. */
export function fleetUplinks(random: Prng, startMs: number): FleetUplink[] {
  const count = random.integer(20, 30);
  const isClockWrong = random.chance(0.3);
  const uplinks: FleetUplink[] = [];
  let boot = random.integer(0, 1000);
  let sequence = 0;
  let clockErrorMs = isClockWrong ? randomClockErrorMs(random) : 0;
  let power = DEFAULT_POWER;
  for (let index = 0; index < count; index++) {
    if (index > 0 && random.chance(0.1)) {
      boot += random.integer(1, 3);
      sequence = 0;
      if (isClockWrong) clockErrorMs = randomClockErrorMs(random);
    }
    if (random.chance(0.1)) power = randomPower(random);
    sequence += 1;
    const trueMs = startMs + Minutes(10) * index + random.integer(0, Minutes(10) - 1);
    const body: Uplink['body'] = random.chance(0.08) ? randomAck(random) : randomPing(random);
    const uplink = { boot, sequence, timeMs: trueMs + clockErrorMs, power, kept: 0, dropped: 0, body };
    uplinks.push({ trueMs, uplink, bytes: Buffer.from(encodeUplink(uplink)) });
  }
  return uplinks;
}

function randomClockErrorMs(random: Prng): number {
  return Math.round(random.between(-TEN_YEARS, TEN_YEARS));
}

function randomPower(random: Prng): PowerSettings {
  return {
    mode: random.pick(['MID', 'HIGH']),
    rideTracking: random.chance(0.5),
    airplane: random.chance(0.2),
    recovery: random.chance(0.2),
  };
}

function randomAck(random: Prng): Uplink['body'] {
  const minute = (): number => random.integer(0, 1439);
  const highWindow = random.chance(0.5)
    ? { fromMinute: minute(), toMinute: minute(), utcOffsetMinutes: random.integer(-720, 720) }
    : null;
  return { kind: 'ack', commandId: random.integer(1, 1000), result: 'ok', detail: '', highWindow };
}

function randomPing(random: Prng): Ping {
  const common = {
    lockState: random.pick(['locked', 'unlocked', 'unknown'] as const) as LockState,
    batteryPercent: random.integer(5, 100),
  };
  if (random.chance(0.15)) return { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', ...common };
  const reason: Reason = random.chance(0.1) ? `REASON_UNRECOGNIZED_${random.integer(40, 9999)}` : random.pick(REASONS);
  const position = {
    latitudeDegrees: random.integer(-90_0000000, 90_0000000) / 1e7,
    longitudeDegrees: random.integer(-180_0000000, 180_0000000) / 1e7,
    uncertaintyMeters: random.integer(1, 50),
  };
  const sensors = { ebikeVolts: null, tetherState: 'detached' } as const;
  if (random.chance(0.5))
    return { kind: 'gps', reason, ...common, ...sensors, position, speedMetersPerSecond: 4, directionDegrees: 90 };
  return { kind: 'cellular', reason, ...common, ...sensors, firmwareVersion: '2.4.1', position: null };
}

/**
 * Returns a lock's uplinks in the order of arrival: `lateShare` of them arrive late, up to after all others, and
 * `repeatedShare` arrive twice.
 */
export function shuffleAndRepeat(
  random: Prng,
  uplinks: readonly FleetUplink[],
  lateShare: number,
  repeatedShare: number,
): FleetUplink[] {
  const arrivals = uplinks.map((uplink, index) => {
    const position = random.chance(lateShare) ? index + random.between(1, random.pick([3, 10, uplinks.length])) : index;
    return { uplink, position };
  });
  const repeats = arrivals
    .filter(() => random.chance(repeatedShare))
    .map(({ uplink, position }) => ({ uplink, position: position + random.between(0, uplinks.length) }));
  return [...arrivals, ...repeats].sort((a, b) => a.position - b.position).map(({ uplink }) => uplink);
}

/** How long an uplink takes from a lock to the gateway on a fast network. */
export const NETWORK_DELAY = Seconds(1);
