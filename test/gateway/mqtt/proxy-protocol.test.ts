/**
 * The PROXY protocol in front of MQTT: behind a balancer that the operator named, the address of a lock is the lock's;
 * what a balancer sends before a client is known has limits; and nobody else may claim an address.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import type { Config } from '../../../gateway/config.js';
import { HEADER_WITHIN } from '../../../gateway/mqtt/proxied-connections.js';
import { MAX_PROXY_HEADER_BYTES, readProxyHeader } from '../../../gateway/network/proxy-header.js';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { ManualClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { Program } from '../../helpers/cli/program.js';
import { testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { eventually } from '../../helpers/gateway/webhook-setup.js';
import { freePort } from '../../helpers/http/free-port.js';
import { CONNACK_ACCEPTED, CONNACK_NOT_AUTHORIZED, connectPacket, RawLock } from '../../helpers/mqtt/raw-lock.js';
import { testCertificate, writeCertificate } from '../../helpers/mqtt/test-certificates.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac(1);
const STRANGER = { user: 'nobody', secret: 'x' };
const LOCAL_COMMAND = 0x20;
const PROXY_COMMAND = 0x21;

const v1 = (line: string): Buffer => Buffer.from(`${line}\r\n`, 'latin1');
/**
 * A header of version 2. `family` says which addresses `body` begins with: 0x11 TCP over IPv4, 0x21 TCP over IPv6, 0x31
 * a local socket. After the addresses and ports, `body` has whatever else the balancer says.
 */
function v2(command: number, family: number, body: Buffer): Buffer {
  // The signature, and room for the command, the family and the length.
  const head = Buffer.from('\r\n\r\n\0\r\nQUIT\n....', 'latin1');
  head.set([command, family, body.length >> 8, body.length & 255], 12);
  return Buffer.concat([head, body]);
}
/** 203.0.113.7 and 10.0.0.1, ports 40000 and 1883. */
const IPV4_BODY = Buffer.from([203, 0, 113, 7, 10, 0, 0, 1, 0x9c, 0x40, 0x07, 0x5b]);
const IPV6_BODY = Buffer.concat([Buffer.from('20010db8000000000000000000000007', 'hex'), Buffer.alloc(20)]);
const V2_HEAD_BYTES = 16;
const LONGEST_REST = Buffer.alloc(MAX_PROXY_HEADER_BYTES - V2_HEAD_BYTES - IPV4_BODY.length, 4);
const LONGEST = v2(PROXY_COMMAND, 0x11, Buffer.concat([IPV4_BODY, LONGEST_REST]));

const GOOD: readonly (readonly [name: string, header: Buffer, address: string | undefined])[] = [
  ['v1, IPv4', v1('PROXY TCP4 203.0.113.7 10.0.0.1 40000 1883'), '203.0.113.7'],
  ['v1, IPv6', v1('PROXY TCP6 2001:db8::7 ::1 40000 1883'), '2001:db8::7'],
  ['v1, an IPv4 address in IPv6', v1('PROXY TCP6 ::ffff:203.0.113.7 ::1 40000 1883'), '203.0.113.7'],
  ['v1, unknown', v1('PROXY UNKNOWN'), undefined],
  ['v1, unknown with more', v1('PROXY UNKNOWN ffff::1 ffff::2 1 2'), undefined],
  ['v2, IPv4', v2(PROXY_COMMAND, 0x11, IPV4_BODY), '203.0.113.7'],
  ['v2, IPv6', v2(PROXY_COMMAND, 0x21, IPV6_BODY), '2001:db8::7'],
  ['v2, the longest', LONGEST, '203.0.113.7'],
  ['v2, a health check', v2(LOCAL_COMMAND, 0, Buffer.alloc(0)), undefined],
  ['v2, a local socket', v2(PROXY_COMMAND, 0x31, Buffer.alloc(216)), undefined],
];

const WRONG: readonly (readonly [name: string, bytes: Buffer])[] = [
  ['no header', connectPacket(STRANGER)],
  ['a line without an end', Buffer.from(`PROXY TCP4 ${'1'.repeat(107)}`)],
  ['another family', v1('PROXY UDP4 203.0.113.7 10.0.0.1 40000 1883')],
  ['no address', v1('PROXY TCP4 203.0.113.700 10.0.0.1 40000 1883')],
  ['an address of another family', v1('PROXY TCP4 2001:db8::7 ::1 40000 1883')],
  ['too few words', v1('PROXY TCP4 203.0.113.7')],
  ['another version', v2(0x31, 0x11, IPV4_BODY)],
  ['another command', v2(0x22, 0x11, IPV4_BODY)],
  ['too short for its addresses', v2(PROXY_COMMAND, 0x21, IPV4_BODY)],
  ['too long by a byte', v2(PROXY_COMMAND, 0x11, Buffer.alloc(MAX_PROXY_HEADER_BYTES - V2_HEAD_BYTES + 1))],
];

t.test('a whole header is read, whatever follows it; a part of a header is recognised as incomplete', async (t) => {
  for (const [name, header, address] of GOOD) {
    t.same(readProxyHeader(header), { is: 'complete', bytes: header.length, address }, name);
    const behind = Buffer.concat([header, connectPacket(STRANGER)]);
    t.same(readProxyHeader(behind), { is: 'complete', bytes: header.length, address }, `${name}, with more behind`);
    const cut = Array.from({ length: header.length }, (_, length) => readProxyHeader(header.subarray(0, length)).is);
    t.same([...new Set(cut)], ['incomplete'], `${name}, cut anywhere`);
  }
  for (const [name, bytes] of WRONG) t.equal(readProxyHeader(bytes).is, 'wrong', name);
});

/** A gateway behind balancers at 127.0.0.1, with a registered lock and a clock for time limits. */
async function proxiedGateway(t: Test, settings: Partial<Config> = {}) {
  const clock = new ManualClock();
  const mqttProxies = [parseRange('127.0.0.1')];
  const gateway = await testGateway(t, { guardClock: clock }, { mqttProxies, ...settings });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const open = (): Promise<RawLock> => RawLock.open(t, gateway.mqttPort);
  return { clock, gateway, open, credentials: { user: MAC, secret } };
}

t.test('a client behind a balancer has its own address; the header may arrive byte by byte', async (t) => {
  const { gateway, open, credentials } = await proxiedGateway(t);
  // Without the two long headers: a write for each of their bytes takes long.
  for (const [name, header, address = '127.0.0.1'] of GOOD.filter(([, bytes]) => bytes.length < 200)) {
    const refused = waitForEvents(gateway, 'refused', 1);
    const whole = await open();
    whole.write(Buffer.concat([header, connectPacket(STRANGER)]));
    t.equal(await whole.waitForAnswer(), CONNACK_NOT_AUTHORIZED, name);
    t.match(await refused, [{ address, reason: 'identity' }], name);
    const cut = await open();
    for (const byte of Buffer.concat([header, connectPacket(credentials)])) await cut.flush(Buffer.from([byte]));
    await cut.waitForHex(CONNACK_ACCEPTED);
    cut.socket.destroy();
  }
});

t.test('the limit of connections is for each client, and the bytes of headers are not billed', async (t) => {
  const { gateway, open, credentials } = await proxiedGateway(t, { mqttPerAddress: 1 });
  const header = (client: number): Buffer => v1(`PROXY TCP4 203.0.113.${client} 10.0.0.1 40000 1883`);
  const first = await open();
  const bytes = connectPacket(credentials);
  first.write(Buffer.concat([header(1), bytes]));
  await first.waitForHex(CONNACK_ACCEPTED);
  const other = await open();
  other.write(Buffer.concat([header(2), connectPacket(STRANGER)]));
  t.equal(await other.waitForAnswer(), CONNACK_NOT_AUTHORIZED, 'another client of the same balancer');
  const refused = waitForEvents(gateway, 'refused', 1);
  const second = await open();
  second.write(header(1));
  await second.waitForClose();
  t.match(await refused, [{ address: '203.0.113.1', reason: 'crowd' }]);
  first.socket.destroy();
  const read = async () => (await callOperator(gateway, 'GET', '/usage')).body as { usage: { bytes_up: number }[] };
  await eventually('the connection is counted', async () => (await read()).usage[0]?.bytes_up !== undefined);
  t.equal((await read()).usage[0]?.bytes_up, bytes.length, 'only the CONNECT is billed');
});

t.test('a balancer’s connection without a header is refused, and so is a header of anybody else', async (t) => {
  const { clock, gateway, open, credentials } = await proxiedGateway(t);
  for (const [name, bytes] of WRONG) {
    const refused = waitForEvents(gateway, 'refused', 1);
    const wrong = await open();
    wrong.write(bytes);
    await wrong.waitForClose();
    t.match(await refused, [{ address: '127.0.0.1', reason: 'malformed' }], name);
    t.equal(wrong.receivedHex, '');
  }
  const late = waitForEvents(gateway, 'refused', 1);
  const silent = await open();
  await silent.flush(Buffer.from('PROXY '));
  // A later connection is served, so the silent one has been accepted.
  const lock = await open();
  lock.write(Buffer.concat([v1('PROXY UNKNOWN'), connectPacket(credentials)]));
  await lock.waitForHex(CONNACK_ACCEPTED);
  clock.advance(HEADER_WITHIN);
  await silent.waitForClose();
  t.match(await late, [{ reason: 'slow', why: /no PROXY header came within 5 s/ }]);
  t.notOk(lock.isClosed);

  // 127.0.0.9 is no balancer, so its header is taken for the first MQTT packet.
  const invented = waitForEvents(gateway, 'refused', 1);
  const liar = new RawLock(t, connect({ port: gateway.mqttPort, host: '127.0.0.1', localAddress: '127.0.0.9' }));
  liar.write(v1('PROXY TCP4 203.0.113.7 10.0.0.1 40000 1883'));
  await liar.waitForClose();
  t.match(await invented, [{ address: '127.0.0.9', reason: 'not-connect' }]);
});

t.test('over TLS the header comes before the handshake; a stop does not wait for headers', async (t) => {
  const certificate = await testCertificate();
  const files = writeCertificate(tempFolder(t), certificate);
  const { gateway, open, credentials } = await proxiedGateway(t, { mqttTls: files, mqttTlsHost: '127.0.0.1' });
  const socket = connect(Number(gateway.mqttTlsPort), '127.0.0.1');
  socket.write(v1('PROXY TCP4 203.0.113.7 10.0.0.1 40000 8883'));
  const lock = new RawLock(t, connectTls({ socket, ca: certificate.cert, servername: 'localhost' }));
  lock.write(connectPacket(credentials));
  await lock.waitForHex(CONNACK_ACCEPTED);
  const silent = await open();
  await gateway.close();
  await silent.waitForClose();
});

const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined && 'haproxy not installed (Debian: haproxy)';

t.test('behind haproxy, with either version of the protocol', { skip: noHaproxy }, async (t) => {
  const { gateway, credentials } = await proxiedGateway(t);
  for (const how of ['send-proxy', 'send-proxy-v2']) {
    const port = await freePort();
    const file = path.join(tempFolder(t), 'haproxy.cfg');
    writeFileSync(
      file,
      [
        'defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s',
        `listen locks\n  bind 127.0.0.1:${port}\n  server one 127.0.0.1:${gateway.mqttPort} ${how} check inter 100ms\n`,
      ].join('\n'),
    );
    const haproxy = new Program(t, 'haproxy', ['-db', '-f', file]);
    // Until haproxy listens, and its health check has found the gateway, nobody answers.
    await eventually('haproxy listens', async () => {
      const probe = new RawLock(t, connect(port, '127.0.0.1'));
      probe.write(connectPacket(STRANGER));
      return (await probe.waitForAnswer()) === CONNACK_NOT_AUTHORIZED;
    });
    const refused = waitForEvents(gateway, 'refused', 1);
    const openClient = (): RawLock => new RawLock(t, connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }));
    const stranger = openClient();
    stranger.write(connectPacket(STRANGER));
    await stranger.waitForClose();
    t.match(await refused, [{ address: '127.0.0.9' }], how);
    const lock = openClient();
    lock.write(connectPacket(credentials));
    await lock.waitForHex(CONNACK_ACCEPTED);
    lock.socket.destroy();
    haproxy.kill('SIGTERM');
    await haproxy.waitForExit();
  }
});
