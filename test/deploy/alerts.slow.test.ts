/**
 * Real gateways in trouble fire the alerts of deploy/monitoring that test/gateway/monitoring.test.ts does not provoke.
 * Three troubles are simulated, since a test can't bring them about: a slow disk, a full one, and a bug of our own.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Config } from '../../gateway/config.js';
import type { GatewayOptions } from '../../gateway/gateway.js';
import { Days, Hours, Seconds, systemClock } from '../../proto/clock.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';
import { checkFired, needsTool, type Series, scrape, seriesOf, type Values } from '../helpers/deploy/alert-cases.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import { BAD_MAC, FailingJudge } from '../helpers/gateway/failing-judge.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  waitForEvents,
} from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { advanceToNextTimer, eventually, setUpWebhooks } from '../helpers/gateway/webhook-setup.js';
import { apiKey, callMerchantApi } from '../helpers/http/merchant-call.js';
import { testCertificate, writeCertificate } from '../helpers/mqtt/test-certificates.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { writeStored } from '../helpers/store/stored-bytes.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const START = Date.UTC(2026, 10, 20, 12);
/** Far longer than a lock, which sends at least once a day, may be silent. */
const SILENCE_HOURS = 60;
/** A gateway does not believe a date that is more than a day ahead of the last one it saw. */
const LEAP = Days(30);

/** The series whose name matches: the others depend on what else the gateway does meanwhile. */
function only(series: Series, name: RegExp): Series {
  return Object.fromEntries(Object.entries(series).filter(([each]) => name.test(each)));
}

/** The value of a series. */
const figureOf = (values: Values, series: string): number => Number(values.get(series));

t.test('LockgateDown: a gateway that has ended', needsTool, async (t) => {
  const gateway = await testGateway(t);
  const up = async (): Promise<number> =>
    await scrape(gateway).then(
      () => 1,
      () => 0,
    );
  const before = await up();
  await gateway.close();
  // In promtool's notation: the first value for ten minutes, then the second one for ninety.
  const series = { 'up{job="lockgate"}': `${before}+0x10 ${await up()}+0x90` };
  checkFired(t, [{ name: 'an end', series, fired: ['LockgateDown'] }]);
});

t.test('silent locks, a judge that fails, a receiver that fails, a date that leaps', needsTool, async (t) => {
  const machine = new ManualMachine(START);
  const folder = tempFolder(t);
  const judging = new FailingJudge(({ type }) => type === 'uplink');
  const gateway = await openGateway(t, folder, { machine, judging });
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const before = await scrape(gateway);
  const opened = waitForEvents(gateway, 'circuit', 1);
  const bad = await connectedLock(t, gateway, BAD_MAC);
  await bad.send(testBytes(1, { timeMs: START }));
  const lock = await connectedLock(t, gateway, testMac(2));
  for (let sequence = 1; sequence <= 12; sequence += 1) await lock.send(testBytes(sequence, { timeMs: START }));
  await opened;
  for (const each of [bad, lock]) await each.client.endAsync();
  // In steps, so that a lock's silence is noticed on the way.
  for (let hour = 0; hour < SILENCE_HOURS; hour += 1) machine.advance(Hours(1));
  let after = before;
  await eventually('the locks are late', async () => {
    after = await scrape(gateway);
    return figureOf(after, 'lockgate_presence{presence="late"}') > 0;
  });
  const fired = ['LockgateLocksLate', 'LockgateLocksUnjudged', 'LockgateWebhookBehind', 'LockgateWebhookFails'];
  const series = only(seriesOf(before, after), /^lockgate_(presence|locks_unjudged|url_)/);
  checkFired(t, [{ name: 'silence', series, fired }]);
  await gateway.close();

  const later = await openGateway(t, folder, { machine: new ManualMachine(machine.wall() + LEAP), judging });
  const leapt = await scrape(later);
  t.ok(figureOf(leapt, 'lockgate_clock_ahead_seconds') >= (LEAP - Hours(1)) / Seconds(1));
  const clock = only(seriesOf(leapt, leapt), /^lockgate_clock/);
  checkFired(t, [{ name: 'a leap', series: clock, fired: ['LockgateClockDoubted'] }]);
});

t.test('LockgateEventsDamaged: a bit of a stored ping flips', needsTool, async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await connectedLock(t, gateway, testMac());
  const before = await scrape(gateway);
  const failed = waitForEvents(gateway, 'delivery', 1);
  const [bytes, rotten] = [testBytes(1), testBytes(1)];
  await lock.send(bytes);
  await failed;
  rotten.writeUInt8(rotten.readUInt8(rotten.length - 1) ^ 1, rotten.length - 1);
  writeStored(gateway, 1, rotten);
  const damaged = waitForEvents(gateway, 'event-damaged', 1);
  await advanceToNextTimer(clock);
  await damaged;
  let after = before;
  await eventually('the event counts as damaged', async () => {
    after = await scrape(gateway);
    return figureOf(after, 'lockgate_url_events{url_id="1",state="damaged"}') === 1;
  });
  const series = only(seriesOf(before, after), /^lockgate_url_events/);
  checkFired(t, [{ name: 'rot', series, fired: ['LockgateEventsDamaged'] }]);
});

/** A certificate that ends in ten days, as settings of a gateway. */
async function endingCertificate(test: Test): Promise<Pick<Config, 'mqttTls'>> {
  const { certificate, key } = writeCertificate(tempFolder(test), await testCertificate(Days(10)));
  return { mqttTls: { certificate, key } };
}

t.test('a slow disk that is nearly full, a certificate that ends, a bug of our own', needsTool, async (t) => {
  const addPet = async (): Promise<never> => {
    throw new TypeError('a fault of our own');
  };
  const wrapStore: GatewayOptions['wrapStore'] = (store) =>
    withOverrides(store, {
      append: async (commit) => {
        await new Promise<void>((resolve) => void systemClock.after(Seconds(0.7), resolve));
        return await store.append(commit);
      },
      readDiskSpace: async () => ({ ...(await store.readDiskSpace()), freeBytes: 5e8 }),
      people: withOverrides(store.people, { addPet }),
    });
  const gateway = await testGateway(t, { wrapStore }, await endingCertificate(t));
  const before = await scrape(gateway);
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  const { status } = await callMerchantApi(gateway, '/v1/pet', {
    key: await apiKey(gateway, MERCHANT),
    body: { name: 'Rex' },
  });
  t.equal(status, 500);
  const after = new Map(await scrape(gateway));
  // promtool's clock starts at 1970, so the end of the certificate is made relative to now.
  const end = 'lockgate_certificate_end_seconds';
  for (const values of [before, after]) {
    (values as Map<string, string>).set(end, String(figureOf(values, end) - systemClock.now() / Seconds(1)));
  }
  // The fault is thrown by a call of the store, so it counts as a failure of the store too.
  const fired = [
    ...['LockgateAcksSlow', 'LockgateCertificateEnds', 'LockgateDiskLow', 'LockgateServerErrors'],
    'LockgateStoreFails',
  ];
  // Pings stay slow: their histogram grows each minute by what it has grown so far.
  const series = seriesOf(before, after, /^lockgate_ack_seconds/);
  checkFired(t, [{ name: 'slow', series, fired }]);
});

/** The command of a shell that may open this many files and then becomes the program of its arguments. */
const limitedShell = (files: number): string => `ulimit -n ${files} && exec "$0" "$@"`;

t.test('LockgateDescriptorsLow: more connections than a small limit allows for', needsTool, async (t) => {
  const data = tempFolder(t);
  const flags = ['--data', data, '--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  const words = ['-c', limitedShell(300), process.execPath, LOCKGATE, 'serve', ...flags];
  const program = new Program(t, 'sh', words);
  const mqttPort = Number(/:(\d+)$/.exec(await program.waitForLine(/mqtt:/))?.[1]);
  await program.waitForLine(/Next:/);
  const operatorPort = Number(new URL(readFileSync(path.join(data, 'operator-address'), 'utf8').trim()).port);
  const operatorToken = readFileSync(path.join(data, 'operator-token'), 'utf8').trim();
  const before = await scrape({ operatorPort, operatorToken });
  const isLow = (values: Values): boolean =>
    figureOf(values, 'process_open_fds') / figureOf(values, 'process_max_fds') > 0.8;
  let after = before;
  t.notOk(isLow(before));
  // The gateway keeps some descriptors free for itself, an eighth of them at most.
  for (let batch = 0; batch < 13 && !isLow(after); batch += 1) {
    const sockets = Array.from({ length: 20 }, () => connect(mqttPort, '127.0.0.1'));
    for (const socket of sockets) t.teardown(() => void socket.destroy());
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    after = await scrape({ operatorPort, operatorToken });
  }
  const series = only(seriesOf(before, after), /^process_/);
  checkFired(t, [{ name: 'sockets', series, fired: ['LockgateDescriptorsLow'] }]);
});
