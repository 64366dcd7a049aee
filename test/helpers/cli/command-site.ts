/**
 * A gateway with a history, on which the contract test runs the command line: two merchants, locks that sent pings and
 * an undecodable uplink, a webhook URL, a closed month. Its clocks are frozen, so that the output is the same in each
 * run; {@link CommandSite.normalise} replaces random texts (secrets, ports).
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
import { openGateway, testBytes, waitForEvents } from '../gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../gateway/test-receiver.js';
import { NO_JITTER } from '../gateway/webhook-setup.js';
import { root } from '../house/our-files.js';
import { TestLock } from '../mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** The frozen time at which the commands run, and the earlier time at which the gateway starts. */
const SHOWN_AT_MS = Date.UTC(2026, 10, 21, 10);
const STARTED_AT_MS = Date.UTC(2026, 9, 15, 8);

/** The gateway and what commands and tests need to use it. */
export interface CommandSite {
  readonly gateway: Gateway;
  /** The gateway's data folder. */
  readonly data: string;
  /** Where commands run, with some files: traces, a list of locks. */
  readonly folder: string;
  /** Receives the webhooks. */
  readonly receiver: TestReceiver;
  /** The environment variables by which commands find the gateway. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sets the frozen clock. */
  setTime(ms: number): void;
  /** Resolves when a client listens to the gateway's events. */
  waitForListener(): Promise<void>;
  /** Resolves when no client listens any more. */
  waitForNoListener(): Promise<void>;
  /** The id of a queued command of this type; waits until there is one. */
  waitForQueued(type: string): Promise<number>;
  /** The first lock connects, sends a new ping, and disconnects. */
  sendPing(): Promise<void>;
  /** The text, with every part that varies from run to run replaced by a fixed text. */
  normalise(text: string): string;
}

function mac(text: string): Mac {
  const parsed = parseMac(text);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

/** The lock of most commands, of Amber Bikes. */
const LOCK = mac('A4:C1:38:F0:E1:D2');
/** A lock of Amber Bikes in airplane mode. */
const SILENT_LOCK = mac('A4:C1:38:F0:E1:D0');
/** A lock of Basil Bikes, the other merchant. */
const OTHER_LOCK = mac('A4:C1:38:F0:E1:D3');

/** Starts the site. Until the test ends, time is frozen and the system user is called ada. */
export async function commandSite(test: Test): Promise<CommandSite> {
  let nowMs = STARTED_AT_MS;
  test.intercept(Date, 'now', { value: () => nowMs });
  setSystemUser(test, 'ada');
  const data = tempFolder(test);
  const folder = tempFolder(test);
  const receiver = await testReceiver(test);
  const machine = { wall: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const noticeReceiver = await testReceiver(test);
  const options = { runClock: systemClock, machine, random: NO_JITTER };
  const gateway = await openGateway(test, data, options, { notifyUrl: noticeReceiver.url });
  writeFileSync(addressFile(data), `http://127.0.0.1:${gateway.operatorPort}\n`);
  const listenersBefore = gateway.events.listenerCount('connected');
  // The sequence of the last ping that fillGateway sends.
  let sequence = 13;
  let secret = '';
  const replacements = new Map<string, string>([
    [data, '/data'],
    [folder, '/work'],
    [root, '/lockgate'],
    [`127.0.0.1:${gateway.operatorPort}`, '127.0.0.1:8081'],
    [`127.0.0.1:${gateway.mqttPort}`, '127.0.0.1:1883'],
    [`127.0.0.1:${gateway.httpPort}`, '127.0.0.1:8080'],
    [new URL(receiver.url).host, '127.0.0.1:54321'],
    [new URL(noticeReceiver.url).host, '127.0.0.1:54322'],
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
    waitForListener: async () => {
      while (gateway.events.listenerCount('connected') <= listenersBefore)
        await new Promise<void>((resolve) => afterThisTurn(resolve));
    },
    waitForNoListener: async () => {
      while (gateway.events.listenerCount('connected') > listenersBefore)
        await new Promise<void>((resolve) => afterThisTurn(resolve));
    },
    waitForQueued: async (type) => {
      for (;;) {
        const [command] = await gateway.store.commands.list({ state: 'queued', limit: 1 });
        if (command?.command.type === type) return command.id;
        await new Promise<void>((resolve) => afterThisTurn(resolve));
      }
    },
    sendPing: async () => {
      sequence += 1;
      const lock = await TestLock.connect(test, gateway.mqttPort, LOCK, secret);
      const delivered = waitForEvents(gateway, 'delivery', 1);
      await lock.send(testBytes(sequence, { boot: 41, timeMs: nowMs }));
      await delivered;
      await lock.client.endAsync();
    },
    normalise: (text) => normalise(text, replacements),
  };
  secret = await fillGateway(test, site);
  await writeFiles(test, folder);
  return site;
}

/** Sets the system user's name, which the audit log contains, until the test ends. */
function setSystemUser(test: Teardown, username: string): void {
  const before = os.userInfo;
  const replaced = { ...os.userInfo(), username };
  os.userInfo = (() => replaced) as typeof os.userInfo;
  syncBuiltinESMExports();
  test.teardown(() => {
    os.userInfo = before;
    syncBuiltinESMExports();
  });
}

/** Adds merchants, locks, usage, a webhook URL and pings. @returns the secret of the first lock */
async function fillGateway(test: Teardown, site: CommandSite): Promise<string> {
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
  const octoberUsage = { month: october.value, simulated: false, ...counts };
  await store.usage.add(
    [
      { ...octoberUsage, mac: LOCK, merchantId: 1 },
      { ...octoberUsage, mac: OTHER_LOCK, merchantId: basil.id, messagesUp: 31, bytesUp: 61_000, bytesDown: 4000 },
    ],
    STARTED_AT_MS,
  );
  await addAirplaneLock(test, gateway);
  site.setTime(SHOWN_AT_MS - Minutes(5));
  await usage.close(october.value);
  await accounts.addWebhookUrl({ url: receiver.url, merchant: 'Amber Bikes', headers: { 'X-Team': 'bikes' } });
  const lock = await TestLock.connect(test, gateway.mqttPort, LOCK, secret);
  const delivered = receiver.waitForRequests(2);
  const timeMs = SHOWN_AT_MS - Minutes(5);
  await lock.send(testBytes(12, { boot: 41, timeMs, body: PERIOD_PING }));
  await lock.send(testBytes(13, { boot: 41, timeMs: timeMs + Seconds(30), body: GPS_PING }));
  // The start of an uplink, which can't be decoded and is quarantined.
  await lock.send(Buffer.from('0829', 'hex'));
  await lock.client.endAsync();
  await delivered;
  site.setTime(SHOWN_AT_MS);
  return secret;
}

/** Adds a lock whose SIM was activated in October, and that has been in airplane mode since. */
async function addAirplaneLock(test: Teardown, gateway: Gateway): Promise<void> {
  const { secret } = await gateway.accounts.addDevice({ mac: SILENT_LOCK, merchant: 'Amber Bikes' });
  const lock = await TestLock.connect(test, gateway.mqttPort, SILENT_LOCK, secret);
  const power = { ...DEFAULT_POWER, airplane: true };
  const body = { ...PERIOD_PING, kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION' } as const;
  await lock.send(testBytes(1, { timeMs: STARTED_AT_MS, power, body }));
  await lock.client.endAsync();
}

const PERIOD_PING: Ping = {
  kind: 'cellular',
  reason: 'REASON_PERIOD_TRACKING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

const GPS_PING: Ping = {
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

/** A scenario whose expectation is never met. */
const HOPELESS_SCENARIO = `name: hopeless
description: A lock that is expected to do what it never does.
lasts: 10 min
locks:
  bike: {}
expect:
  - ping: REASON_THEFT cellular
    after: '00:01'
    within: 5 min
`;

/** Writes traces, lists, a closed data folder, and a store with a flipped bit. */
async function writeFiles(test: Teardown, folder: string): Promise<void> {
  const traces = path.join(root, 'test/traces');
  for (const [name, sourceName] of [
    ['fine', 'after-close.holds-1'],
    ['broken', 'after-close.breaks-1'],
  ]) {
    const text = readFileSync(path.join(traces, `${sourceName}.jsonl`), 'utf8');
    writeFileSync(path.join(folder, `${name}.jsonl`), text.replaceAll('A4:C1:38:F0:E1:D2', 'A4:C1:38:F0:E1:F2'));
  }
  copyFileSync(path.join(root, 'test/recordings/mosquitto-sub.txt'), path.join(folder, 'sub.txt'));
  writeFileSync(path.join(folder, 'locks.csv'), 'mac\nA4:C1:38:F0:E1:E1\nA4:C1:38:F0:E1:E2\n');
  writeFileSync(path.join(folder, 'more.csv'), 'mac\nA4:C1:38:F0:E1:E3\n');
  writeFileSync(path.join(folder, 'password'), 'correct horse battery\n');
  writeFileSync(path.join(folder, 'hopeless.yaml'), HOPELESS_SCENARIO);
  const closed = path.join(folder, 'closed');
  const gateway = await openGateway(test, closed, { runClock: systemClock });
  await gateway.accounts.addMerchant('Amber Bikes');
  await gateway.accounts.addDevice({ mac: LOCK });
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/' });
  await gateway.close();
  const store = readFileSync(path.join(closed, 'lockgate.sqlite'));
  // A byte that SQLite does not use, so that only the checksum of its block shows the damage.
  const unused = store.lastIndexOf(Buffer.alloc(256)) + 128;
  store.writeUInt8(store.readUInt8(unused) ^ 1, unused);
  writeFileSync(path.join(folder, 'rotten.sqlite'), store);
  copyFileSync(path.join(closed, 'lockgate.sqlite.sums'), path.join(folder, 'rotten.sqlite.sums'));
}

/** Texts that differ in each run, and their replacements. */
const RANDOM_TEXTS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // Secrets, keys and tokens, such as `lgs_3fQ…`; ids of test webhooks; passwords.
  [/\b(lgs|lgk|lgt|lgu|lgp|lgo|whsec)_[\w+/=-]{16,}/g, '$1_…'],
  [/\bevt_test_[\w-]+/g, 'evt_test_…'],
  [/^(Password: ).*$/m, '$1…'],
  [/("(?:password|token)": )"[^"]{20,}"/g, '$1"…"'],
  // Trace ids of events, whose ids have hashes of their times.
  [/(?<="traceparent": "00-)[0-9a-f]{32}-[0-9a-f]{16}/g, '…'],
  [/\btrace [0-9a-f]{32}\b/g, 'trace …'],
  // Durations. The blanks before them vary, so that the next column stays in its place.
  [/ {2}\d ms\b/g, '  NN ms'],
  [/ {2}\d{3,} ms {2}/g, '  NN ms '],
  [/\b\d+ ms\b/g, 'NN ms'],
  [/("(?:duration_ms|p95_ms|seconds|memory_bytes_per_lock)": )[\d.]+/g, '$1"N"'],
  [/\b([Mm]ade in) [\d.]+ s\b/g, '$1 N s'],
  // The public id of an API key, the start of the token's hash, and the id of the data folder's key.
  [/(?<=API key |key revoke |"id": "|^)[0-9a-f]{12}(?=[ "\n]|$)/gm, '3f9a0c2b7d41'],
  [/("token": )"[0-9a-f]{8}"/g, '$1"49a86f3c"'],
  [/(?<="key_id": "|The key \()[0-9a-f]{16}/g, '0123456789abcdef'],
  // A port that the system chose.
  [/(?<=Listening on http:\/\/127\.0\.0\.1:)\d+/, '9000'],
];

/** Replaces what differs from run to run: texts that the site knows, and texts of known forms. */
function normalise(text: string, replacements: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [part, replacement] of replacements) result = result.replaceAll(part, replacement);
  for (const [pattern, replacement] of RANDOM_TEXTS) result = result.replace(pattern, replacement);
  return result;
}
