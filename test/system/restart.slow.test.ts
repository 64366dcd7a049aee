/**
 * Stop and restart: Ctrl-C stops the gateway within 5 s without loss, the next start continues with the same data
 * (interfaces.md §1), and only one gateway can run on a data folder.
 */
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { ServeProgram, serveProgram } from '../helpers/cli/serve-program.js';
import { ChangeSignal } from '../helpers/clocks/change-signal.js';
import { summarize } from '../helpers/durability/delivery-check.js';
import { DiaryLock } from '../helpers/durability/diary-lock.js';
import { KillRun, type KillRunOptions } from '../helpers/durability/kill-run.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/restart.slow.test.js`;
/** A gateway stops within this time. */
const STOP_SECONDS = 5;
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;

const options: KillRunOptions = {
  seed,
  locks: 30,
  maxUnacked: 3,
  kills: quickOrLong(1, 3),
  signal: 'SIGTERM',
  // Diary lines (sent, acknowledged or arrived) from a start to the next kill; at most twice as many.
  minLinesPerKill: 100,
  // Locks pause while the merchant lacks this many acknowledged pings.
  maxBacklog: 300,
  minAcked: quickOrLong(200, 400),
  webhookFailureShare: 0,
  maxAnswerMs: 20,
};

t.setTimeout(170_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

/** A third `serve` on the data folder of the second one says so and exits. */
async function refusesFolder(t: Test, second: ServeProgram): Promise<void> {
  const third = serveProgram(t, second.data);
  t.equal((await third.waitForExit()).code, 3);
  t.equal(third.stdout.length, 0);
  t.equal(third.stderr.length, 1, 'one sentence');
  t.match(third.stderr[0], /^lockgate: another gateway is running on this data folder/);
  await second.json('device', 'show', 'A4C138F0E1D2');
  t.pass('the first gateway still runs, and the command line still finds it');
}

/** A third `serve` with one of the second one's ports, and a data folder of its own, says so and exits. */
async function refusesPort(t: Test, second: ServeProgram): Promise<void> {
  const taken = String(second.mqttPort);
  const refusals = [
    ['mqtt', /^lockgate: MQTT can't listen on 127\.0\.0\.1:\d+/],
    ['http', /^lockgate: the merchants’ interface can't listen on 127\.0\.0\.1:\d+/],
    ['operator', /^lockgate: the operator’s interface can't listen on 127\.0\.0\.1:\d+/],
  ] as const;
  // The quick form tries only the last port, when the other two are open.
  for (const [name, why] of refusals.slice(quickOrLong(2, 0))) {
    const otherFolder = path.join(tempFolder(t), 'data');
    const ports = refusals.flatMap(([each]) => [`--${each}-port`, each === name ? taken : '0']);
    const args = ['serve', '--data', otherFolder, ...ports];
    const third = new Program(t, process.execPath, [LOCKGATE, ...args]);
    t.equal((await third.waitForExit()).code, 3);
    t.equal(third.stderr.length, 1, 'one sentence');
    t.match(third.stderr[0], why);
  }
}

/** A merchant's receiver whose answers the test can hold back. */
interface HangingMerchant {
  readonly url: string;
  /** The ids of all webhooks that arrived. */
  readonly ids: string[];
  isHanging: boolean;
}

/** A merchant's receiver that reads webhooks but does not answer while `isHanging`. */
async function hangingMerchant(t: Test, changeSignal: ChangeSignal): Promise<HangingMerchant> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      merchant.ids.push(String(request.headers['webhook-id']));
      if (!merchant.isHanging) response.writeHead(204).end();
      changeSignal.notify();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const merchant: HangingMerchant = { url, ids: [], isHanging: true };
  return merchant;
}

t.test('SIGTERM under load loses nothing that was acknowledged', async (t) => {
  t.setTimeout(170_000);
  const result = await KillRun.run(t, options);
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.exitCodes, Array(options.kills + 1).fill(0), 'the gateway stops normally each time');
  t.same(result.errorLines, [], 'the gateway logged no complaint');
});

t.test('no client delays a stop, and an interrupted delivery is repeated after the next start', async (t) => {
  t.setTimeout(170_000);
  const changeSignal = new ChangeSignal();
  const merchant = await hangingMerchant(t, changeSignal);
  const { ids } = merchant;
  const data = path.join(tempFolder(t), 'data');
  const first = await ServeProgram.start(t, data);
  await first.json('merchant', 'add', 'Amber');
  const { secret } = await first.json<{ secret: string }>('device', 'add', 'A4C138F0E1D2');
  await first.json('webhook', 'add', merchant.url);
  const lock: DiaryLock = new DiaryLock({
    mac: 'A4C138F0E1D2',
    secret,
    port: first.mqttPort,
    maxUnacked: 1,
    chance: new SeededChance(seed),
    mayCreateUplinks: () => lock.acked.length < 1,
    onLine: () => changeSignal.notify(),
  });
  t.teardown(() => lock.cut());
  lock.allowConnections();
  await changeSignal.waitUntil(
    () => ids.length === 1,
    MAX_WAIT_SECONDS,
    () => 'the webhook',
  );
  // A client that connects and sends nothing, and an operator who runs `tail`.
  const silent = connect(first.mqttPort, '127.0.0.1').on('error', () => undefined);
  t.teardown(() => silent.destroy());
  await new Promise<void>((resolve) => silent.once('connect', resolve));
  first.run('tail');
  lock.forbidConnections();
  first.program.kill('SIGTERM');
  t.same(await first.program.waitForExit(STOP_SECONDS), { code: 0, signal: null }, 'it stops in time');

  merchant.isHanging = false;
  const second = await ServeProgram.start(t, data);
  await changeSignal.waitUntil(
    () => ids.length === 2,
    MAX_WAIT_SECONDS,
    () => 'the webhook again',
  );
  t.equal(ids[0], ids[1], 'the same event has the same id');
  const { devices } = await second.json<{ devices: { mac: string; state: unknown }[] }>('device', 'list');
  t.match(devices, [{ mac: 'A4:C1:38:F0:E1:D2', state: { lock_state: 'unlocked' } }], 'the data is unchanged');

  await t.test('a second gateway on the same folder is refused', (t) => refusesFolder(t, second));
  await t.test('a gateway on a port in use is refused', (t) => refusesPort(t, second));
  second.program.kill('SIGINT');
  t.same(await second.program.waitForExit(STOP_SECONDS), { code: 0, signal: null }, 'Ctrl-C stops it as well');
});
