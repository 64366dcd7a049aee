/** The operator's interface over HTTP: who gets in, what it answers, and how it says no. */
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Method } from 'got';
import t from 'tap';
import { ask } from './helpers/operator-call.js';
import { tempFolder } from './helpers/temp-folder.js';
import { openGateway, testGateway } from './helpers/test-gateway.js';

const PROBLEM = 'application/problem+json';

t.test('nobody gets in without the token, which its owner alone can read', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  t.equal(statSync(path.join(folder, 'operator-token')).mode & 0o777, 0o600);
  t.equal(statSync(path.join(folder, 'key')).mode & 0o777, 0o600);
  for (const token of ['x', `${gateway.operatorToken}x`, gateway.operatorToken.slice(1), ''])
    t.match(await ask(gateway, 'GET', '/status', undefined, token), { status: 401, type: PROBLEM });
  t.match(await ask(gateway, 'GET', '/nothing', undefined, 'x'), { status: 401 }, 'nor learns what is there');
  t.match(await ask(gateway, 'GET', '/status'), { status: 200, body: { mqtt: { connected: 0 } } });
});

t.test('an address or a folder that can’t be had stops the start with a sentence', async (t) => {
  // RFC 5737: no machine has it.
  for (const setting of ['mqttHost', 'httpHost', 'operatorHost']) {
    const start = openGateway(t, tempFolder(t), {}, { [setting]: '192.0.2.1' });
    await t.rejects(start, { code: 'input-address', message: /can't listen on 192\.0\.2\.1:0: / }, setting);
  }
  const file = path.join(tempFolder(t), 'file');
  writeFileSync(file, '');
  for (const data of [file, path.join(file, 'below')])
    await t.rejects(openGateway(t, data), { code: 'input-data', message: /file.* can't be made: E/ }, data);
});

t.test('what the caller got wrong is a problem with a code and a sentence', async (t) => {
  const gateway = await testGateway(t);
  const cases: readonly (readonly [Method, string, unknown, number, RegExp])[] = [
    ['GET', '/nothing', undefined, 404, /nothing at this path/],
    ['POST', '/merchants', {}, 400, /name/],
    ['POST', '/merchants', { name: 7 }, 400, /name|string/],
    ['POST', '/merchants', { name: '   ' }, 400, /1 to 200 characters/],
    ['POST', '/merchants', [], 400, /object/],
    ['POST', '/merchants', { name: 'Amber' }, 409, /already/],
    ['POST', '/devices', { mac: 'zz' }, 400, /12 hex digits/],
    ['POST', '/devices', { mac: 'A4C138F0E1D2', merchant: 'Nobody' }, 404, /no merchant named "Nobody"/],
    ['GET', '/devices/A4C138F0E1D2', undefined, 404, /no device A4:C1:38:F0:E1:D2/],
    ['POST', '/devices/A4C138F0E1D2/rotate-secret', {}, 404, /no device/],
    ['POST', '/webhooks', { url: 'http://a/', headers: { Host: 'b' } }, 400, /Host can't be set/],
  ];
  for (const [method, where, body, status, detail] of cases) {
    const answer = await ask(gateway, method, where, body);
    t.match(answer, { status, type: PROBLEM, body: { status, detail } }, `${method} ${where} ${JSON.stringify(body)}`);
  }
});

t.test('a secret is answered once, and never shown again', async (t) => {
  const gateway = await testGateway(t);
  const device = await ask(gateway, 'POST', '/devices', { mac: 'A4C138F0E1D2' });
  const headers = { Authorization: 'Bearer merchant-secret' };
  const webhook = await ask(gateway, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', headers });
  t.match([device, webhook], [{ status: 201 }, { status: 201 }]);
  const secrets = [device, webhook].map(({ body }) => (body as { secret: string }).secret);
  const shown = await Promise.all(
    ['/devices', '/devices/A4C138F0E1D2', '/webhooks', '/merchants', '/status'].map((where) =>
      ask(gateway, 'GET', where),
    ),
  );
  for (const secret of [...secrets, 'merchant-secret']) t.notMatch(JSON.stringify(shown), secret);
});
