/**
 * deploy/compose-cluster.yaml without a Docker daemon: it is valid, names only what exists, and its gateways run as
 * plain processes on a real PostgreSQL behind a real haproxy with the file's configuration. When one of them stops, the
 * other one serves the lock.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { SETTINGS } from '../../gateway/settings.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import {
  type ComposeService,
  deadReferences,
  mountsOf,
  noComposeSchema,
  readCompose,
  schemaFaults,
} from '../helpers/deploy/compose-file.js';
import { testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { eventually } from '../helpers/gateway/webhook-setup.js';
import { root } from '../helpers/house/our-files.js';
import { freePort } from '../helpers/http/free-port.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { CONNACK_ACCEPTED, connectPacket, pubackHex, publishPacket, RawLock } from '../helpers/mqtt/raw-lock.js';
import { postgresMissing, startPostgres } from '../helpers/store/postgres/server.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.setTimeout(170_000);

const MAC = 'A4:C1:38:00:00:01';
const compose = readCompose('compose-cluster.yaml');
const balancerFile = path.join(root, 'deploy/compose/haproxy.cfg');
const GATEWAYS = ['gateway-one', 'gateway-two'];
const service = (name: string): ComposeService => compose.services[name] as ComposeService;

t.test('the file is valid', { skip: noComposeSchema }, async (t) => {
  t.same(schemaFaults(compose), []);
});

t.test('it names only what exists, and fixed versions of images', async (t) => {
  t.same(
    deadReferences(compose, (file) => existsSync(path.join(root, 'deploy', file))),
    [],
  );
  for (const [name, { image, ports = [] }] of Object.entries(compose.services)) {
    if (image !== 'lockgate') t.match(image, /:\d+\.\d+(\.\d+)?$/, name);
    for (const port of ports) t.match(port, /^127\.0\.0\.1:(\d+):\1$/, `${name} is published on this machine only`);
  }
  const known = [...SETTINGS.map(({ environment }): string => environment), 'PGPASSWORD'];
  const names = GATEWAYS.flatMap((name) => Object.keys(service(name).environment ?? {}));
  t.same(
    names.filter((name) => !known.includes(name)),
    [],
  );
  const servers = [...readFileSync(balancerFile, 'utf8').matchAll(/^ {2}server \w+ ([\w-]+):/gm)];
  t.same([...new Set(servers.map(([, name]) => name))], GATEWAYS);
  const data = GATEWAYS.map(
    (name) => mountsOf(service(name)).find(({ target }) => /lib\/lockgate/.test(target))?.source,
  );
  t.equal(new Set(data).size, 2, 'each gateway has a data folder of its own');
});

const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined && 'haproxy not installed (Debian: haproxy)';
const skip = postgresMissing ?? noHaproxy;

/** The ports of one gateway on this machine. */
interface Ports {
  readonly mqtt: number;
  readonly http: number;
}

/** The balancer's file with the addresses and ports of this machine. */
function localBalancer(text: string, gateways: readonly Ports[], balancer: Ports): string {
  const here = GATEWAYS.reduce((file, name, index) => {
    const { mqtt, http } = gateways[index] as Ports;
    const locks = file.replaceAll(
      new RegExp(`(server \\w+) ${name}:1883(.*)`, 'g'),
      `$1 127.0.0.1:${mqtt}$2 port ${http}`,
    );
    return locks.replaceAll(new RegExp(`(server \\w+) ${name}:8080`, 'g'), `$1 127.0.0.1:${http} port ${http}`);
  }, text);
  return (
    here
      .replace('bind :1883', `bind 127.0.0.1:${balancer.mqtt}`)
      .replace('bind :8080', `bind 127.0.0.1:${balancer.http}`)
      .replace('check port 8080 inter 2s', 'check inter 200ms')
      // A connection takes two descriptors, of which a machine of tests may have few.
      .replace('maxconn 20000', 'maxconn 500')
  );
}

t.test('a lock goes on at the other gateway when its own stops', { skip }, async (t) => {
  const server = await startPostgres(t);
  const url = await server.createDatabase();
  const keyFile = path.join(tempFolder(t), 'store-key');
  const ports: Ports[] = [];
  const gateways: { program: Program; data: string }[] = [];
  for (const name of GATEWAYS) {
    const [mqtt, http, data] = [await freePort(), await freePort(), tempFolder(t)];
    const program = new Program(t, process.execPath, [LOCKGATE, 'serve', '--operator-port', '0', '--data', data], {
      ...service(name).environment,
      ...{ LOCKGATE_STORE: url, LOCKGATE_KEY_FILE: keyFile },
      ...{ LOCKGATE_MQTT_PORT: String(mqtt), LOCKGATE_HTTP_PORT: String(http) },
      ...{ LOCKGATE_MQTT_PROXIES: '127.0.0.1', LOCKGATE_TRUSTED_PROXIES: '127.0.0.1' },
    });
    await program.waitForLine(/Next:/);
    ports.push({ mqtt, http });
    gateways.push({ program, data });
  }
  const balancer = { mqtt: await freePort(), http: await freePort() };
  const file = path.join(tempFolder(t), 'haproxy.cfg');
  writeFileSync(file, localBalancer(readFileSync(balancerFile, 'utf8'), ports, balancer));
  const haproxy = new Program(t, 'haproxy', ['-db', '-f', file]);
  const isReady = async (): Promise<boolean> => {
    const answer = await callMerchantApi({ httpPort: balancer.http }, '/readyz').catch(() => undefined);
    return haproxy.exit !== undefined || answer?.status === 200;
  };
  await eventually('the balancer has a gateway that is ready', isReady);
  t.equal(haproxy.exit, undefined, haproxy.stderr.join('\n'));

  const operate = async (index: number, ...args: string[]): Promise<string[]> => {
    const { data = '' } = gateways[index] ?? {};
    const done = new Program(t, process.execPath, [LOCKGATE, ...args, '--data', data, '--json']);
    t.equal((await done.waitForExit()).code, 0, done.stderr.join('\n'));
    return done.stdout;
  };
  await operate(0, 'merchant', 'add', 'Amber');
  const { secret } = JSON.parse((await operate(0, 'device', 'add', MAC)).join('\n')) as { secret: string };

  /** Connects through the balancer from an address of its own, and sends a ping. A refused lock tries again. */
  const ping = async (sequence: number): Promise<RawLock> => {
    let lock: RawLock | undefined;
    await eventually('a gateway takes the lock', async () => {
      lock = new RawLock(t, connect({ port: balancer.mqtt, host: '127.0.0.1', localAddress: '127.0.0.9' }));
      lock.write(connectPacket({ user: testMac(), secret }));
      return (await lock.waitForAnswer()) === CONNACK_ACCEPTED;
    });
    lock?.write(publishPacket('up', testBytes(sequence)));
    await lock?.waitForHex(pubackHex());
    return lock as RawLock;
  };
  const lock = await ping(1);
  gateways[0]?.program.kill('SIGTERM');
  t.same(await gateways[0]?.program.waitForExit(), { code: 0, signal: null });
  lock.socket.destroy();
  await ping(2);
  const [found] = await operate(1, 'device', 'list');
  t.match(found, new RegExp(MAC));
  haproxy.kill('SIGTERM');
  await haproxy.waitForExit();
});
