/**
 * A gateway with a history, for looking at what the command line makes of it: two merchants, locks that sent pings, one
 * that sent what it must not, a phone, webhook URLs, a month that is closed. Its clocks stand still, so that what is
 * shown is the same in each run; what is chance (secrets, ports) is told by {@link CommandSite.normalise}.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { addressFile } from '../../../cli/client.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { parseMonth } from '../../../gateway/usage/month.js';
import { afterThisTurn, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, type Ping } from '../../../proto/wire/ping.js';
import { eventsOf, openGateway, testBytes } from '../gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../gateway/test-receiver.js';
import { root } from '../house/our-files.js';
import { TestLock } from '../mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** When everything is looked at. */
const LOOKED_AT_MS = Date.UTC(2026, 10, 21, 10);
const BEGUN_AT_MS = Date.UTC(2026, 9, 15, 8);

export interface CommandSite {
  readonly gateway: Gateway;
  /** The gateway's data folder. */
  readonly data: string;
  /** Where commands run, with some files: traces, a list of locks. */
  readonly folder: string;
  /** Takes what is posted to it. */
  readonly receiver: TestReceiver;
  /** By which commands find the gateway. */
  readonly environment: Readonly<Record<string, string>>;
  /** Turns the clock that stands still. */
  setTime(ms: number): void;
  /** Resolves when somebody listens to what the gateway tells. */
  listenedTo(): Promise<void>;
  /** Resolves when nobody does any more. */
  left(): Promise<void>;
  /** The id of a command of this type, once it waits for its lock. */
  queued(type: string): Promise<number>;
  /** The first lock connects, sends a ping that nobody has seen, and leaves. */
  sendPing(): Promise<void>;
  /** The text with something fixed for what is another one each time. */
  normalise(text: string): string;
}

function mac(text: string): Mac {
  const read = parseMac(text);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

const LOCK = mac('A4:C1:38:F0:E1:D2');
const SILENT_LOCK = mac('A4:C1:38:F0:E1:D0');
const OTHER_LOCK = mac('A4:C1:38:F0:E1:D3');

/** Starts it; time stands still, and the user is called ada, until the test ends. */
export async function commandSite(test: Test): Promise<CommandSite> {
  let nowMs = BEGUN_AT_MS;
  test.intercept(Date, 'now', { value: () => nowMs });
  callUser(test, 'ada');
  const data = tempFolder(test);
  const folder = tempFolder(test);
  const receiver = await testReceiver(test);
  const machine = { wall: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const gateway = await openGateway(test, data, { runClock: systemClock, machine, random: () => 0.5 });
  writeFileSync(addressFile(data), `http://127.0.0.1:${gateway.operatorPort}\n`);
  const listening = gateway.events.listenerCount('connected');
  let sequence = 13;
  let secret = '';
  const stands = new Map<string, string>([
    [data, '/data'],
    [folder, '/work'],
    [root, '/lockgate'],
    [`127.0.0.1:${gateway.operatorPort}`, '127.0.0.1:8081'],
    [`127.0.0.1:${gateway.mqttPort}`, '127.0.0.1:1883'],
    [`127.0.0.1:${gateway.httpPort}`, '127.0.0.1:8080'],
    [new URL(receiver.url).host, '127.0.0.1:54321'],
  ]);
  const site: CommandSite = {
    gateway,
    data,
    folder,
    receiver,
    environment: { LOCKGATE_DATA: data },
    setTime: (ms) => {
      nowMs = ms;
    },
    listenedTo: async () => {
      while (gateway.events.listenerCount('connected') <= listening)
        await new Promise<void>((resolve) => afterThisTurn(resolve));
    },
    left: async () => {
      while (gateway.events.listenerCount('connected') > listening)
        await new Promise<void>((resolve) => afterThisTurn(resolve));
    },
    queued: async (type) => {
      for (;;) {
        const [command] = await gateway.store.commands.list({ state: 'queued', limit: 1 });
        if (command?.command.type === type) return command.id;
        await new Promise<void>((resolve) => afterThisTurn(resolve));
      }
    },
    sendPing: async () => {
      sequence += 1;
      const lock = await TestLock.connect(test, gateway.mqttPort, LOCK, secret);
      const delivered = eventsOf(gateway, 'delivery', 1);
      await lock.send(testBytes(sequence, { boot: 41, timeMs: nowMs }));
      await delivered;
      await lock.client.endAsync();
    },
    normalise: (text) => normalise(text, stands),
  };
  secret = await stock(test, site);
  await writeFiles(test, folder);
  return site;
}

/** The audit log has who ran a command; that is another user on each machine. */
function callUser(test: Teardown, username: string): void {
  const before = os.userInfo;
  const given = { ...os.userInfo(), username };
  os.userInfo = (() => given) as typeof os.userInfo;
  syncBuiltinESMExports();
  test.teardown(() => {
    os.userInfo = before;
    syncBuiltinESMExports();
  });
}

/** The secret of the first lock. */
async function stock(test: Teardown, site: CommandSite): Promise<string> {
  const { gateway, receiver } = site;
  const { accounts, usage, store } = gateway;
  await accounts.addMerchant('Amber Bikes');
  const basil = await accounts.addMerchant('Basil Bikes');
  const { secret } = await accounts.addDevice({ mac: LOCK, merchant: 'Amber Bikes' });
  await accounts.addDevice({ mac: OTHER_LOCK, merchant: 'Basil Bikes' });
  await usage.setPlan('Amber Bikes', { perMb: '0.12', perSim: '0.80', currency: 'EUR' });
  const october = parseMonth('2026-10');
  if (!october.ok) throw new Error(october.error.message);
  const counts = { messagesUp: 900, messagesDown: 12, connections: 31, bytesUp: 1_234_567, bytesDown: 98_765 };
  const row = { month: october.value, simulated: false, ...counts };
  await store.usage.add(
    [
      { ...row, mac: LOCK, merchantId: 1 },
      { ...row, mac: OTHER_LOCK, merchantId: basil.id, messagesUp: 31, bytesUp: 61_000, bytesDown: 4000 },
    ],
    BEGUN_AT_MS,
  );
  await flyAway(test, gateway);
  site.setTime(LOOKED_AT_MS - Minutes(5));
  await usage.close(october.value);
  await accounts.addWebhookUrl({ url: receiver.url, merchant: 'Amber Bikes', headers: { 'X-Team': 'bikes' } });
  const lock = await TestLock.connect(test, gateway.mqttPort, LOCK, secret);
  const delivered = receiver.received(2);
  const timeMs = LOOKED_AT_MS - Minutes(5);
  await lock.send(testBytes(12, { boot: 41, timeMs, body: PERIOD }));
  await lock.send(testBytes(13, { boot: 41, timeMs: timeMs + Seconds(30), body: GPS }));
  await lock.send(Buffer.from('0829', 'hex'));
  await lock.client.endAsync();
  await delivered;
  site.setTime(LOOKED_AT_MS);
  return secret;
}

/** A lock whose SIM was activated in October, and that has been in airplane mode since. */
async function flyAway(test: Teardown, gateway: Gateway): Promise<void> {
  const { secret } = await gateway.accounts.addDevice({ mac: SILENT_LOCK, merchant: 'Amber Bikes' });
  const lock = await TestLock.connect(test, gateway.mqttPort, SILENT_LOCK, secret);
  const power = { ...DEFAULT_POWER, airplane: true };
  const body = { ...PERIOD, kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION' } as const;
  await lock.send(testBytes(1, { timeMs: BEGUN_AT_MS, power, body }));
  await lock.client.endAsync();
}

const PERIOD: Ping = {
  kind: 'cellular',
  reason: 'REASON_PERIOD_TRACKING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

const GPS: Ping = {
  kind: 'gps',
  reason: 'REASON_THEFT',
  lockState: 'locked',
  batteryPercent: 64,
  ebikeVolts: 36.7,
  tetherState: 'attached',
  position: { latitudeDegrees: 52.3702157, longitudeDegrees: 4.8951679, uncertaintyMeters: 5 },
  speedMetersPerSecond: 6.12,
  directionDegrees: 87.45,
};

const HOPELESS = `name: hopeless
description: A lock that is expected to do what it never does.
lasts: 10 min
locks:
  bike: {}
expect:
  - ping: REASON_THEFT cellular
    after: '00:01'
    within: 5 min
`;

/** Traces, lists, a folder on which no gateway runs, and a store that has rotted. */
async function writeFiles(test: Teardown, folder: string): Promise<void> {
  const traces = path.join(root, 'test/traces');
  for (const [name, given] of [
    ['fine', 'after-close.holds-1'],
    ['broken', 'after-close.breaks-1'],
  ]) {
    const text = readFileSync(path.join(traces, `${given}.jsonl`), 'utf8');
    writeFileSync(path.join(folder, `${name}.jsonl`), text.replaceAll('A4:C1:38:F0:E1:D2', 'A4:C1:38:F0:E1:F2'));
  }
  writeFileSync(path.join(folder, 'locks.csv'), 'mac\nA4:C1:38:F0:E1:E1\nA4:C1:38:F0:E1:E2\n');
  writeFileSync(path.join(folder, 'more.csv'), 'mac\nA4:C1:38:F0:E1:E3\n');
  writeFileSync(path.join(folder, 'password'), 'correct horse battery\n');
  writeFileSync(path.join(folder, 'hopeless.yaml'), HOPELESS);
  const closed = path.join(folder, 'closed');
  const gateway = await openGateway(test, closed, { runClock: systemClock });
  await gateway.accounts.addMerchant('Amber Bikes');
  await gateway.accounts.addDevice({ mac: LOCK });
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/' });
  await gateway.close();
  const store = readFileSync(path.join(closed, 'lockgate.sqlite'));
  store.writeUInt8(store.readUInt8(store.length - 1) ^ 1, store.length - 1);
  writeFileSync(path.join(folder, 'rotten.sqlite'), store);
  copyFileSync(path.join(closed, 'lockgate.sqlite.sums'), path.join(folder, 'rotten.sqlite.sums'));
}

const CHANCE: readonly (readonly [what: RegExp, stands: string])[] = [
  [/\b(lgs|lgk|lgt|lgu|lgp|lgo|whsec)_[\w+/=-]{16,}/g, '$1_…'],
  [/\bevt_test_[\w-]+/g, 'evt_test_…'],
  [/^(Password: ).*$/m, '$1…'],
  [/("(?:password|token)": )"[^"]{20,}"/g, '$1"…"'],
  // How long something took. A blank more or less keeps the column behind it in its place.
  [/ {2}\d ms\b/g, '  NN ms'],
  [/ {2}\d{3,} ms {2}/g, '  NN ms '],
  [/\b\d+ ms\b/g, 'NN ms'],
  [/("(?:duration_ms|seconds|memory_bytes_per_lock)": )[\d.]+/g, '$1"N"'],
  [/\b([Mm]ade in) [\d.]+ s\b/g, '$1 N s'],
  // The public part of an API key, the beginning of the token's hash, and the key's name.
  [/(?<=API key |key revoke |"id": "|^)[0-9a-f]{12}(?=[ "\n]|$)/gm, '3f9a0c2b7d41'],
  [/("token": )"[0-9a-f]{8}"/g, '$1"49a86f3c"'],
  [/(?<="key_id": "|The key \()[0-9a-f]{16}/g, '0123456789abcdef'],
  // A port that the system chose.
  [/(?<=Listening on http:\/\/127\.0\.0\.1:)\d+/, '9000'],
];

function normalise(text: string, stands: ReadonlyMap<string, string>): string {
  let told = text;
  for (const [given, stand] of stands) told = told.replaceAll(given, stand);
  for (const [what, stand] of CHANCE) told = told.replace(what, stand);
  return told;
}
