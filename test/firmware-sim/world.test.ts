// The world of a simulated lock is what happens to the lock. It has the properties that its documentation states: the
// error of GPS, the consumption of batteries, the times of rides. Healthy locks break no rule in that world.
import t from 'tap';
import { parseMix } from '../../firmware-sim/fleet/mix.js';
import { VirtualRun } from '../../firmware-sim/fleet/virtual-run.js';
import { Prng } from '../../firmware-sim/prng.js';
import { LockBattery } from '../../firmware-sim/world/battery/battery.js';
import { EbikeBattery } from '../../firmware-sim/world/battery/ebike-battery.js';
import { POWER_DRAW } from '../../firmware-sim/world/battery/power-draw.js';
import { CommuterWeek } from '../../firmware-sim/world/day-pattern.js';
import { GpsReceiver } from '../../firmware-sim/world/gps-receiver.js';
import { EVERYDAY } from '../../firmware-sim/world/pace.js';
import { PlannedWorld } from '../../firmware-sim/world/planned-world.js';
import { AMSTERDAM, cityAround, placeAlong, positionOf } from '../../firmware-sim/world/routes/city.js';
import { Days, Hours, Minutes, Seconds } from '../../proto/clock.js';
import { findingsIn, RUN_STARTS_MS, traceOf } from '../helpers/sim/judged-run.js';
import { type LatLon, metersApart } from '../helpers/sim/sphere.js';

const latLon = ({
  latitudeDegrees,
  longitudeDegrees,
}: {
  latitudeDegrees: number;
  longitudeDegrees: number;
}): LatLon => [latitudeDegrees, longitudeDegrees];

t.test('the true place is within the stated uncertainty in 95 % of the fixes, and errors drift', async (t) => {
  let within = 0;
  let outliers = 0;
  let fixes = 0;
  let wrongDirections = 0;
  // Per stated uncertainty: the fixes within it and all fixes.
  const uncertainties = new Map<number, { within: number; all: number }>();
  // Per interval between fixes: the sum of products of successive errors, and the sum of squares, for the correlation.
  const products: Record<number, [number, number]> = { 10: [0, 0], 300: [0, 0] };
  for (let lock = 0; lock < 40; lock++) {
    const intervalSeconds = lock % 2 === 0 ? 10 : 300;
    const receiver = new GpsReceiver(new Prng(`gps ${lock}`), AMSTERDAM);
    // A different direction (31° apart) and distance (60 m apart) for each lock, since the uncertainty varies by place.
    const middle = placeAlong({ eastMeters: 0, northMeters: 0 }, lock * 31, lock * 60);
    let previousNorth: number | undefined;
    for (let index = 0; index < 500; index++) {
      const place = placeAlong(middle, 45, intervalSeconds === 10 ? 0 : index * 15);
      const motion = { place, speedMetersPerSecond: 5, directionDegrees: 45 };
      const fix = receiver.read(Seconds(intervalSeconds * index), motion);
      const { uncertaintyMeters } = fix.position;
      const truth = latLon(positionOf(AMSTERDAM, place, 0));
      const errorMeters = metersApart(truth, latLon(fix.position));
      const isWithin = errorMeters <= uncertaintyMeters;
      fixes += 1;
      within += isWithin ? 1 : 0;
      outliers += errorMeters > 2 * uncertaintyMeters ? 1 : 0;
      wrongDirections += Math.abs(fix.directionDegrees - 45) > 30 ? 1 : 0;
      const count = uncertainties.get(uncertaintyMeters) ?? { within: 0, all: 0 };
      uncertainties.set(uncertaintyMeters, { within: count.within + (isWithin ? 1 : 0), all: count.all + 1 });
      if (Math.abs(fix.speedMetersPerSecond - 5) > 4) t.fail(`a speed of ${fix.speedMetersPerSecond}`);
      const north = (fix.position.latitudeDegrees - truth[0]) / uncertaintyMeters;
      const product = products[intervalSeconds] ?? [0, 0];
      if (previousNorth !== undefined) product[0] += previousNorth * north;
      product[1] += north * north;
      previousNorth = north;
    }
  }
  t.equal(fixes, 20_000);
  t.ok(within / fixes > 0.92 && within / fixes < 0.98, `${within} of ${fixes} fixes within the uncertainty`);
  t.ok(outliers < 5, `${outliers} fixes beyond twice the uncertainty`);
  t.ok(wrongDirections < fixes / 100, `${wrongDirections} directions with a large error`);
  const seenUncertainties = [...uncertainties.keys()];
  t.ok(
    Math.min(...seenUncertainties) <= 5 && Math.max(...seenUncertainties) >= 20,
    `from ${Math.min(...seenUncertainties)} m to ${Math.max(...seenUncertainties)} m`,
  );
  const [correlation10s = 0, correlation5min = 0] = [10, 300].map(
    (intervalSeconds) => (products[intervalSeconds]?.[0] ?? 0) / (products[intervalSeconds]?.[1] ?? 1),
  );
  t.ok(correlation10s > 0.6, `10 s later the error is similar: ${correlation10s}`);
  t.ok(Math.abs(correlation5min) < 0.35, `5 min later the error is independent: ${correlation5min}`);
});

t.test(
  'a receiver that stands still reports no speed and keeps its direction; the true fix has no error',
  async (t) => {
    const receiver = new GpsReceiver(new Prng(1), AMSTERDAM);
    const place = { eastMeters: 10, northMeters: 20 };
    const moving = receiver.read(0, { place, speedMetersPerSecond: 5, directionDegrees: 90 });
    const standing = receiver.read(1000, { place, speedMetersPerSecond: 0, directionDegrees: 270 });
    t.match(standing, { speedMetersPerSecond: 0, directionDegrees: moving.directionDegrees });
    const world = new PlannedWorld({ prng: new Prng(2), city: AMSTERDAM, startMs: 0, pace: EVERYDAY });
    t.same(world.trueFixAt(0), world.trueFixAt(0), 'reading twice changes nothing');
    const [read, truth] = [world.fixAt(0), world.trueFixAt(0)];
    t.ok(metersApart(latLon(read.position), latLon(truth.position)) < 60);
    t.notSame(read.position, truth.position);
  },
);

t.test('each cause drains the battery by the amount that follows from its figure', async (t) => {
  const battery = new LockBattery({ startMs: 0, percent: 50 });
  battery.apply({ type: 'connect' }, 0);
  battery.apply({ type: 'gps-on' }, 0);
  battery.apply({ type: 'gps-off' }, Seconds(30));
  // GPS is off already, so this changes nothing.
  battery.apply({ type: 'gps-off' }, Seconds(40));
  // Each uplink costs the same, whatever it says.
  for (const second of [1, 2, 3]) battery.apply({ type: 'publish', uplink: {} as never }, Seconds(second));
  battery.disconnected(Seconds(60));
  battery.apply({ type: 'unlock' }, Seconds(70));
  battery.motorRan(Seconds(80));
  battery.apply({ type: 'siren', durationMs: Seconds(10) }, Seconds(90));
  battery.apply({ type: 'tone', durationMs: Seconds(6) }, Seconds(95));
  const used = battery.usedMah(Hours(1));
  const expected = {
    idle: 0.05, // mA, for an hour
    selfDischarge: (2950 * 0.02) / (30.4375 * 24), // 2 % of 2,950 mAh in a month of 30.4375 days
    modem: 11 / 60, // 11 mA for a minute
    connect: 0.3, // one attempt
    send: 0.27, // three uplinks of 0.09 mAh
    gps: 30 / 120, // 30 mA for 30 s
    motor: 0.3, // opening by the command and another run, 0.15 mAh each
    tone: 0.1, // 60 mA for 6 s
    siren: 500 / 360, // 500 mA for 10 s
  };
  for (const [cause, mah] of Object.entries(expected))
    t.ok(Math.abs((used[cause as keyof typeof used] ?? Number.NaN) - mah) < 1e-9, `${cause}: ${mah} mAh`);
  const sum = Object.values(expected).reduce((all, mah) => all + mah, 0);
  // 50 % of 2,950 mAh are 1,475.
  t.ok(Math.abs(battery.chargeMah - (1475 - sum)) < 1e-9, 'the charge falls by the sum of all causes');
  for (const { sentence, source } of Object.values(POWER_DRAW)) {
    t.match(sentence, /^[A-Z].*\.$/);
    t.ok(source.length > 10);
  }
});

// `nextAtMs` is when the gauge next shows another percent; `take` makes it do so, and returns the new percent.
t.test('the gauge changes at the moment when a whole percent is reached, down and up', async (t) => {
  const battery = new LockBattery({ startMs: 0, percent: 10, speedup: 10 });
  battery.apply({ type: 'gps-on' }, 0);
  // 1 % is 29.5 mAh. The consumption is ten times the sum of 30 mA of GPS, 0.05 mA of idling and 2 % a month.
  const milliamps = 10 * (30 + 0.05 + (2950 * 0.02) / (30.4375 * 24));
  t.equal(battery.nextAtMs, Math.ceil((29.5 / milliamps) * Hours(1)));
  t.equal(battery.percent, 10, 'the gauge has not changed yet');
  t.equal(battery.take(), 9);
  battery.apply({ type: 'gps-off' }, battery.nextAtMs - 1);
  battery.set(9, Hours(1));
  battery.chargeBetween(Hours(2), Hours(3));
  // The charger gives 10 × 1 A for an hour, which fills the battery, and no more.
  const gaugePercents: number[] = [];
  while (battery.nextAtMs < Hours(3)) gaugePercents.push(battery.take());
  t.same(
    gaugePercents,
    Array.from({ length: 91 }, (_, index) => 10 + index),
  );
  t.equal(battery.percent, 100);
  const idle = 10 * (0.05 + (2950 * 0.02) / (30.4375 * 24));
  t.equal(battery.nextAtMs, Math.ceil(Hours(3) + (29.5 / idle) * Hours(1)), 'then the battery discharges slowly');
  const empty = new LockBattery({ startMs: 0, percent: 2 });
  empty.apply({ type: 'gps-on' }, 0);
  t.equal(empty.take(), 1);
  t.equal(empty.nextAtMs, Number.POSITIVE_INFINITY, 'the charge never falls below the protection limit');
  // GPS draws 30 mA, which is 21,600 mAh in 30 days; the protection limit is 1 %, 29.5 mAh.
  t.ok(empty.usedMah(Days(30)).gps > 21_000 && empty.chargeMah > 29);
});

t.test('the battery of an e-bike is drained by distance, and charged before it is empty', async (t) => {
  const battery = new EbikeBattery(new Prng(5));
  const voltsBefore = battery.volts;
  battery.drainFor(10_000);
  // 10 km take 60 to 120 Wh; of 500 Wh these are that share of the 12 V between empty and full.
  const fallVolts = voltsBefore - battery.volts;
  t.ok(fallVolts >= 1.4 && fallVolts <= 3, `${fallVolts} V`);
  for (let ride = 0; ride < 100; ride++) {
    battery.drainFor(9000);
    t.ok(battery.volts >= 30 && battery.volts <= 42);
  }
});

t.test('commuters ride to work on workdays and go out at weekends, by local time; some are away', async (t) => {
  const counts = { work: [0, 0, 0, 0, 0, 0, 0], out: [0, 0, 0, 0, 0, 0, 0] };
  let longest = 0;
  for (const offsetMinutes of [60, -300]) {
    const toHour = (atMs: number): number => ((atMs + Minutes(offsetMinutes)) % Days(1)) / Hours(1);
    for (let person = 0; person < 60; person++) {
      const week = new CommuterWeek(new Prng(person), Minutes(offsetMinutes));
      const sameSeed = new CommuterWeek(new Prng(person), Minutes(offsetMinutes));
      let atMs = RUN_STARTS_MS;
      while (atMs < RUN_STARTS_MS + Days(364)) {
        const next = week.next(atMs);
        if (JSON.stringify(next) !== JSON.stringify(sameSeed.next(atMs))) t.fail('the same seed gives another ride');
        if (next.atMs < atMs + Minutes(15)) t.fail('too soon');
        longest = Math.max(longest, next.atMs - atMs);
        atMs = next.atMs;
        const weekday = new Date(atMs + Minutes(offsetMinutes)).getUTCDay();
        if (next.purpose !== 'work' && next.purpose !== 'out') continue;
        counts[next.purpose][weekday] = (counts[next.purpose][weekday] ?? 0) + 1;
        if (next.purpose === 'work' && !(toHour(atMs) > 6 && toHour(atMs) < 10)) t.fail(`to work at ${toHour(atMs)}`);
        if (next.purpose === 'out' && !(toHour(atMs) >= 10 && toHour(atMs) < 21)) t.fail(`out at ${toHour(atMs)}`);
      }
    }
  }
  const [sunday, , , wednesday, , , saturday] = counts.work;
  t.same([sunday, saturday], [0, 0]);
  // 60 riders in each of two time zones, on 52 Wednesdays; each rides to work on 30 to 90 % of the working days.
  t.ok((wednesday ?? 0) > 120 * 52 * 0.4, `${wednesday} rides to work on Wednesdays`);
  const [outSunday = 0, , , outWednesday = 0] = counts.out;
  t.ok(outSunday > 2 * outWednesday, `${outSunday} out on Sundays, ${outWednesday} on Wednesdays`);
  t.ok(longest > Days(5), 'some rider was away for days');
  t.equal(cityAround(-33.9, 151.2).utcOffsetMinutes, 600, 'the local time of Sydney follows from its longitude');
});

t.test('in two months healthy locks cause no violation, and the world explains every warning', async (t) => {
  for (const options of [
    { seed: 1, locks: 20, days: 60 },
    { seed: 2, locks: 10, days: 4, pace: 'lively' as const },
    { seed: 3, locks: 10, days: 30, mix: parseMix('low-battery=1,recovery+ride=1,high=1') },
  ]) {
    const lines = traceOf({ ...options, hasWorldEvents: true });
    const findings = findingsIn(lines);
    t.same(
      findings.filter(({ severity }) => severity === 'violation'),
      [],
    );
    t.same(unexplained(lines, findings), [], `seed ${options.seed}`);
    const percents = worldLines(lines).flatMap(({ battery_percent: percent }) => percent ?? []);
    t.ok(Math.min(...percents) < 10 && percents.includes(100), 'batteries ran low, and were charged');
  }
});

/** A line of a trace that says what truly happened to a lock. */
interface WorldLine {
  readonly at: string;
  readonly mac: string;
  readonly event: string;
  readonly coverage?: boolean;
  readonly modem_reset?: boolean;
  readonly boot?: number;
  readonly battery_percent?: number;
}

function worldLines(lines: readonly string[]): WorldLine[] {
  return lines.filter((line) => line.includes('"event":"world"')).map((line) => JSON.parse(line) as WorldLine);
}

/**
 * The maximum time between the end of an outage of network, modem or power and a warning that the outage explains. The
 * judge warns when no daily ping has come for 25 h or a lock is offline for 10 min; the rest is for retries. A
 * connection that breaks without a close-connection ping (not-closed) does so when the outage begins.
 */
const EXPLAINED_WITHIN: Readonly<Record<string, number>> = {
  'not-closed': Seconds(2),
  'period-overdue': Hours(26),
  'window-offline': Minutes(20),
  'recovery-offline': Minutes(20),
};

/** The messages of the findings that came neither during an outage nor soon after one. */
function unexplained(lines: readonly string[], findings: ReturnType<typeof findingsIn>): string[] {
  // Of each lock, the beginnings and ends of losses of coverage, and boots and modem restarts, which last a moment.
  const outages = new Map<string, { atMs: number; isLasting: boolean }[]>();
  for (const { at, mac, coverage, modem_reset: reset, boot } of worldLines(lines)) {
    if (coverage === undefined && reset === undefined && boot === undefined) continue;
    outages.set(mac, [...(outages.get(mac) ?? []), { atMs: Date.parse(at), isLasting: coverage === false }]);
  }
  return findings
    .filter(({ rule, mac, line }) => {
      const atMs = Date.parse((JSON.parse(lines[line - 1] ?? '{}') as { at: string }).at);
      const explainedWithin = EXPLAINED_WITHIN[rule] ?? 0;
      const last = outages.get(mac)?.findLast((event) => event.atMs <= atMs);
      return last === undefined || (!last.isLasting && last.atMs < atMs - explainedWithin);
    })
    .map(({ message }) => message);
}

t.test('the consumption of a day follows from the mode', async (t) => {
  const perDay = (mix: string): number => {
    const run = new VirtualRun({ seed: 1, locks: 5, days: 20, startMs: RUN_STARTS_MS, mix: parseMix(mix) });
    run.advance(run.endMs);
    const used = run.locks.map(({ battery }) => Object.values(battery?.usedMah(run.endMs) ?? {}));
    // The average of 5 locks and 20 days.
    return used.flat().reduce((sum, mah) => sum + mah, 0) / 5 / 20;
  };
  const [mid, high, recovery] = [perDay('mid'), perDay('high'), perDay('recovery')];
  t.comment(`mAh a day: MID ${mid.toFixed(1)}, HIGH ${high.toFixed(1)}, recovery ${recovery.toFixed(1)}`);
  // The modem draws 11 mA while it is connected: in HIGH for the 12 h of the window, 132 mAh, and in recovery for 24 h,
  // 264 mAh. All other consumption is small in comparison.
  // In MID the lock is mostly asleep: self-discharge and idling alone are 3.1 mAh.
  t.ok(mid > 3.1 && mid < 20);
  t.ok(high > 132 && high < 165);
  t.ok(recovery > 255 && recovery < 300);
});
