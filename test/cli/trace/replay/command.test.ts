// The command `lockgate trace replay`: its errors, its texts and exit codes, and Ctrl-C. `connect(mac, 0)` is an event
// 0 s after a trace's start; `ping(mac, 5)` is uplink (message of the lock) 5, received after 5 s.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { Days, Seconds } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { LOCKGATE, Program, runLockgate } from '../../../helpers/cli/program.js';
import { connect, ping, replay, shortSession, traces, traceWriter } from '../../../helpers/cli/replay-run.js';
import { MERCHANT, openGateway, testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const traceFile = traceWriter(folder);

t.test('errors in files, flags and gateways are reported with their codes', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const file = traceFile('short.jsonl', shortSession(mac));
  const secrets = path.join(folder, 'bad.csv');
  const errorOf = async (content: string): Promise<string> => {
    writeFileSync(secrets, content);
    const { error } = await replay(gateway, file, { secrets });
    return error.replace(folder, '');
  };
  t.equal(await errorOf('mac,secret\nnonsense\n'), 'input-secrets: /bad.csv:2: there is no comma: expected MAC,SECRET');
  t.match(await errorOf('A4C1,hush\n'), /^input-secrets: \/bad.csv:1: "A4C1" is no MAC/);
  t.match(await errorOf(`${mac},\n`), /^input-secrets: \/bad.csv:1: the secret is empty/);
  const threeColumns = await errorOf(`${mac},hush,hush\n`);
  t.match(threeColumns, /^input-secrets: \/bad.csv:1: /);
  t.notMatch(threeColumns, /hush/, 'the error does not show the secret');
  t.match(await errorOf(`${mac},a\n${formatMac(mac)},b\n`), /bad.csv:2: .* is listed twice/);
  t.match(await errorOf(`${testMac(9)},hush\n`), /^input-secrets: .* has no secret for A4:C1:38:00:00:01$/);
  const missingFile = { secrets: path.join(folder, 'no.csv') };
  t.match((await replay(gateway, file, missingFile)).error, /^input-secrets: .* can’t be read/);
  t.match((await replay(gateway, file)).error, /^input-secrets: .*--secrets FILE.csv or --provision/);
  const bad = path.join(folder, 'not-a-trace.jsonl');
  writeFileSync(bad, '{}\n');
  t.match((await replay(gateway, bad, { provision: true })).error, /^input-trace: .*:1: /);
  t.same(await gateway.store.listDevices(), [], 'no lock was added');

  // Nothing listens there.
  const elsewhere = { provision: true, mqtt: { host: '127.0.0.1', port: 1 } };
  t.match((await replay(gateway, file, elsewhere)).error, /^gateway-down: no MQTT at 127.0.0.1:1 /);
  await gateway.accounts.addDevice({ mac: testMac(2) });
  const real = traceFile('real.jsonl', [...shortSession(mac), ping(testMac(2), 5)]);
  t.match(
    (await replay(gateway, real, { provision: true })).error,
    /^input-provision: A4:C1:38:00:00:02 is not simulated, .*: give --secrets instead$/,
  );
  await gateway.accounts.addMerchant('Basalt');
  const other = traceFile('other.jsonl', shortSession(testMac(3)));
  t.match((await replay(gateway, other, { provision: true })).error, /^merchant-needed/);
  t.equal((await replay(gateway, other, { provision: true, merchant: MERCHANT })).report.same, true);
  t.equal((await replay(gateway, other, { provision: true })).report.same, true, 'a simulated lock gets a new secret');
});

t.test('the command prints text, sets exit codes and handles Ctrl-C', async (t) => {
  const gateway = await openGateway(t, tempFolder(t));
  await gateway.accounts.addMerchant(MERCHANT);
  const connection = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const startProcess = (...args: string[]): Program => {
    const program = new Program(t, process.execPath, [LOCKGATE, 'trace', 'replay', ...args]);
    program.endStdin('');
    return program;
  };
  const lockgate = (...args: string[]) => runLockgate(['trace', 'replay', ...args]);
  const macs = Array.from({ length: 40 }, (_, index) => testMac(index + 1));
  const many = macs.flatMap(shortSession).sort((a, b) => a.atMs - b.atMs);
  // A hand-written trace in which a lock breaks a rule.
  const broken = path.join(traces, 'low-battery-theft-only.breaks-1.jsonl');
  const json = await lockgate(broken, '--provision', '--speed', 'max', '--json', ...connection);
  t.same(json.exit, { code: 0, signal: null }, 'a finding of both trace check and the gateway is no difference');
  t.match(JSON.parse(json.stdout.join('')), { file: broken, same: true, differences: [] });
  const refused = path.join(folder, 'refused.csv');
  writeFileSync(refused, 'A4:C1:38:F0:E1:D2,wrong');
  const differs = await lockgate(broken, '--secrets', refused, '--speed', '1000', ...connection);
  t.same(differs.exit, { code: 1, signal: null });
  t.match(differs.stdout.join('\n'), /differs {2}line 2 {2}A4:C1:38:F0:E1:D2 {2}CONNACK 5.*\n3 differences\.$/s);
  const quick = startProcess(traceFile('quick.jsonl', many), '--provision', '--speed', 'max', ...connection);
  t.same(await quick.waitForExit(), { code: 0, signal: null });
  t.match(
    quick.stdout.join('\n'),
    /120 uplinks of 40 locks over 40 connections to mqtt:.*\nNo differences: the gateway/,
  );
  t.same(quick.stderr, [], 'no warning, and no progress where there is no terminal');
  for (const wrong of [
    ['--speed', '0'],
    ['--speed', 'fast'],
    ['--mqtt', 'http://x'],
    ['--secrets', 'x', '--provision'],
  ])
    t.match(
      (await lockgate(traceFile('quick.jsonl', many), ...connection, ...wrong)).exit,
      { code: 2 },
      wrong.join(' '),
    );
  const withoutGateway = await lockgate(traceFile('quick.jsonl', many), '--provision', '--data', folder);
  t.match(withoutGateway.exit, { code: 3 }, 'no gateway runs on this data folder');

  const mac = testMac(99);
  const aDayInSeconds = Days(1) / Seconds(1);
  const slow = traceFile('slow.jsonl', [connect(mac, 0), ping(mac, 0), ping(mac, aDayInSeconds)]);
  const arrived = new Promise<void>((resolve) => gateway.events.once('uplink', () => resolve()));
  const ended = new Promise<string>((resolve) => {
    gateway.events.once('disconnected', ({ cause }) => resolve(cause));
  });
  const waiting = startProcess(slow, '--provision', ...connection);
  await arrived;
  waiting.kill('SIGINT');
  t.same(await waiting.waitForExit(), { code: 130, signal: null });
  t.equal(await ended, 'closed', 'with a DISCONNECT');
  t.match(waiting.stderr.join('\n'), /^Interrupted: \d of 3 events were replayed\.$/);
});
