// `lockgate sim plan` estimates a fleet's traffic. Expected bytes come from the MQTT standard and from the gateway's
// meter on a real connection; all other expectations from the protocol's table and from runs of complete fleets.
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { SaxesParser } from 'saxes';
import t, { type Test } from 'tap';
import type { PlanFlags } from '../../cli/commands/sim/flags.js';
import { planFleet } from '../../cli/commands/sim/plan/plan.js';
import { STORED_PING_BYTES } from '../../cli/commands/sim/plan/print.js';
import { EXIT_CODE, exitCodeOf } from '../../cli/terminal/exit-codes.js';
import { type MixPart, parseMix } from '../../firmware-sim/fleet/mix.js';
import { runVirtual } from '../../firmware-sim/fleet/virtual-run.js';
import { TLS_13, WireSize } from '../../firmware-sim/link/wire-size.js';
import { drawStrata, type Estimate, totalOf } from '../../firmware-sim/plan/sample.js';
import { type HourSize, type Sizing, type SizingOptions, SizingRun } from '../../firmware-sim/plan/sizing.js';
import type { Sender } from '../../gateway/ingest/ingest.js';
import { encodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { PowerSettings } from '../../proto/wire/ping.js';
import { eventfulWorld, parkedWorld, replayDay, simulateDay } from '../helpers/cli/day-traffic.js';
import { runLockgate } from '../helpers/cli/program.js';
import { MERCHANT } from '../helpers/gateway/test-gateway.js';
import { startBrokerParts } from '../helpers/mqtt/broker-parts.js';
import { lockSender } from '../helpers/mqtt/lock-sender.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.setTimeout(120_000);

t.test('the gateway bills exactly the bytes that the plan counts', async (t) => {
  const { mac, messages, counted } = simulateDay(eventfulWorld(), new WireSize());
  const kinds = new Set(
    messages.map((message) => (message.type === 'uplink' ? message.uplink.body.kind : message.type)),
  );
  for (const kind of ['connect', 'keepalive', 'command', 'disconnect', 'cellular', 'gps', 'close_connection', 'ack'])
    t.ok(kinds.has(kind as never), kind);
  const { row } = await replayDay(t, 'tcp', mac, messages);
  t.match(row, {
    connections: counted.connections,
    messagesUp: counted.messagesUp,
    messagesDown: counted.messagesDown,
    bytesUp: counted.bytesUp,
    bytesDown: counted.bytesDown,
  });
});

t.test('with TLS the billed bytes agree with the plan within 1 %', async (t) => {
  const { mac, messages, counted } = simulateDay(eventfulWorld(), new WireSize({ tls: TLS_13 }));
  const { row } = await replayDay(t, 'tls', mac, messages);
  for (const direction of ['bytesUp', 'bytesDown'] as const) {
    const deviation = Math.abs(counted[direction] - row[direction]) / row[direction];
    t.ok(deviation < 0.01, `${direction}: ${counted[direction]} counted, ${row[direction]} billed`);
  }
});

/** The traffic of parked locks in a month. */
function monthOfParkedLocks(power: Partial<PowerSettings>, locks = 1) {
  return measureFleet({ locks, mix: 'mid', days: 30, worldOf: () => parkedWorld(power) });
}

/** A fleet to measure. */
interface FleetOptions extends Pick<SizingOptions, 'locks' | 'days'> {
  readonly mix: string;
  readonly sample?: number;
  readonly worldOf?: SizingOptions['worldOf'];
}

/** Runs the simulation of `sim plan` to its end. */
function measureFleet({ mix, sample = 1000, worldOf, ...options }: FleetOptions): Sizing {
  const run = new SizingRun({
    seed: 1,
    startMs: RUN_STARTS_MS,
    mix: parseMix(mix),
    sample,
    wire: new WireSize(),
    ...(worldOf && { worldOf }),
    ...options,
  });
  run.advance(run.endMs);
  return run.finish();
}

/**
 * Bytes of an MQTT packet CONNECT: the fixed header, the variable header, then client id and user name (each a MAC of
 * 12 letters) and password (36 letters), each after its length. The other packets below are counted in the same way.
 */
const CONNECT = 2 + 10 + (2 + 12) + (2 + 12) + (2 + 36);
/** Fixed header, packet id, the topic `down` after its length, QoS. */
const SUBSCRIBE = 2 + 2 + (2 + 4) + 1;
const DISCONNECT = 2;
/** Fixed header, the topic `up` after its length, packet id, payload. */
const publishOf = (payload: number): number => 2 + (2 + 2) + 2 + payload;
/** PING: a PINGREQ, and also its PINGRESP. */
const [CONNACK, SUBACK, PUBACK, PING] = [4, 5, 4, 2];

t.test('a lock in MID that never moves sends thirty period sequences in a month, and nothing else', async (t) => {
  const { total } = monthOfParkedLocks({});
  // A cellular ping, a GPS ping and a close-connection ping of 26, 31 and 17 bytes.
  const up = CONNECT + SUBSCRIBE + publishOf(26) + publishOf(31) + publishOf(17) + DISCONNECT;
  const down = CONNACK + SUBACK + 3 * PUBACK;
  t.match(total, {
    connections: { value: 30, standardError: 0 },
    messagesUp: { value: 90 },
    messagesDown: { value: 0 },
    keepalives: { value: 0 },
    bytesUp: { value: 30 * up },
    bytesDown: { value: 30 * down },
    bytes: { value: 30 * (up + down) },
  });
});

t.test(
  'a lock in recovery has one connection, a ping per quarter of an hour, and two keepalives between pings',
  async (t) => {
    const { total, hours } = monthOfParkedLocks({ recovery: true });
    // 96 network pings a day and a period sequence without an extra connection. The recovery setting and a number above
    // 127 take 5 bytes more than in MID. The day before made 98 uplinks, so 29 of the counted uplinks have a number
    // below 128.
    const uplinks = 30 * (97 * publishOf(31) + publishOf(36)) - 29;
    t.match(total, {
      connections: { value: 0 },
      messagesUp: { value: 30 * 98 },
      keepalives: { value: 30 * 96 * 2 },
      bytesUp: { value: uplinks + 30 * 96 * 2 * PING },
      bytesDown: { value: 30 * 98 * PUBACK + 30 * 96 * 2 * PING },
    });
    for (const { connected, connectedPeak, connectsPerMinutePeak } of hours)
      t.same([connected.value, connectedPeak, connectsPerMinutePeak], [1, 1, 0], 'at all times');
  },
);

t.test('locks in HIGH all connect when their window opens and disconnect when it closes', async (t) => {
  const { hours, total } = monthOfParkedLocks({ mode: 'HIGH' }, 5);
  for (const { hour, connected, connectedPeak, connectsPerMinutePeak } of hours) {
    const isInWindow = hour >= 7 && hour < 19;
    if (isInWindow) t.same([connected.value, connectedPeak], [5, 5], `${hour}`);
    else t.ok(connected.value < 0.1, `${hour}: locks connect only for their period sequences`);
    if (isInWindow || hour === 6) t.equal(connectsPerMinutePeak >= 5, hour === 7, `${hour}`);
  }
  t.ok(total.messagesUp.value >= 30 * 5 * 48, 'a ping each quarter of an hour');
  t.same(
    monthOfParkedLocks({ airplane: true }).total.bytes,
    { value: 0, standardError: 0 },
    'in airplane mode nothing passes',
  );
});

t.test('the traffic of the parts of the mix adds up to the total', async (t) => {
  const sizing = measureFleet({ locks: 24, mix: 'mid=3,high+ride=2,recovery=1', days: 3 });
  for (const name of ['connections', 'messagesUp', 'keepalives', 'bytesUp', 'bytesDown', 'bytes'] as const) {
    const sum = sizing.parts.reduce((all, { month }) => all + month[name].value, 0);
    t.ok(Math.abs(sum - sizing.total[name].value) < 1e-6 && sum > 0, name);
    t.equal(sizing.total[name].standardError, 0, 'all locks were simulated, so nothing is estimated');
  }
  const { bytes, bytesUp, bytesDown } = sizing.total;
  t.ok(Math.abs(bytes.value - bytesUp.value - bytesDown.value) < 1e-6);
  t.same(
    sizing.parts.map(({ locks, sampled }) => [locks, sampled]),
    [
      [12, 12],
      [8, 8],
      [4, 4],
    ],
  );
  const batteries = sizing.parts.map(({ battery }) => battery?.days ?? 0);
  const [mid = 0, highAndRide = 0, recovery = 0] = batteries;
  t.ok(mid > highAndRide && highAndRide > recovery, `a battery lasts ${batteries} days`);
  const mah = sizing.parts.reduce((all, { locks, battery }) => all + (locks / 24) * (battery?.mahPerDay ?? 0), 0);
  t.ok(Math.abs(mah - (sizing.battery?.mahPerDay ?? 0)) < 1e-9);
});

t.test('a sample is scaled by part of the mix, with the standard error of stratified sampling', async (t) => {
  const part = parseMix('mid')[0] as MixPart;
  t.same(totalOf({ part, locks: 10, sampled: 4 }, [1, 2, 3, 4]), { value: 25, standardError: 5 });
  t.same(totalOf({ part, locks: 4, sampled: 4 }, [1, 2, 3, 4]), { value: 10, standardError: 0 });
  const strata = drawStrata(parseMix('mid=90,high=9,recovery=1'), 100_000, 1000);
  t.same(
    strata.map(({ locks, sampled }) => [locks, sampled]),
    [
      [90_000, 900],
      [9000, 90],
      [1000, 30],
    ],
    'a small part of the mix has at least 30 locks, enough to estimate the standard error',
  );
  const fleet = { locks: 300, mix: 'mid=3,high=2,recovery=1', days: 2 };
  const complete = measureFleet(fleet);
  const scaled = measureFleet({ ...fleet, sample: 100 });
  // 100 by share of the mix are 50, 33 and 17; the last part is raised to 30.
  t.same([complete.sampled, scaled.sampled], [300, 113]);
  const ROUNDING = 1e-9;
  const isNear = (estimate: Estimate, exact: Estimate): boolean => {
    // Four standard errors: a deviation beyond that happens by chance once in 16,000 samples.
    return Math.abs(estimate.value - exact.value) <= 4 * estimate.standardError + ROUNDING;
  };
  for (const name of ['connections', 'messagesUp', 'bytesUp', 'bytesDown'] as const) {
    t.ok(isNear(scaled.total[name], complete.total[name]), `${name} ${JSON.stringify(scaled.total[name])}`);
    t.ok(
      scaled.total[name].standardError < 0.1 * complete.total[name].value,
      `the standard error is below 10 %: ${name}`,
    );
  }
  for (const [hour, { connected, connectedPeak }] of scaled.hours.entries()) {
    const exact = complete.hours[hour] as HourSize;
    t.ok(isNear(connected, exact.connected), `hour ${hour}: ${JSON.stringify([connected, exact.connected.value])}`);
    // When the window closes, all locks are connected for a last moment, which a sample counts in the hour before.
    if (hour === 19) continue;
    t.ok(Math.abs(connectedPeak - exact.connectedPeak) <= 0.25 * exact.connectedPeak + 4, `peak of hour ${hour}`);
  }
  const rush = scaled.hours[7]?.connectsPerMinutePeak ?? 0;
  t.ok(rush >= 90 && rush <= 110, `${rush} of 100 locks in HIGH connect when their window opens`);
});

/** The size of a closed store that contains these uplinks. */
async function storeBytes(t: Test, uplinks: readonly (readonly [Mac, Uint8Array])[]): Promise<number> {
  const data = tempFolder(t);
  const { store, ingest, stop } = await startBrokerParts({ data });
  // No lock logs in here, so any hash does, and so does any time.
  const nowMs = 1;
  await store.addMerchant(MERCHANT, nowMs);
  const senders = new Map<Mac, Sender>();
  for (const mac of new Set(uplinks.map(([mac]) => mac))) {
    await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs });
    senders.set(mac, await lockSender(store, mac));
  }
  for (const [index, [mac, bytes]] of uplinks.entries()) {
    ingest.take(senders.get(mac) as Sender, bytes, () => undefined);
    // So that only a few uplinks at a time wait to be stored.
    if (index % 100 === 0) await ingest.idle();
  }
  await ingest.idle();
  await stop();
  return statSync(path.join(data, 'lockgate.sqlite')).size;
}

t.test('the size of a stored ping matches the plan within 15 %', async (t) => {
  const uplinks: [Mac, Uint8Array][] = [];
  runVirtual({
    seed: 1,
    locks: 40,
    days: 8,
    startMs: RUN_STARTS_MS,
    sink: { uplink: (mac, _atMs, uplink) => uplinks.push([mac, encodeUplink(uplink)]) },
  });
  // The difference of two stores leaves out the bytes that a store without pings has too.
  const fewUplinks = uplinks.slice(0, Math.floor(uplinks.length / 4));
  const addedBytes = (await storeBytes(t, uplinks)) - (await storeBytes(t, fewUplinks));
  const bytesPerPing = addedBytes / (uplinks.length - fewUplinks.length);
  t.ok(Math.abs(bytesPerPing / STORED_PING_BYTES - 1) < 0.15, `${bytesPerPing} bytes per ping`);
});

const PLAN = ['sim', 'plan', '--locks', '40', '--mix', 'mid=3,high=1', '--days', '1'];

t.test('the command prints tables, JSON, a chart, and the command that repeats it', async (t) => {
  const svg = path.join(tempFolder(t), 'load.svg');
  const prices = ['--per-mb', '0.12', '--per-sim', '0.80', '--currency', 'EUR'];
  const run = async (...args: string[]) => {
    const program = await runLockgate([...args]);
    return { code: program.exit?.code, stdout: program.stdout.join('\n'), stderr: program.stderr.join('\n') };
  };
  const asJson = await run(...PLAN, '--seed', "it's", ...prices, '--svg', svg, '--json');
  t.match(asJson, { code: 0, stderr: '' });
  const plan = JSON.parse(asJson.stdout);
  t.match(plan, {
    seed: "it's",
    locks: 40,
    simulated_locks: 40,
    scaled: false,
    month_days: 30,
    rate_window_seconds: 60,
  });
  t.match(plan.parts, [
    { part: 'mid', locks: 30 },
    { part: 'high', locks: 10 },
  ]);
  t.equal(plan.hours.length, 24);
  const { bytes } = plan.month;
  // A megabyte costs 12 cents, the SIM of each of the 40 locks 80.
  const cents = Math.round((bytes / 1e6) * 12 + 40 * 80);
  t.equal(plan.month.price, (cents / 100).toFixed(2), 'the price of MB and SIMs, calculated here');
  t.equal(plan.repeat.endsWith(`--seed 'it'\\''s' --mix mid=3,high=1 --sample 1000 ${prices.join(' ')}`), true);
  const chart = readFileSync(svg, 'utf8');
  const texts: string[] = [];
  const parser = new SaxesParser({ xmlns: true });
  parser.on('text', (text) => texts.push(text));
  parser.write(chart).close();
  for (const text of ['mean', 'peak', 'Connections at once', 'hour of the day (UTC)', '23'])
    t.ok(texts.includes(text), text);
  // The key has two; each of the two charts has a mean and a peak for each hour.
  t.equal(chart.match(/<rect class="(mean|peak)"/g)?.length, 2 + 2 * 2 * 24);

  // The second --locks counts.
  const shown = await run(...PLAN, '--locks', '80', '--sample', '40', ...prices);
  t.equal(shown.code, 0);
  for (const line of shown.stdout.split('\n')) if (!/^Made in/.test(line)) t.ok([...line].length <= 100, line);
  t.match(shown.stdout, /^seed 1, 80 locks, 1 day, everyday, plain TCP, 50 of them simulated\nmix mid=3,high=1\n/);
  t.match(shown.stdout, /\nScaled from 50 simulated locks; ± is the standard error; of all bytes: \d/);
});

/** An interruption that never happens. */
const NEVER_INTERRUPTED = {
  signal: new AbortController().signal,
  exitCode: 130,
  happened: new Promise<void>(() => undefined),
};
const FLAGS: PlanFlags = { locks: 10, days: 1, seed: '1', pace: 'everyday', mix: 'mid', sample: 10, commands: 0 };

t.test('a wrong flag is exit 2 with what was expected; Ctrl-C is exit 130', async (t) => {
  const wrong: [Partial<PlanFlags>, RegExp][] = [
    [{ mix: 'low' }, /expected parts such as/],
    [{ perMb: '0.12' }, /expected all three or none/],
    [{ perMb: '1.1234567', perSim: '1', currency: 'EUR' }, /is no price/],
    [{ perMb: '1', perSim: '1', currency: 'EUROS' }, /is no currency/],
    [{ chain: 2000 }, /--chain requires --tls/],
    [{ svg: '/nowhere/at/all.svg', json: true }, /can't be written/],
  ];
  for (const [flags, message] of wrong) {
    const failed = await planFleet({ ...FLAGS, ...flags }, NEVER_INTERRUPTED).catch((error: unknown) => error);
    t.match((failed as Error).message, message);
    t.equal(exitCodeOf(failed), EXIT_CODE.badInput);
  }
  const noLocks = await runLockgate(['sim', 'plan', '--locks', '0']);
  t.match(
    [noLocks.exit?.code, noLocks.stderr.join('\n')],
    [EXIT_CODE.badInput, /Expected a whole number, 1 to 1000000/],
  );
  const aborted = new AbortController();
  aborted.abort();
  await planFleet(FLAGS, { ...NEVER_INTERRUPTED, signal: aborted.signal });
  t.equal(process.exitCode, 130);
  process.exitCode = 0;
});
