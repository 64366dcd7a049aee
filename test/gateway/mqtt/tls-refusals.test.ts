/**
 * How TLS failures are explained: the gateway reports clients that do not use TLS on the TLS port, use TLS on the plain
 * port, or refuse the certificate; the simulator and the command line explain failures of a server.
 */
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { clientTlsFailure, serverTlsFailure } from '../../../proto/tls-failure.js';
import { runCommand } from '../../helpers/cli/command-line.js';
import { openGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { connectPacket, RawLock } from '../../helpers/mqtt/raw-lock.js';
import { type TestCertificate, testCertificate, writeCertificate } from '../../helpers/mqtt/test-certificates.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

let certificate: TestCertificate;

t.before(async () => {
  certificate = await testCertificate();
});
const MAC = testMac();

/** A gateway with a certificate. */
async function setUpTlsGateway(t: Test) {
  const folder = tempFolder(t);
  const files = writeCertificate(folder, certificate);
  const gateway = await openGateway(t, path.join(folder, 'data'), {}, { mqttTls: files });
  return { gateway, tlsPort: gateway.mqttTlsPort ?? 0 };
}

t.test('a plain client on the TLS port and a TLS client on the plain port get different refusals', async (t) => {
  const { gateway, tlsPort } = await setUpTlsGateway(t);
  const plainRefused = waitForEvents(gateway, 'refused', 1);
  const plain = await RawLock.open(t, tlsPort);
  plain.write(connectPacket({ user: MAC, secret: 'x' }));
  await plain.waitForClose();
  t.match(await plainRefused, [
    { reason: 'tls', why: /^the TLS handshake failed: the client does not use TLS, .* connect with mqtts:/ },
  ]);
  const tlsRefused = waitForEvents(gateway, 'refused', 1);
  const client = connectTls({ port: gateway.mqttPort, host: '127.0.0.1', ca: certificate.cert });
  t.teardown(() => client.destroy());
  await new Promise<Error>((resolve) => client.once('error', resolve));
  t.match(await tlsRefused, [{ reason: 'tls', why: /^the client uses TLS, this port does not: connect with mqtt:/ }]);
});

t.test('a client that refuses the certificate after the handshake is reported with the likely reason', async (t) => {
  const { gateway, tlsPort } = await setUpTlsGateway(t);
  const refused = waitForEvents(gateway, 'refused', 1);
  const failed = new Promise<string>((resolve) => {
    const address = { host: '127.0.0.1', port: tlsPort, tls: { servername: 'other.example', ca: certificate.cert } };
    const link = mqttLinks(address, () => 'secret')(MAC, {
      connected: () => resolve('connected'),
      failed: ({ message }) => resolve(message),
      disconnected: () => undefined,
      acknowledged: () => undefined,
      command: () => undefined,
      unreadable: () => undefined,
    });
    t.teardown(() => link.drop());
    link.connect();
  });
  t.match(await failed, /^its certificate is for another host name: use the name that the certificate has \(/);
  t.match(await refused, [{ reason: 'tls', why: /before its CONNECT: it probably refused the gateway’s certificate/ }]);
});

t.test('the command line says when the operator’s interface is called with https but has no TLS', async (t) => {
  const { gateway } = await setUpTlsGateway(t);
  const gatewayFlags = ['--gateway', `https://127.0.0.1:${gateway.operatorPort}`, '--token', 'any'];
  const { code, stderr } = await runCommand(['device', 'list', ...gatewayFlags], {});
  t.equal(code, 3);
  t.match(stderr, /no gateway at https:.*\(the other side does not use TLS on this port/);
});

t.test('an error that is not about TLS keeps its own message', async (t) => {
  t.equal(clientTlsFailure(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })), undefined);
  t.equal(serverTlsFailure(new Error('odd')), 'odd');
  const unknown = Object.assign(new Error('alert 48'), { code: 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA' });
  t.match(serverTlsFailure(unknown), /^the client does not trust the gateway’s certificate: .*\(alert 48\)$/);
});
