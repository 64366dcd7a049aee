/**
 * Importing many locks with `lockgate device import` and its route of the operators' interface (interfaces.md §4):
 * valid and invalid lists, and the file into which the new secrets are written.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { readImportList } from '../../cli/commands/device/import-list.js';
import { readCsv } from '../helpers/cli/csv-records.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { MERCHANT, openGateway, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { connackCode } from '../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

const LOCKS = 2000;

/** Runs `device import` with these arguments and input. */
async function runImport(test: Teardown, target: { data: string; port: number }, args: readonly string[], input = '') {
  const gatewayFlags = ['--data', target.data, '--gateway', `http://127.0.0.1:${target.port}`];
  const program = new Program(test, process.execPath, [LOCKGATE, 'device', 'import', ...args, ...gatewayFlags]);
  program.endStdin(input);
  const { code } = await program.waitForExit();
  return { code, stdout: program.stdout, stderr: program.stderr.join('\n') };
}

t.test('2,000 locks are imported, and their secrets are written to a file that only its owner can read', async (t) => {
  const data = tempFolder(t);
  const gateway = await openGateway(t, data);
  await gateway.accounts.addMerchant(MERCHANT);
  const target = { data, port: gateway.operatorPort };
  const macs = Array.from({ length: LOCKS }, (_, index) => testMac(index + 1));
  const list = path.join(data, 'locks.csv');
  writeFileSync(list, macs.join('\n'));
  const out = path.join(data, 'secrets.csv');
  t.match(await runImport(t, target, [list, '--out', out]), { code: 0, stdout: [/Added 2000 locks/] });
  t.equal(statSync(out).mode & 0o777, 0o600);
  const [header, ...rows] = readCsv(out);
  t.same(header, ['mac', 'secret']);
  t.same(
    rows.map(([mac]) => mac?.replaceAll(':', '')),
    macs,
    'in the order of the list',
  );
  t.equal(new Set(rows.map(([, secret]) => secret)).size, LOCKS);
  t.equal((await gateway.store.listDevices()).length, LOCKS);
  const last = macs.at(-1) as string;
  const password = rows.at(-1)?.[1] as string;
  t.equal(await connackCode(gateway.mqttPort, { clientId: last, username: last, password }), 0);

  const more = path.join(data, 'more.csv');
  writeFileSync(more, `mac\n${testMac(LOCKS + 1)}\n`);
  const before = readFileSync(out, 'utf8');
  const repeated = await runImport(t, target, [more, '--out', out]);
  t.match(repeated, { code: 2, stderr: /secrets\.csv exists already/ });
  t.equal(readFileSync(out, 'utf8'), before);
  t.equal((await gateway.store.listDevices()).length, LOCKS);

  writeFileSync(more, `mac\n${testMac(LOCKS + 1)}\n\n${testMac(7)}\n${testMac(9)}\n`);
  const second = path.join(data, 'second.csv');
  const again = await runImport(t, target, [more, '--out', second]);
  t.match(again, { code: 2, stderr: /more\.csv:4: there is a device A4:C1:38:00:00:07 already; .*more\.csv:5: there/ });
  t.equal((await gateway.store.listDevices()).length, LOCKS, 'all locks are added or none');
  t.notOk(existsSync(second), 'no empty file is left');
});

t.test('a list may name the merchants of its locks, and may come from standard input', async (t) => {
  const data = tempFolder(t);
  const gateway = await openGateway(t, data);
  for (const name of ['Amber', 'Basil, Inc.']) await gateway.accounts.addMerchant(name);
  const target = { data, port: gateway.operatorPort };
  // A byte order mark, as spreadsheets write it, columns in the other order, a blank line, and a lock without merchant.
  const text = `\ufeffMerchant,MAC\r\n"Basil, Inc.",a4:c1:38:00:00:01\r\n\r\n,A4-C1-38-00-00-02\r\n`;
  t.match(await runImport(t, target, ['-'], text), { code: 2, stderr: /which merchant\?/ });
  const imported = await runImport(t, target, ['-', '--merchant', 'Amber', '--simulated', '--json'], text);
  t.match(JSON.parse(imported.stdout.join('')), {
    imported: 2,
    out: null,
    devices: [
      { mac: 'A4:C1:38:00:00:01', merchant: 'Basil, Inc.', secret: /^lgs_/ },
      { mac: 'A4:C1:38:00:00:02', merchant: 'Amber', secret: /^lgs_/ },
    ],
  });
  t.match(await gateway.store.listDevices(), [
    { device: { merchantName: 'Basil, Inc.', simulated: true } },
    { device: { merchantName: 'Amber', simulated: true } },
  ]);
  const third = await runImport(t, target, ['-', '--merchant', 'Amber'], `${testMac(3)},Nobody\n${testMac(4)}\n`);
  t.match(third, { code: 2, stderr: /standard input:1: there is no merchant named "Nobody"/ });
  const plain = await runImport(t, target, ['-', '--merchant', 'Amber'], `${testMac(3)}\n`);
  t.match(plain, { code: 0, stdout: ['mac,secret', /^A4:C1:38:00:00:03,lgs_/] });
});

t.test('the error names every bad line and what was expected', async (t) => {
  const folder = tempFolder(t);
  const firstMac = testMac(1);
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['empty', '', /lists no lock/],
    ['only a header', 'mac\n', /lists no locks below its header/],
    ['no MAC', 'hello\n', /:1: "hello" is no MAC: expected 12 hex digits/],
    ['a MAC too short', `${firstMac}\nA4:C1\n`, /:2: "A4:C1" is no MAC/],
    ['two bad lines', `x\n${firstMac}\ny\n`, /:1: "x" is no MAC.*:3: "y" is no MAC/],
    ['one lock twice', `mac\n${firstMac}\n\na4:c1:38:00:00:01\n`, /:4: A4:C1:38:00:00:01 is already in line 2/],
    ['too many cells', `${firstMac},Amber,x\n`, /:1: 3 cells: expected mac,merchant/],
    ['a strange column', `mac,colour\n${firstMac},red\n`, /:1: column "colour": expected mac/],
    ['a column twice', `mac,mac\n${firstMac},${firstMac}\n`, /:1: column "mac"/],
    ['an open quote', `${firstMac}\n"${testMac(2)}\n`, /not CSV/],
    ['no text', '\u0000\u0001\u0002\n', /:1: .*is no MAC/],
    ['a line without end', 'x'.repeat(20_000), /not CSV|not a MAC/],
  ];
  for (const [what, text, message] of cases) {
    const file = path.join(folder, 'list.csv');
    writeFileSync(file, text);
    t.throws(() => readImportList(file), { code: 'input-import', message }, what);
    t.throws(() => readImportList(file), { message: /list\.csv/ }, `${what}: the file is named`);
  }
  t.throws(() => readImportList(path.join(folder, 'none.csv')), { code: 'input-import', message: /can’t be read/ });
  const long = path.join(folder, 'long.csv');
  writeFileSync(long, Array.from({ length: 30 }, (_, index) => `bad ${index}`).join('\n'));
  t.throws(() => readImportList(long), { message: /:20: .*; and 10 more bad lines$/ });
});

t.test('the route refuses a faulty list as a whole, and names each faulty member', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addDevice({ mac: testMac(1) });
  const [existing, absent] = [{ mac: testMac(1) }, { mac: testMac(2) }];
  const cases: readonly (readonly [unknown, number, unknown])[] = [
    [{}, 400, {}],
    [{ devices: [] }, 400, {}],
    [{ devices: [{ mac: 7 }] }, 400, {}],
    [{ devices: [absent, { mac: 'zz' }] }, 400, { errors: [{ pointer: '/devices/1/mac', detail: /12 hex digits/ }] }],
    [{ devices: [absent, absent] }, 400, { errors: [{ pointer: '/devices/1/mac', detail: /is at index 0 already/ }] }],
    [{ devices: [absent, existing] }, 409, { code: 'device-exists', errors: [{ pointer: '/devices/1/mac' }] }],
    [{ devices: [{ ...absent, merchant: 'x' }] }, 404, { errors: [{ pointer: '/devices/0/merchant' }] }],
    [{ devices: [absent], merchant: 'Nobody' }, 404, { code: 'no-such-merchant' }],
  ];
  for (const [body, status, problem] of cases)
    t.match(
      await callOperator(gateway, 'POST', '/devices/import', body),
      { status, body: problem },
      JSON.stringify(body),
    );
  t.equal((await gateway.store.listDevices()).length, 1, 'nothing was added');
  const added = await callOperator(gateway, 'POST', '/devices/import', { devices: [absent] });
  t.match(added, { status: 201, body: { devices: [{ mac: 'A4:C1:38:00:00:02', merchant: MERCHANT }] } });
});
