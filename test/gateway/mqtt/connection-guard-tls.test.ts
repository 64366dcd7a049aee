/**
 * MQTT over TLS: handshakes, the reload of a certificate, and the counting of bytes (protocol.md §1; interfaces.md
 * §5).
 */
import { mkdirSync, watch, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import type { DiaryEntry } from '../../../firmware-sim/lock/diary.js';
import { MemoryFlash } from '../../../firmware-sim/lock/flash.js';
import { Lock } from '../../../firmware-sim/lock/lock.js';
import { ScriptedWorld } from '../../../firmware-sim/world/world.js';
import { readConfig } from '../../../gateway/config-reader.js';
import type { GatewayOptions } from '../../../gateway/gateway.js';
import { readTlsIdentity } from '../../../gateway/mqtt/tls-identity.js';
import { resolveSettings } from '../../../gateway/resolved-settings.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Hours, ManualClock, Seconds } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { LOCKGATE, Program } from '../../helpers/cli/program.js';
import { serveProgram } from '../../helpers/cli/serve-program.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { freePort } from '../../helpers/http/free-port.js';
import {
  CONNACK_ACCEPTED,
  CONNACK_NOT_AUTHORIZED,
  connectPacket,
  pubackHex,
  publishPacket,
  RawLock,
} from '../../helpers/mqtt/raw-lock.js';
import { startTestBroker } from '../../helpers/mqtt/test-broker.js';
import { type TestCertificate, testCertificate, writeCertificate } from '../../helpers/mqtt/test-certificates.js';
import { MIDNIGHT_MS } from '../../helpers/pair/model-lock.js';
import { PARKED, PARKED_AT } from '../../helpers/sim/parked-bicycle.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac(1);
/** The id of the only merchant. */
const MERCHANT_ID = 1;
/** An event that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;
let firstCertificate: TestCertificate;
let secondCertificate: TestCertificate;

t.before(async () => {
  [firstCertificate, secondCertificate] = await Promise.all([testCertificate(), testCertificate()]);
});

/** The fingerprint of the certificate in a file, as {@link RawLock} reports the server's. */
function fingerprintOf(files: { certificate: string; key: string }): string {
  return readTlsIdentity(files).fingerprint;
}

/** A gateway with a certificate and a registered lock. */
async function setUpTlsGateway(t: Test, options: GatewayOptions = {}) {
  const folder = tempFolder(t);
  const files = writeCertificate(folder, firstCertificate);
  const gateway = await openGateway(t, path.join(folder, 'data'), options, { mqttTls: files });
  await gateway.accounts.addMerchant('Amber');
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  return { folder, files, gateway, credentials: { user: MAC, secret }, port: gateway.mqttTlsPort ?? 0 };
}

/** Connects over TLS; only this certificate is trusted. */
async function connectLock(
  t: Test,
  port: number,
  credentials: { user: string; secret: string },
  trusted: TestCertificate,
) {
  const lock = await RawLock.openTls(t, port, trusted.cert);
  lock.write(connectPacket(credentials));
  await lock.waitForHex(CONNACK_ACCEPTED);
  return lock;
}

t.test('a lock can connect over TLS with its CONNECT in several records', async (t) => {
  const { gateway, port, credentials } = await setUpTlsGateway(t);
  const lock = await RawLock.openTls(t, port, firstCertificate.cert);
  const bytes = connectPacket(credentials);
  for (let at = 0; at < bytes.length; at += 7) await lock.flush(bytes.subarray(at, at + 7));
  await lock.waitForHex(CONNACK_ACCEPTED);
  lock.write(publishPacket('up', testBytes(1)));
  await lock.waitForHex(pubackHex());
  t.match(await gateway.store.readEvents(MERCHANT_ID, LOG_START, 9), [{ mac: MAC, sequence: 1 }]);

  const stranger = await RawLock.openTls(t, port, firstCertificate.cert);
  stranger.write(connectPacket({ ...credentials, secret: 'wrong' }));
  await stranger.waitForClose();
  t.equal(stranger.receivedHex, CONNACK_NOT_AUTHORIZED);
});

t.test('a handshake that is invalid or not finished in time is closed and reported', async (t) => {
  const clock = new ManualClock();
  const { gateway, port, credentials } = await setUpTlsGateway(t, { guardClock: clock });
  const silent = await RawLock.open(t, port);
  const reported = waitForEvents(gateway, 'refused', 3);
  const plain = await RawLock.open(t, port);
  plain.write(connectPacket(credentials));
  await plain.waitForClose();
  const withOldTls = connectTls({
    port,
    host: '127.0.0.1',
    ca: firstCertificate.cert,
    maxVersion: 'TLSv1.1',
    minVersion: 'TLSv1',
  });
  await new Promise<void>((resolve) => withOldTls.on('error', () => undefined).once('close', () => resolve()));
  clock.advance(Seconds(9.5));
  t.notOk(silent.isClosed, 'a slow handshake is not closed before the time limit');
  clock.advance(Seconds(1));
  await silent.waitForClose();
  t.match(await reported, [
    { why: /handshake failed/ },
    { why: /handshake failed/ },
    { why: /not finished within 10 s/ },
  ]);

  const withHandshake = await RawLock.openTls(t, port, firstCertificate.cert);
  const lateRefusal = waitForEvents(gateway, 'refused', 1);
  withHandshake.write(connectPacket(credentials).subarray(0, 20));
  // When a later connection is accepted, the gateway has read the bytes of this one, and measures its time.
  await connectLock(t, port, credentials, firstCertificate);
  clock.advance(Seconds(5.5));
  await withHandshake.waitForClose();
  t.match(await lateRefusal, [{ why: /CONNECT was not finished within 5 s/ }]);
});

t.test('new connections get a reloaded certificate; a bad certificate changes nothing', async (t) => {
  const { gateway, files, port, credentials } = await setUpTlsGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: testMac(2) });
  const otherCredentials = { user: testMac(2), secret };
  const connectedBefore = await connectLock(t, port, credentials, firstCertificate);
  t.equal(connectedBefore.fingerprint, fingerprintOf(files));

  writeCertificate(path.dirname(files.key), secondCertificate);
  t.equal(gateway.reloadTls().fingerprint, fingerprintOf(files));
  await t.rejects(
    connectLock(t, port, otherCredentials, firstCertificate),
    'no new connection gets the old certificate',
  );
  const newConnection = await connectLock(t, port, otherCredentials, secondCertificate);
  t.equal(newConnection.fingerprint, fingerprintOf(files));
  t.not(newConnection.fingerprint, connectedBefore.fingerprint);

  writeFileSync(files.certificate, firstCertificate.cert);
  t.throws(() => gateway.reloadTls(), { code: 'tls-file' }, 'a certificate that the key does not belong to');
  const nextConnection = await connectLock(t, port, otherCredentials, secondCertificate);
  t.equal(nextConnection.fingerprint, newConnection.fingerprint, 'the certificate in use stays');
  const { entries } = (await callOperator(gateway, 'GET', '/audit')).body as { entries: object[] };
  const reload = {
    action: 'tls.reload',
    actor: 'owner',
    after: { fingerprint: newConnection.fingerprint },
    outcome: 'done',
  };
  t.match(
    entries.filter((each) => 'action' in each && each.action === 'tls.reload'),
    [reload],
    'the audit log has one entry, with the author',
  );

  connectedBefore.write(publishPacket('up', testBytes(1)));
  await connectedBefore.waitForHex(pubackHex());
  t.pass('the lock that was connected before the reload is still connected');
});

t.test('a wrong file stops the start with a sentence that names it', async (t) => {
  const folder = tempFolder(t);
  const files = writeCertificate(folder, firstCertificate);
  const missingFile = path.join(folder, 'nothing.pem');
  const garbageFile = path.join(folder, 'garbage.pem');
  const foreignKeyFile = path.join(folder, 'foreign.pem');
  writeFileSync(garbageFile, 'no PEM at all');
  writeFileSync(foreignKeyFile, secondCertificate.key);
  const wrongSettings = [
    [{ ...files, certificate: missingFile }, missingFile],
    [{ ...files, key: missingFile }, missingFile],
    [{ ...files, certificate: garbageFile }, garbageFile],
    [{ ...files, key: garbageFile }, garbageFile],
    [{ ...files, key: foreignKeyFile }, foreignKeyFile],
    [{ certificate: files.key, key: files.key }, files.key],
  ] as const;
  for (const [index, [mqttTls, wrongFile]] of wrongSettings.entries()) {
    const start = openGateway(t, path.join(folder, `data${index}`), {}, { mqttTls });
    await t.rejects(
      start,
      { code: 'tls-file', message: new RegExp(path.basename(wrongFile)) },
      path.basename(wrongFile),
    );
  }
  const config = (flags: Record<string, string>): unknown => readConfig(resolveSettings(flags, {}));
  t.throws(() => config({ mqttTlsCert: 'a.pem' }), { code: 'input-setting', message: /no key/ });
  t.throws(() => config({ mqttTlsKey: 'a.pem' }), { code: 'input-setting', message: /no certificate/ });
  t.throws(() => config({ mqttPerAddress: '-1' }), { code: 'input-setting', message: /--mqtt-per-address/ });
  t.match(config({ mqttTlsCert: 'a.pem', mqttTlsKey: 'b.pem' }), { mqttTls: { certificate: 'a.pem', key: 'b.pem' } });
});

t.test('the counted bytes are those on the wire, including the handshake', async (t) => {
  const files = writeCertificate(tempFolder(t), firstCertificate);
  const setup = await startTestBroker(t, { tls: { host: '127.0.0.1', port: 0, files } });
  const wire = { up: 0, down: 0 };
  const proxy = createServer((lockSocket) => {
    const gatewaySocket = connect(setup.broker.tlsPort ?? 0, '127.0.0.1');
    lockSocket.on('data', (chunk) => {
      wire.up += chunk.length;
      gatewaySocket.write(chunk);
    });
    gatewaySocket.on('data', (chunk) => {
      wire.down += chunk.length;
      lockSocket.write(chunk);
    });
    for (const [socket, counterpart] of [
      [lockSocket, gatewaySocket],
      [gatewaySocket, lockSocket],
    ] as const) {
      socket.on('error', () => undefined).on('close', () => counterpart.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.teardown(() => proxy.close());
  const lock = await connectLock(t, (proxy.address() as AddressInfo).port, await setup.addLock(MAC), firstCertificate);
  for (let sequence = 1; sequence <= 20; sequence++) {
    lock.write(publishPacket('up', testBytes(sequence), sequence));
    await lock.waitForHex(pubackHex(sequence));
  }
  const [session] = [...setup.broker.sessions.all()];
  // What the gateway bills are the counts of this socket, below TLS.
  const raw = session?.connection.raw;
  t.ok(wire.down > 1000 && wire.up > 1000, `${wire.up} bytes up, ${wire.down} down`);
  t.same({ up: raw?.bytesRead, down: raw?.bytesWritten }, wire);
});

t.test('a simulated lock can send pings over TLS', async (t) => {
  const { gateway, port, credentials } = await setUpTlsGateway(t);
  const clock = new ManualClock(MIDNIGHT_MS + Hours(12));
  const entries: DiaryEntry[] = [];
  const changeSignal = new ChangeSignal();
  const unlocked = { atMs: clock.now() + Seconds(1), change: { type: 'lock-state', lockState: 'unlocked' } } as const;
  const tls = { ca: firstCertificate.cert, servername: 'localhost' };
  const lock = new Lock({
    mac: MAC,
    firmwareVersion: '2.4.1',
    clock,
    world: new ScriptedWorld(PARKED, [unlocked], { position: PARKED_AT, speedMetersPerSecond: 0, directionDegrees: 0 }),
    openLink: mqttLinks({ host: '127.0.0.1', port, tls }, () => credentials.secret),
    flash: new MemoryFlash(),
    jitterSeed: 1,
    diary: (_mac, _atMs, entry) => {
      entries.push(entry);
      changeSignal.notify();
    },
  });
  t.teardown(() => lock.stop());
  lock.start();
  clock.advance(Seconds(1));
  await changeSignal.waitUntil(
    () => entries.some(({ type }) => type === 'acknowledged'),
    MAX_WAIT_SECONDS,
    () => JSON.stringify(entries),
  );
  t.match(await gateway.store.readEvents(MERCHANT_ID, LOG_START, 9), [{ mac: MAC }], 'its ping is stored');
});

t.test('SIGHUP reads the certificate again', async (t) => {
  const folder = tempFolder(t);
  const files = writeCertificate(folder, firstCertificate);
  const port = await freePort();
  const settings = {
    '--data': path.join(folder, 'data'),
    '--mqtt-port': '0',
    '--http-port': '0',
    '--operator-port': '0',
    '--mqtt-tls-host': '127.0.0.1',
    '--mqtt-tls-port': String(port),
    '--mqtt-tls-cert': files.certificate,
    '--mqtt-tls-key': files.key,
  };
  const serve = new Program(t, process.execPath, [LOCKGATE, 'serve', ...Object.entries(settings).flat()]);
  t.match(await serve.waitForLine(/mqtts:/), `mqtts://127.0.0.1:${port}`);
  await serve.waitForLine(/Ctrl-C/);
  t.equal((await RawLock.openTls(t, port, firstCertificate.cert)).fingerprint, fingerprintOf(files));
  writeCertificate(folder, secondCertificate);
  serve.kill('SIGHUP');
  await serve.waitForLine(/reread the certificate/, 'stderr');
  t.equal((await RawLock.openTls(t, port, secondCertificate.cert)).fingerprint, fingerprintOf(files));
  writeFileSync(files.key, 'no key');
  serve.kill('SIGHUP');
  t.match(await serve.waitForLine(/key\.pem does not contain/, 'stderr'), /stays/);
  await RawLock.openTls(t, port, secondCertificate.cert);
  serve.kill('SIGTERM');
  t.match(await serve.waitForExit(MAX_WAIT_SECONDS), { code: 0 });
});

t.test('SIGHUP without a certificate changes nothing at any moment', async (t) => {
  const data = path.join(tempFolder(t), 'data');
  mkdirSync(data);
  // serve creates this file when it begins to start, long before it has a certificate or listens.
  const started = new Promise<void>((resolve) => {
    const watcher = watch(data, (_what, name) => {
      if (name !== 'gateway.lock') return;
      watcher.close();
      resolve();
    });
  });
  const serve = serveProgram(t, data);
  await started;
  serve.kill('SIGHUP');
  await serve.waitForLine(/Ctrl-C/);
  await serve.waitForLine(/nothing to reread/, 'stderr');
  serve.kill('SIGHUP');
  await serve.waitForLines(/nothing to reread/, 2, 'stderr');
  serve.kill('SIGTERM');
  t.match(await serve.waitForExit(MAX_WAIT_SECONDS), { code: 0 });
});
