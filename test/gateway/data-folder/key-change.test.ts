/**
 * The key that encrypts secrets: its file, what it encrypts, changing it, and replacing a lost key (quality.md §2). An
 * exception between two steps of a change simulates a kill there, since each step is on the disk when it ends.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { forgetSecrets, type KeyChangeStep, rotateKey } from '../../../gateway/data-folder/key-change.js';
import { Keys } from '../../../gateway/data-folder/keys.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { LOCKGATE, Program } from '../../helpers/cli/program.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const BEARER = 'Bearer merchants-own-token-0123456789';
const STEPS: readonly KeyChangeStep[] = ['key-made', 'secrets-changed', 'key-in-place'];

interface Site {
  readonly folder: string;
  readonly place: { readonly data: string; readonly keyFile: string | null };
  readonly receiver: TestReceiver;
  readonly webhookSecret: string;
  readonly lockSecret: string;
  readonly phoneSecret: string;
  readonly apiKey: string;
  readonly token: string;
  readonly session: string;
  sequence: number;
}

/** Made once and copied for each test, since hashing passwords and making accounts is slow. */
let made: Promise<Site> | undefined;

/** Makes a data folder with a lock, a phone, a URL with a header, and credentials for HTTP; no gateway runs on it. */
async function site(test: Teardown, keyFile: string | null = null): Promise<Site> {
  made ??= newSite(t);
  const at = await made;
  const folder = tempFolder(test);
  cpSync(at.folder, folder, { recursive: true });
  if (keyFile !== null) renameSync(path.join(folder, 'key'), keyFile);
  return { ...at, folder, place: { data: folder, keyFile } };
}

/** Makes such a data folder with new secrets and a new key. */
async function newSite(test: Teardown): Promise<Site> {
  const folder = tempFolder(test);
  const gateway = await openGateway(test, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(test);
  const headers = { Authorization: BEARER, 'X-Team': 'bikes' };
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url, headers });
  // The old secret stays in the store, sealed too.
  const { secret: webhookSecret } = await gateway.webhooks.settings.rotateSecret(url.id);
  const { secret: lockSecret } = await gateway.accounts.addDevice({ mac: MAC });
  const { secret: phoneSecret } = await gateway.accounts.devices.addPhone({ mac: MAC, name: 'Ada', expiresAtMs: null });
  const { key, text: apiKey } = await gateway.merchants.apiKeys.create(MERCHANT, 'shop');
  const token = await gateway.merchants.accessTokens.issue(key.id, ['pets:write']);
  const user = { id: 1, username: 'ada', password: 'lovelace' };
  await callMerchantApi(gateway, '/v2/user/createWithList', { key: apiKey, body: [user] });
  const login = await callMerchantApi(gateway, '/v2/user/login?username=ada&password=lovelace', { key: apiKey });
  const session = String(login.body).replace('logged in user session:', '');
  await gateway.close();
  const secrets = { webhookSecret, lockSecret, phoneSecret, apiKey, token, session };
  return { folder, place: { data: folder, keyFile: null }, receiver, ...secrets, sequence: 0 };
}

/** Checks that a gateway starts on the folder, accepts every credential, and signs webhooks verifiably. */
async function checkThatAllWorks(t: Tap, at: Site): Promise<void> {
  const gateway = await openGateway(t, at.folder, {}, { keyFile: at.place.keyFile });
  const before = at.receiver.requests.length;
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, at.lockSecret);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(++at.sequence));
  t.match(await delivered, [{ outcome: 'delivered' }]);
  const request = at.receiver.requests[before];
  t.equal(request?.headers.authorization, BEARER);
  t.doesNotThrow(() => new Webhook(at.webhookSecret).verify(request?.body ?? '', { ...request?.headers } as never));
  t.ok(await TestLock.connectPhone(t, gateway.mqttPort, MAC, '1', at.phoneSecret));
  t.same(await acceptedOverHttp(gateway, at), { apiKey: true, token: true, session: true });
  await gateway.close();
}

/** Which HTTP credentials are accepted. */
async function acceptedOverHttp({ merchants }: Gateway, { apiKey, token, session }: Site): Promise<object> {
  return {
    apiKey: (await merchants.apiKeys.check(apiKey)) !== undefined,
    token: (await merchants.accessTokens.check(token)) !== null,
    session: (await merchants.users.findSession(1, session)) !== null,
  };
}

type Tap = Teardown & Pick<typeof t, 'match' | 'same' | 'equal' | 'ok' | 'doesNotThrow'>;

function filesOf(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.startsWith('lockgate.sqlite'));
  return Buffer.concat(names.map((name) => readFileSync(path.join(folder, name)))).toString('latin1');
}

function keyOf(file: string): Keys {
  return new Keys(Buffer.from(readFileSync(file, 'utf8'), 'base64'));
}

function sealedSecrets(folder: string): Buffer[] {
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  const secrets = db.prepare(
    'SELECT secret_sealed FROM webhook_url UNION ALL SELECT secret_sealed FROM webhook_old_secret',
  );
  const found = secrets.pluck().all() as Buffer[];
  db.close();
  return found;
}

t.test('secrets and values of headers are not on the disk unencrypted', async (t) => {
  const at = await site(t);
  await checkThatAllWorks(t, at);
  const text = filesOf(at.folder);
  for (const secret of [BEARER, 'merchants-own-token', at.webhookSecret.slice(6), at.lockSecret, at.phoneSecret])
    t.notOk(text.includes(secret), secret.slice(0, 12));
  t.ok(text.includes('Authorization'), 'names are shown in lists');
});

t.test(
  'header values that an older version left unencrypted are sealed by the first start, also in the WAL',
  async (t) => {
    const at = await site(t);
    const db = openDurable(path.join(at.folder, 'lockgate.sqlite'));
    const headers = JSON.stringify({ Authorization: BEARER });
    db.prepare('UPDATE webhook_url SET headers = ?, headers_sealed = 0').run(headers);
    db.exec(`DELETE FROM fact WHERE name = 'key-id'`);
    db.close();
    t.ok(filesOf(at.folder).includes(BEARER));
    const gateway = await openGateway(t, at.folder);
    t.notOk(filesOf(at.folder).includes(BEARER), 'once it is ready');
    await gateway.close();
    await checkThatAllWorks(t, at);
  },
);

t.test(
  'after a change of the key every secret is sealed with the new key and all credentials stay valid',
  async (t) => {
    for (const keyFile of [null, path.join(tempFolder(t), 'elsewhere', 'lockgate.key')]) {
      if (keyFile !== null) mkdirSync(path.dirname(keyFile));
      const at = await site(t, keyFile);
      const file = keyFile ?? path.join(at.folder, 'key');
      t.equal(existsSync(path.join(at.folder, 'key')), keyFile === null, 'the key is where the setting says');
      const old = keyOf(file);
      t.match(await rotateKey(at.place), { count: 4, file }, 'two secrets and two headers');
      t.not(keyOf(file).id, old.id);
      t.equal(statSync(file).mode & 0o777, 0o600);
      for (const sealed of sealedSecrets(at.folder)) {
        t.throws(() => old.unseal(sealed), { code: 'wrong-key' });
        t.match(keyOf(file).unseal(sealed), /^whsec_/);
      }
      await checkThatAllWorks(t, at);
      await rotateKey(at.place);
      await checkThatAllWorks(t, at);
      t.same(
        readdirSync(path.dirname(file)).filter((name) => name.includes('key')),
        [path.basename(file)],
        'one key is left',
      );
    }
  },
);

t.test('an interrupted change of the key is completed or undone, after whichever step', async (t) => {
  for (const last of STEPS) {
    const at = await site(t);
    const cut = new Error('cut off');
    const onStep = (step: KeyChangeStep): void => {
      if (step === last) throw cut;
    };
    await t.rejects(rotateKey(at.place, { onStep }), cut);
    await checkThatAllWorks(t, at);
    t.same(
      readdirSync(at.folder).filter((name) => name.startsWith('key')),
      ['key'],
      `one key is left after ${last}`,
    );
    await t.rejects(rotateKey(at.place, { onStep }), cut);
    await rotateKey(at.place);
    await checkThatAllWorks(t, at);
  }
});

t.test('a wrong or missing key is refused, and the key of a running gateway can’t be changed', async (t) => {
  const at = await site(t);
  const other = await newSite(t);
  await t.rejects(forgetSecrets(at.place), { code: 'key-fits' });
  const gateway = await openGateway(t, at.folder);
  await t.rejects(rotateKey(at.place), { code: 'data-in-use' });
  await t.rejects(forgetSecrets(at.place), { code: 'data-in-use' });
  await gateway.close();
  const file = path.join(at.folder, 'key');
  const right = readFileSync(file);
  writeFileSync(file, readFileSync(path.join(other.folder, 'key')), { mode: 0o600 });
  const refusal = { code: 'wrong-key', message: /does not hold the key of this store.* from a backup/ };
  await t.rejects(openGateway(t, at.folder), refusal);
  await t.rejects(rotateKey(at.place), refusal);
  writeFileSync(file, 'nonsense', { mode: 0o600 });
  await t.rejects(openGateway(t, at.folder), { code: 'bad-key' });
  rmSync(file);
  await t.rejects(rotateKey(at.place), { code: 'key-missing' });
  await t.rejects(rotateKey({ data: path.join(at.folder, 'none'), keyFile: null }), { code: 'input-data' });
  writeFileSync(file, right, { mode: 0o600 });
  await checkThatAllWorks(t, at);
});

t.test(
  'replacing a lost key revokes every credential, lists what needs a new secret, and retains all events',
  async (t) => {
    for (const last of [...STEPS, undefined]) {
      const at = await site(t);
      await checkThatAllWorks(t, at);
      const key = path.join(at.folder, 'key');
      renameSync(key, path.join(tempFolder(t), 'lost'));
      await t.rejects(openGateway(t, at.folder), { code: 'key-missing' });
      const apiKeys = [{ id: at.apiKey.slice(4, 16), merchant: MERCHANT, name: 'shop' }];
      const urls = [{ id: 1, merchant: MERCHANT, headers: ['Authorization', 'X-Team'] }];
      const lost = { urls, locks: [MAC], apiKeys };
      const cut = new Error('cut off');
      const onStep = (step: KeyChangeStep): void => {
        if (step === last) throw cut;
      };
      if (last === undefined) t.match(await forgetSecrets(at.place), { ...lost, phones: [{ mac: MAC, name: 'Ada' }] });
      else {
        await t.rejects(forgetSecrets(at.place, { onStep }), cut);
        // Before the commit nothing is changed; after it, everything is.
        if (last === 'key-made') t.match(await forgetSecrets(at.place), lost);
        else await t.rejects(forgetSecrets(at.place), { code: 'key-fits' });
      }
      const gateway = await openGateway(t, at.folder);
      await t.rejects(TestLock.connect(t, gateway.mqttPort, MAC, at.lockSecret), 'the old secret is not accepted');
      t.same(await acceptedOverHttp(gateway, at), { apiKey: false, token: false, session: false });
      t.match(await gateway.merchants.apiKeys.list(), [{ revokedAtMs: Number }], 'the key is listed as revoked');
      t.match(await gateway.store.webhooks.find(1), { state: 'disabled', disabledWhy: /lost with the key/ });
      const lock = await TestLock.connect(t, gateway.mqttPort, MAC, await gateway.accounts.rotateLockSecret(MAC));
      await lock.send(testBytes(50));
      const { settings, redelivery } = gateway.webhooks;
      const { secret } = await settings.rotateSecret(1, 0);
      await settings.set(1, { state: 'active', setHeaders: { Authorization: BEARER } });
      const delivered = waitForEvents(gateway, 'delivery', 1);
      t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId: 1, events: 1 }]);
      await delivered;
      const request = at.receiver.requests.at(-1);
      t.match(request?.json, { sequence: 50 });
      t.doesNotThrow(() => new Webhook(secret).verify(request?.body ?? '', { ...request?.headers } as never));
      await gateway.close();
    }
  },
);

t.test('config rotate-key and forget-secrets: text output, JSON output, and failures', async (t) => {
  const at = await site(t);
  const run = async (...args: string[]) => {
    const program = new Program(t, process.execPath, [LOCKGATE, 'config', ...args, '--data', at.folder]);
    const { code } = await program.waitForExit();
    return { code, stdout: program.stdout.join('\n'), stderr: program.stderr.join('\n') };
  };
  const rotated = await run('rotate-key', '--json');
  t.match(rotated, { code: 0, stderr: '' });
  t.match(JSON.parse(rotated.stdout), { rotated: true, secrets: 4, key_file: path.join(at.folder, 'key') });
  t.match(await run('forget-secrets', '--yes'), { code: 3, stderr: /is this store's key: nothing is lost/ });
  rmSync(path.join(at.folder, 'key'));
  t.match(await run('rotate-key'), { code: 3, stderr: /key is missing/ });
  t.match(await run('forget-secrets'), { code: 2, stderr: /confirm with --yes/ });
  t.match(await run('forget-secrets', '--yes'), {
    code: 0,
    stdout:
      /webhook URL 1 \(Amber\) .*Authorization, X-Team\nlock A4:C1:38:00:00:01 .*\nphone Ada .*\nAPI key .* shop /,
  });
  for (const { stdout } of [rotated]) t.notMatch(stdout, /whsec_|lgs_/);
  t.match(await run('rotate-key'), { code: 0, stdout: /new key is in .*1 secret/, stderr: /Back it up/ });
});

t.test('a store without merchants accepts any key and any change of the key', async (t) => {
  for (const last of STEPS) {
    const folder = tempFolder(t);
    const place = { data: folder, keyFile: null };
    await (await openGateway(t, folder)).close();
    const cut = new Error('cut off');
    const onStep = (step: KeyChangeStep): void => {
      if (step === last) throw cut;
    };
    await t.rejects(rotateKey(place, { onStep }), cut);
    await (await openGateway(t, folder)).close();
    await rotateKey(place);
    rmSync(path.join(folder, 'key'));
    const gateway = await openGateway(t, folder);
    await gateway.accounts.addMerchant(MERCHANT);
    await gateway.close();
    await (await openGateway(t, folder)).close();
  }
});

t.test(
  'another store’s key in the place of the lost key is saved, after whichever step the change is interrupted',
  async (t) => {
    for (const last of [...STEPS, undefined]) {
      const at = await site(t);
      const [file, other] = [path.join(at.folder, 'key'), path.join((await newSite(t)).folder, 'key')];
      const text = readFileSync(other, 'utf8');
      writeFileSync(file, text, { mode: 0o600 });
      const onStep = (step: KeyChangeStep): void => {
        if (step === last) throw new Error('cut off');
      };
      await forgetSecrets(at.place, { onStep }).catch(() => undefined);
      if (last === 'key-made') await forgetSecrets(at.place);
      await (await openGateway(t, at.folder)).close();
      t.equal(readFileSync(`${file}.of-another-store`, 'utf8'), text, `after ${last}`);
    }
  },
);

/** Another disk than the data folder's, if there is one. */
const OTHER_DISK = '/dev/shm';

t.test(
  'a key that is a link to another disk is changed at the link’s target',
  { skip: existsSync(OTHER_DISK) ? false : 'no other disk' },
  async (t) => {
    const folder = mkdtempSync(path.join(OTHER_DISK, 'lockgate-test-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const at = await site(t);
    const [link, file] = [path.join(at.folder, 'key'), path.join(folder, 'the-key')];
    writeFileSync(file, readFileSync(link), { mode: 0o600 });
    rmSync(link);
    symlinkSync(file, link);
    const onStep = (step: KeyChangeStep): void => {
      if (step === 'secrets-changed') throw new Error('cut off');
    };
    await t.rejects(rotateKey(at.place, { onStep }), { message: 'cut off' });
    await checkThatAllWorks(t, at);
    await rotateKey(at.place);
    await checkThatAllWorks(t, at);
    t.ok(lstatSync(link).isSymbolicLink());
    t.same(readdirSync(folder), ['the-key']);
  },
);

t.test('a key file that can’t be read or written is refused in a sentence, and nothing is changed', async (t) => {
  const folder = tempFolder(t);
  mkdirSync(path.join(folder, 'file'));
  const at = await site(t);
  await t.rejects(rotateKey({ data: at.folder, keyFile: path.join(folder, 'file') }), {
    code: 'secret-file',
    message: /file can't be read or written: EISDIR/,
  });
  await checkThatAllWorks(t, at);
});
