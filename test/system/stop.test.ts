/**
 * Clients that hang cannot delay a stop: `serve` ends in time and loses nothing (quality.md §2, graceful stop under
 * load; restart.test.ts tests the stop under load). Also tests a second Ctrl-C, and the log of a gateway in use.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import path from 'node:path';
import mqtt from 'mqtt';
import t, { type Test } from 'tap';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { ChangeSignal } from '../helpers/clocks/change-signal.js';
import { testBytes } from '../helpers/gateway/test-gateway.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const WIRE_MAC = 'A4C138F0E1D2';
/** A stop must end within this time (quality.md §2). */
const STOP_SECONDS = 10;
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;

t.setTimeout(120_000);

/** A merchant's receiver that reads webhooks and never answers; `arrival` resolves with the first. */
async function silentMerchant(t: Test): Promise<{ readonly url: string; readonly arrival: () => Promise<void> }> {
  const changeSignal = new ChangeSignal();
  let count = 0;
  const server = createServer((request) => {
    request.resume().on('end', () => {
      count += 1;
      changeSignal.notify();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const arrival = (): Promise<void> =>
    changeSignal.waitUntil(
      () => count > 0,
      MAX_WAIT_SECONDS,
      () => 'the webhook',
    );
  return { url, arrival };
}

/** `serve` with a lock that has sent a ping, and a merchant that received its webhook and never answers. */
class Setup {
  readonly serve: ServeProgram;
  readonly secret: string;

  private constructor(serve: ServeProgram, secret: string) {
    this.serve = serve;
    this.secret = secret;
  }

  static async open(t: Test): Promise<Setup> {
    const serve = await ServeProgram.start(t, path.join(tempFolder(t), 'data'));
    await serve.json('merchant', 'add', 'Amber');
    const { secret } = await serve.json<{ secret: string }>('device', 'add', WIRE_MAC);
    const { url, arrival } = await silentMerchant(t);
    await serve.json('webhook', 'add', url);
    const setup = new Setup(serve, secret);
    const lock = await setup.connect(t);
    await lock.publishAsync('up', testBytes(1), { qos: 1 });
    await arrival();
    return setup;
  }

  /** Connects the lock. */
  async connect(t: Test): Promise<mqtt.MqttClient> {
    const identity = { clientId: WIRE_MAC, username: WIRE_MAC, password: this.secret };
    const connection = {
      host: '127.0.0.1',
      port: this.serve.mqttPort,
      protocolVersion: 4,
      reconnectPeriod: 0,
    } as const;
    const client = await mqtt.connectAsync({ ...connection, ...identity });
    client.on('error', () => undefined);
    t.teardown(() => void client.end(true));
    return client;
  }

  /** The port in the line that `serve` printed about one of its listeners, such as `merchants`. */
  portOf(name: string): number {
    const line = this.serve.program.stdout.find((each) => each.startsWith(`  ${name} `));
    return Number(/:(\d+)$/.exec(line ?? '')?.[1]);
  }
}

/** A connection that sends these bytes and then neither reads nor closes. */
async function stuckSocket(t: Test, port: number, bytes: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.on('error', () => undefined).pause();
  t.teardown(() => void socket.destroy());
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  return socket;
}

t.test('clients that hang do not delay a stop', async (t) => {
  const setup = await Setup.open(t);
  const { serve } = setup;
  // A lock that no longer reads but continues to send.
  const lock = await setup.connect(t);
  lock.stream.unpipe();
  lock.stream.pause();
  for (let sequence = 2; sequence <= 200; sequence += 1)
    lock.publish('up', testBytes(sequence), { qos: 1 }, () => undefined);
  // An operator's `tail` that does not read, and requests that never end, on both ports.
  const token = readFileSync(path.join(serve.data, 'operator-token'), 'utf8').trim();
  const head = `host: a\r\nauthorization: Bearer ${token}\r\n`;
  await stuckSocket(t, setup.portOf('operators'), `GET /events HTTP/1.1\r\n${head}\r\n`);
  await stuckSocket(t, setup.portOf('operators'), `POST /merchants HTTP/1.1\r\n${head}content-length: 100\r\n\r\n{`);
  await stuckSocket(t, setup.portOf('merchants'), 'GET /healthz HTTP/1.1\r\nhost');
  // The first byte of a CONNECT.
  await stuckSocket(t, serve.mqttPort, '\u0010');
  serve.program.kill('SIGTERM');
  t.same(await serve.program.waitForExit(STOP_SECONDS), { code: 0, signal: null });
  const events = serve.program.stderr.map((line) => (JSON.parse(line) as { event: string }).event);
  // No complaints: the setup's commands are audited, and a gateway may refuse what a hanging client sends.
  t.same(
    events.filter((event) => event !== 'refused' && event !== 'audited'),
    ['started', 'stopping', 'stopped'],
    'the gateway logs no complaint',
  );
});

t.test('a second Ctrl-C ends the process at once', async (t) => {
  const { serve } = await Setup.open(t);
  serve.program.kill('SIGINT');
  // The stop waits up to 3 s for the hanging delivery, so the gateway is still stopping.
  await serve.program.waitForLine(/"event":"stopping"/, 'stderr');
  serve.program.kill('SIGINT');
  t.same(await serve.program.waitForExit(STOP_SECONDS), { code: 130, signal: null });
  t.notMatch(serve.program.stderr.join('\n'), /"event":"stopped"/);
});

t.test('the log has the version and the settings, and no secret', async (t) => {
  const { serve, secret } = await Setup.open(t);
  const text = serve.program.stderr.join('\n');
  t.match(JSON.parse(text.split('\n')[0] ?? ''), {
    level: 'info',
    event: 'started',
    version: /^\d+\.\d+\.\d+/,
    settings: { mqtt_port: '0', http_port: '0', log_format: 'auto', allow_webhook_range: '127.0.0.0/8' },
    ports: { mqtt: serve.mqttPort },
  });
  const token = readFileSync(path.join(serve.data, 'operator-token'), 'utf8').trim();
  for (const each of [secret, token]) t.notMatch(text + serve.program.stdout.join('\n'), each);
});
