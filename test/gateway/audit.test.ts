/**
 * The audit log (interfaces.md §4): every change through the operators' interface, in the data folder, or by the
 * gateway itself has an entry with author, time, object and outcome. No entry contains a secret.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { eventLine } from '../../cli/commands/tail/event-line.js';
import { AUDIT_ACTIONS } from '../../gateway/audit/actions.js';
import { forgetSecrets, rotateKey } from '../../gateway/data-folder/key-change.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { ChangingRoute } from '../../gateway/http/operator/routes.js';
import { OPERATOR_ROUTES } from '../../gateway/http/operator/server.js';
import { logEvents, makeLog } from '../../gateway/log/log.js';
import { StoreFailure } from '../../gateway/store/contract/errors.js';
import { type AuditStart, MAX_AUDIT_ENTRIES } from '../../gateway/store/contract/operators/audit-store.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { systemClock } from '../../proto/clock.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testGateway } from '../helpers/gateway/test-gateway.js';
import { openStore } from '../helpers/store/new-store.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const MAC = 'A4:C1:38:F0:E1:D2';

/** An entry of the audit log, as far as these tests read it; `object` is what was changed. */
interface Entry {
  readonly id: number;
  readonly action: string;
  readonly object: string;
  readonly outcome: string;
}

/** The entries, newest first. */
async function entriesOf(gateway: Gateway, query = ''): Promise<readonly Entry[]> {
  return ((await callOperator(gateway, 'GET', `/audit${query}`)).body as { entries: Entry[] }).entries;
}

t.test('every call of a route other than GET has an entry', async (t) => {
  const gateway = await testGateway(t);
  const changingRoutes = OPERATOR_ROUTES.filter((route): route is ChangingRoute => route.method !== 'GET');
  t.ok(changingRoutes.length >= 24, `${changingRoutes.length} of them`);
  for (const { method, path: route, operation } of changingRoutes) {
    const path = route.replace(':mac', 'A4C138F0E1D9').replace(':id', '999').replace(':name', 'nobody');
    const before = (await entriesOf(gateway, '?limit=1'))[0]?.id ?? 0;
    const { status } = await callOperator(gateway, method, path, {});
    const [entry, ...others] = (await entriesOf(gateway)).filter(({ id }) => id > before);
    const outcome = status < 300 ? 'done' : 'refused';
    const expected = { action: operation, outcome, actor: 'operator', at: /^20.*Z$/ };
    t.match(entry, expected, `${method} ${route}: ${status}`);
    t.same(others, [], 'there is no other entry');
  }
  const operationNames = OPERATOR_ROUTES.map(({ operation }) => operation);
  t.equal(new Set(operationNames).size, operationNames.length, 'each route has a different name');
  for (const { operation } of changingRoutes)
    t.ok((AUDIT_ACTIONS as readonly string[]).includes(operation), `${operation} is in the table of actions`);
});

t.test('an entry has the author, action, object, previous state and outcome', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Blue');
  await callOperator(gateway, 'POST', '/devices', { mac: 'a4c138f0e1d2', merchant: MERCHANT });
  await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Blue' });
  await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Nobody' });
  const webhook = { url: 'http://127.0.0.1:9/way?key=1', merchant: 'Blue', headers: { 'X-Team': 'bikes' } };
  await callOperator(gateway, 'POST', '/webhooks', webhook);
  await callOperator(gateway, 'POST', '/webhooks/1', { state: 'disabled' });
  await callOperator(gateway, 'POST', '/webhooks/1/remove');
  const [removalEntry, disablingEntry, webhookAdditionEntry, refusedEntry, moveEntry, additionEntry] =
    await entriesOf(gateway);
  t.match(additionEntry, {
    action: 'device.add',
    object: MAC,
    before: null,
    after: { merchant: MERCHANT, simulated: false },
  });
  t.match(moveEntry, { object: MAC, before: { merchant: MERCHANT }, after: { merchant: 'Blue' }, outcome: 'done' });
  t.match(refusedEntry, { before: { merchant: 'Blue' }, after: { merchant: 'Nobody' }, outcome: 'refused' });
  t.match(refusedEntry, { code: 'no-such-merchant' });
  const reported = { origin: 'http://127.0.0.1:9', merchant: 'Blue', headers: ['X-Team'], state: 'active' };
  t.match(webhookAdditionEntry, { action: 'webhook.add', object: '1', after: reported });
  t.match(disablingEntry, { object: '1', before: reported, after: { ...reported, state: 'disabled' } });
  t.match(removalEntry, { action: 'webhook.remove', before: { state: 'disabled' } });
  t.match(additionEntry, {
    address: '127.0.0.1',
    agent: /^got/,
    os_user: null,
    token: /^[0-9a-f]{8}$/,
    ended_at: /^20.*Z$/,
  });
  t.match(
    await entriesOf(gateway, '?object=a4-c1-38-f0-e1-d2'),
    [refusedEntry, moveEntry, additionEntry],
    'the filter accepts a MAC in any spelling',
  );
  t.match(
    await entriesOf(gateway, '?action=webhook'),
    [removalEntry, disablingEntry, webhookAdditionEntry],
    'the filter accepts a group of actions',
  );
  t.match(await entriesOf(gateway, '?action=webhook.set'), [disablingEntry]);
  t.match(await callOperator(gateway, 'GET', '/audit?action=device.paint'), {
    status: 400,
    body: { code: 'input-action', detail: /action is "device.paint": expected device.add, .*device.set/ },
  });
  t.match(await callOperator(gateway, 'GET', '/audit?action=nonsense'), {
    status: 400,
    body: { code: 'input-action', detail: /expected one of these.*: .*device, .*webhook/ },
  });
  t.same(await entriesOf(gateway, '?since=2100-01-01T00:00:00Z'), []);
  const page = (await callOperator(gateway, 'GET', '/audit?limit=2')).body as { next_cursor: string };
  t.match(await entriesOf(gateway, `?limit=2&cursor=${page.next_cursor}`), [webhookAdditionEntry, refusedEntry]);
});

/** Secrets that the calls send; none may appear in the log. Some have the form of lockgate's secrets, some don't. */
const CANARIES = {
  password: 'canary-password-1',
  header: 'Bearer canary-header-2',
  changed: 'canary-header-3',
  inUrl: 'canary-user-4',
  inQuery: 'canary-query-5',
  name: 'lgk_0123456789_canaryKeyPastedAsName6',
};

t.test('the log contains no secret of a request or an answer', async (t) => {
  const folder = tempFolder(t);
  const lines: string[] = [];
  const gateway = await openGateway(t, folder);
  const stopLogging = logEvents(
    makeLog('debug', (line) => lines.push(line)),
    gateway.events,
    systemClock,
  );
  t.teardown(stopLogging);
  await gateway.accounts.addMerchant(MERCHANT);
  const calls: readonly (readonly ['POST', string, object])[] = [
    ['POST', '/devices', { mac: MAC }],
    ['POST', '/devices/import', { devices: [{ mac: 'A4C138F0E1D3' }] }],
    ['POST', `/devices/${MAC}/rotate-secret`, { keep_old_seconds: 60 }],
    ['POST', `/devices/${MAC}/phones`, { name: 'Ada' }],
    [
      'POST',
      '/webhooks',
      { url: `http://127.0.0.1:9/?q=${CANARIES.inQuery}`, headers: { Authorization: CANARIES.header } },
    ],
    ['POST', '/webhooks/1', { set_headers: { 'X-Key': CANARIES.changed } }],
    ['POST', '/webhooks/1/rotate-secret', {}],
    ['POST', '/keys', { name: 'till' }],
    ['POST', '/users', { username: 'ada', password: CANARIES.password }],
    // The same secrets in refused calls.
    ['POST', '/users', { username: 7, password: CANARIES.password }],
    ['POST', '/users', { username: 'ada', password: CANARIES.password }],
    ['POST', '/users', { username: 'eve', pasword: CANARIES.password }],
    ['POST', '/webhooks', { url: `http://x:${CANARIES.inUrl}@127.0.0.1/`, headers: { Host: CANARIES.header } }],
    ['POST', '/webhooks', { url: 'http://127.0.0.1:9/', headers: { Host: CANARIES.header } }],
    ['POST', '/webhooks/1', { set_headers: { 'X-Key': [CANARIES.changed] } }],
    ['POST', `/keys/${CANARIES.name}/revoke`, {}],
    ['POST', '/keys', { name: CANARIES.name, merchant: 'Nobody' }],
  ];
  const secrets: string[] = Object.values(CANARIES);
  for (const [method, route, body] of calls) {
    const answer = await callOperator(gateway, method, route, body);
    const { secret, key, devices } = answer.body as { secret?: string; key?: string; devices?: { secret: string }[] };
    secrets.push(...[secret, key, devices?.[0]?.secret].filter((each) => each !== undefined));
  }
  t.equal(secrets.length, Object.keys(CANARIES).length + 7, 'each call that makes a secret returned one');
  const listed = JSON.stringify(await entriesOf(gateway, '?limit=500'));
  t.match(listed, /user\.add.*"ada"/);
  const reported = [listed, lines.join('')];
  await gateway.close();
  const rows = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  reported.push(JSON.stringify(rows.prepare('SELECT * FROM audit').all()));
  rows.close();
  for (const secret of [...secrets, gateway.operatorToken]) {
    for (const [index, text] of reported.entries()) t.notOk(text.includes(secret), `${secret}, ${index}`);
    // The store must hold a URL's query in plain text.
    if (secret === CANARIES.inQuery) continue;
    for (const file of ['lockgate.sqlite', 'lockgate.sqlite-wal'].map((name) => path.join(folder, name)))
      if (existsSync(file)) t.notOk(readFileSync(file).includes(secret), `${secret} in ${file}`);
  }
});

t.test('a backup, which is a copy of everything, has an entry', async (t) => {
  const gateway = await testGateway(t);
  const route = `http://127.0.0.1:${gateway.operatorPort}/backup`;
  const headers = { authorization: `Bearer ${gateway.operatorToken}` };
  const backupBytes = await (await fetch(route, { headers })).arrayBuffer();
  const backupEntry = { action: 'store.backup', actor: 'operator', token: /^[0-9a-f]{8}$/, outcome: 'done' };
  t.match(await entriesOf(gateway), [{ ...backupEntry, after: { bytes: backupBytes.byteLength } }]);
  t.equal((await fetch(route)).status, 401);
  t.equal((await entriesOf(gateway)).length, 1, 'a call without the token makes no backup');
  t.equal((await fetch(route, { headers, method: 'HEAD' })).status, 404);
  t.equal((await entriesOf(gateway)).length, 1, 'nor does HEAD');
});

t.test('automatic changes have an entry with the gateway as the author', async (t) => {
  const gateway = await testGateway(t);
  const { events } = gateway;
  events.emit('url-disabled', { atMs: 0, urlId: 7, why: 'the receiver answered 410' });
  events.emit('statement-closed', { atMs: 0, merchant: MERCHANT, month: '2026-10', byItself: true });
  events.emit('statement-closed', { atMs: 0, merchant: MERCHANT, month: '2026-11', byItself: false });
  events.emit('swept', { atMs: 0, beforeMs: 0, uplinks: 3, others: 1, held: 0 });
  events.emit('swept', { atMs: 0, beforeMs: 0, uplinks: 0, others: 0, held: 5 });
  t.match(await entriesOf(gateway), [
    { action: 'history.delete', after: { uplinks: 3, others: 1 } },
    { action: 'usage.close', object: '2026-10', after: { merchant: MERCHANT } },
    { actor: 'gateway', address: null, action: 'webhook.disable', object: '7', after: { why: /410/ }, outcome: 'done' },
  ]);
});

const AUDIT_START: AuditStart = {
  ...{ atMs: 1, actor: 'operator', address: null, agent: null, osUser: null, token: null },
  ...{ action: 'device.erase', object: MAC, before: null },
};

t.test(
  'at the next start, entries that are unfinished become unknown; a high id causes no deletion of the few entries',
  async (t) => {
    const folder = tempFolder(t);
    const store = await openStore(folder);
    t.equal(await store.audit.begin(AUDIT_START), 1);
    t.match(await store.audit.list({ limit: 9 }), [{ outcome: 'begun', endedAtMs: null }]);
    await store.close();
    const gateway = await openGateway(t, folder);
    t.match(await entriesOf(gateway), [{ action: 'device.erase', outcome: 'unknown', ended_at: null }]);
    await gateway.close();
    // As if nearly as many entries as are allowed had been made, and all but one had been deleted.
    const file = openDurable(path.join(folder, 'lockgate.sqlite'));
    file.prepare(`UPDATE sqlite_sequence SET seq = ? WHERE name = 'audit'`).run(MAX_AUDIT_ENTRIES - 1);
    file.close();
    const reopened = await openStore(folder);
    t.equal(await reopened.audit.begin(AUDIT_START), MAX_AUDIT_ENTRIES);
    t.equal((await reopened.audit.list({ limit: 9 })).length, 2, 'the limit counts entries, not ids');
    await reopened.close();
  },
);

t.test(
  'a change without an entry is not made; a made change is answered even if its outcome can’t be written',
  async (t) => {
    let fails: 'begin' | 'end' | undefined;
    const failWithFullDisk = (what: string): never => {
      throw new StoreFailure(what, Object.assign(new Error('no room'), { code: 'SQLITE_FULL' }));
    };
    const gateway = await testGateway(t, {
      wrapStore: (store) =>
        withOverrides(store, {
          audit: withOverrides(store.audit, {
            begin: async (beginning) =>
              fails === 'begin' ? failWithFullDisk('begin') : await store.audit.begin(beginning),
            end: async (id, ending) => (fails === 'end' ? failWithFullDisk('end') : await store.audit.end(id, ending)),
          }),
        }),
    });
    fails = 'begin';
    t.match(await callOperator(gateway, 'POST', '/merchants', { name: 'Blue' }), { status: 503 });
    fails = 'end';
    t.match(await callOperator(gateway, 'POST', '/merchants', { name: 'Red' }), { status: 201 });
    fails = undefined;
    const { merchants } = (await callOperator(gateway, 'GET', '/merchants')).body as { merchants: { name: string }[] };
    t.same(
      merchants.map(({ name }) => name),
      [MERCHANT, 'Red'],
    );
    t.match(await entriesOf(gateway), [{ action: 'merchant.add', object: 'Red', outcome: 'begun' }]);
  },
);

t.test('work on a data folder without a gateway has an entry', async (t) => {
  const folder = tempFolder(t);
  const locations = { data: folder, keyFile: null };
  await (await openGateway(t, folder)).close();
  const who = { actor: 'owner', address: null, agent: 'lockgate/0', osUser: 'ada', token: null } as const;
  await rotateKey(locations, { who });
  await t.rejects(forgetSecrets(locations, { who }), { code: 'key-fits' });
  const run = await runLockgate(['config', 'rotate-key', '--data', folder]);
  t.equal(run.exit?.code, 0);
  const gateway = await openGateway(t, folder);
  t.match(await entriesOf(gateway), [
    { action: 'secrets.rotate-key', actor: 'owner', agent: /^lockgate\/\S+ \(cli\)$/, os_user: /./ },
    { action: 'secrets.forget', os_user: 'ada', outcome: 'refused', code: 'key-fits' },
    { action: 'secrets.rotate-key', os_user: 'ada', outcome: 'done', after: { secrets: 0 } },
  ]);
});

t.test('“lockgate audit” lists entries', async (t) => {
  const gateway = await testGateway(t);
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const command = (...args: string[]): Promise<CommandOutput> => runLockgate(args);
  t.match(await command('audit', ...gatewayFlags), {
    exit: { code: 0 },
    stdout: [],
    stderr: [/There is no entry yet/],
  });
  await callOperator(gateway, 'POST', '/devices', { mac: MAC });
  await command('device', 'set', MAC, '--simulated', ...gatewayFlags);
  await callOperator(gateway, 'POST', '/merchants', { name: MERCHANT });
  const listed = await command('audit', '--since', '1h', ...gatewayFlags);
  t.match(listed.stdout, [
    /^ID +WHEN +WHO +ACTION +OBJECT +OUTCOME +CHANGE +FROM$/,
    /^3 .*operator +merchant\.add +Amber +✗ refused \(merchant-exists\)/,
    /^2 .*operator \S+ +device\.set +A4:C1:38:F0:E1:D2 +✓ done .*simulated false → true.* 127\.0\.0\.1 lockgate\//,
    /^1 .*device\.add/,
  ]);
  const json = await command(
    'audit',
    '--action',
    'device',
    '--object',
    'a4c138f0e1d2',
    '--limit',
    '1',
    '--json',
    ...gatewayFlags,
  );
  t.match(JSON.parse(json.stdout.join('')), { entries: [{ id: 2, os_user: /./, agent: /\(cli\)$/ }] });
  t.match(await command('audit', '--since', 'x', ...gatewayFlags), {
    exit: { code: 2 },
    stderr: [/--since is "x": expected/],
  });
  const unreachableGateway = ['--gateway', 'http://127.0.0.1:9', '--token', 'x'];
  t.match(await command('audit', ...unreachableGateway), { exit: { code: 3 }, stderr: [/no gateway.*lockgate serve/] });
  const event = { at: '2026-11-20T06:00:00.000Z', event: 'audited', actor: 'operator', os_user: 'ada' };
  const line = eventLine({ ...event, action: 'key.revoke', object: 'k1', outcome: 'refused', code: 'no-such-key' });
  t.match(line, /audit key\.revoke k1 refused \(no-such-key\), by operator ada$/, 'tail shows it');
});
