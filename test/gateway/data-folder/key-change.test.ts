/**
 * The key with which the gateway encrypts ("seals") secrets: its file, what it encrypts, changing it, and replacing a
 * lost key. An exception between two steps of a change simulates a kill there, since each step is on the disk when it
 * ends.
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
import { tmpdir } from 'node:os';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { forgetSecrets, type KeyChangeStep, rotateKey } from '../../../gateway/data-folder/key-change.js';
import { Keys } from '../../../gateway/data-folder/keys.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { runLockgate } from '../../helpers/cli/program.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { root } from '../../helpers/house/our-files.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

/** In a new store, the first merchant and the first webhook URL have this id. */
const FIRST_ID = 1;
const MAC = testMac();
/** A header that the merchant wants with its webhooks; stored encrypted. */
const BEARER = 'Bearer merchants-own-token-0123456789';
/** The steps of a change of the key, after each of which a cut is tested. */
const STEPS: readonly KeyChangeStep[] = ['key-made', 'secrets-changed', 'key-in-place'];

/** A data folder, and the credentials that its gateway accepts. */
interface FolderSetup {
  readonly folder: string;
  readonly locations: { readonly data: string; readonly keyFile: string | null };
  readonly receiver: TestReceiver;
  readonly webhookSecret: string;
  readonly lockSecret: string;
  readonly phoneSecret: string;
  readonly apiKey: string;
  readonly token: string;
  readonly session: string;
  /** The sequence number of the lock's last ping. */
  sequence: number;
}

/** Made once and copied for each test, since hashing passwords and making accounts is slow. */
let createdFolder: Promise<FolderSetup> | undefined;

/**
 * A copy of a data folder with a lock, a phone, a URL with headers, and credentials for HTTP; no gateway runs on it.
 */
async function copyFolder(test: Teardown, keyFile: string | null = null): Promise<FolderSetup> {
  createdFolder ??= createFolder(t);
  const setup = await createdFolder;
  const folder = tempFolder(test);
  cpSync(setup.folder, folder, { recursive: true });
  if (keyFile !== null) renameSync(path.join(folder, 'key'), keyFile);
  return { ...setup, folder, locations: { data: folder, keyFile } };
}

/** Makes a data folder like that, with new secrets and a new key. */
async function createFolder(test: Teardown): Promise<FolderSetup> {
  const folder = tempFolder(test);
  const gateway = await openGateway(test, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(test);
  const headers = { Authorization: BEARER, 'X-Team': 'bikes' };
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url, headers });
  // The store has the old secret too until it expires, also sealed.
  const { secret: webhookSecret } = await gateway.webhooks.settings.rotateSecret(url.id);
  const { secret: lockSecret } = await gateway.accounts.addDevice({ mac: MAC });
  const { secret: phoneSecret } = await gateway.accounts.devices.addPhone({ mac: MAC, name: 'Ada', expiresAtMs: null });
  const { key, text: apiKey } = await gateway.merchants.apiKeys.create(MERCHANT, 'shop');
  const { token } = await gateway.merchants.accessTokens.issue(key, ['pets:write']);
  const user = { id: 1, username: 'ada', password: 'lovelace' };
  await callMerchantApi(gateway, '/v2/user/createWithList', { key: apiKey, body: [user] });
  const login = await callMerchantApi(gateway, '/v2/user/login?username=ada&password=lovelace', { key: apiKey });
  const session = String(login.body).replace('logged in user session:', '');
  await gateway.close();
  const secrets = { webhookSecret, lockSecret, phoneSecret, apiKey, token, session };
  return { folder, locations: { data: folder, keyFile: null }, receiver, ...secrets, sequence: 0 };
}

/** Checks that a gateway starts on the folder, accepts every credential, and signs webhooks verifiably. */
async function assertAllWorks(t: Assertions, setup: FolderSetup): Promise<void> {
  const gateway = await openGateway(t, setup.folder, {}, { keyFile: setup.locations.keyFile });
  const before = setup.receiver.requests.length;
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, setup.lockSecret);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(++setup.sequence));
  t.match(await delivered, [{ outcome: 'delivered' }]);
  const request = setup.receiver.requests[before];
  t.equal(request?.headers.authorization, BEARER);
  const headers = request?.headers as Record<string, string>;
  t.doesNotThrow(() => new Webhook(setup.webhookSecret).verify(request?.body ?? '', headers));
  t.ok(await TestLock.connectPhone(t, gateway.mqttPort, MAC, '1', setup.phoneSecret));
  t.same(await acceptedOverHttp(gateway, setup), { apiKey: true, token: true, session: true });
  await gateway.close();
}

/** Which HTTP credentials are accepted. */
async function acceptedOverHttp({ merchants }: Gateway, { apiKey, token, session }: FolderSetup): Promise<object> {
  return {
    apiKey: (await merchants.apiKeys.check(apiKey)) !== undefined,
    token: (await merchants.accessTokens.check(token)) !== null,
    session: (await merchants.users.findSession(FIRST_ID, session)) !== null,
  };
}

/** The test's assertions that these functions use. */
type Assertions = Teardown & Pick<typeof t, 'match' | 'same' | 'equal' | 'ok' | 'doesNotThrow'>;

/** The bytes of all files of the store, as text. */
function storeFilesText(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.startsWith('lockgate.sqlite'));
  return Buffer.concat(names.map((name) => readFileSync(path.join(folder, name)))).toString('latin1');
}

/** The key in a file. */
function readKey(file: string): Keys {
  return new Keys(Buffer.from(readFileSync(file, 'utf8'), 'base64'));
}

/** The webhook secrets in a store, as they are stored. */
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
  const setup = await copyFolder(t);
  await assertAllWorks(t, setup);
  const storeText = storeFilesText(setup.folder);
  for (const secret of [
    BEARER,
    'merchants-own-token',
    setup.webhookSecret.slice('whsec_'.length),
    setup.lockSecret,
    setup.phoneSecret,
  ])
    t.notOk(storeText.includes(secret), secret.slice(0, 12));
  t.ok(storeText.includes('Authorization'), 'names are shown in lists');
});

t.test(
  'header values that an older version left unencrypted are sealed by the first start, also in the WAL',
  async (t) => {
    const setup = await copyFolder(t);
    const db = openDurable(path.join(setup.folder, 'lockgate.sqlite'));
    const headers = JSON.stringify({ Authorization: BEARER });
    db.prepare('UPDATE webhook_url SET headers = ?, headers_sealed = 0').run(headers);
    // That version did not note which key the store's secrets are sealed with.
    db.exec(`DELETE FROM fact WHERE name = 'key-id'`);
    db.close();
    t.ok(storeFilesText(setup.folder).includes(BEARER));
    const gateway = await openGateway(t, setup.folder);
    t.notOk(storeFilesText(setup.folder).includes(BEARER), 'sealed when the gateway is ready');
    await gateway.close();
    await assertAllWorks(t, setup);
  },
);

t.test(
  'after a change of the key every secret is sealed with the new key and all credentials stay valid',
  async (t) => {
    for (const keyFile of [null, path.join(tempFolder(t), 'elsewhere', 'lockgate.key')]) {
      if (keyFile !== null) mkdirSync(path.dirname(keyFile));
      const setup = await copyFolder(t, keyFile);
      const file = keyFile ?? path.join(setup.folder, 'key');
      t.equal(existsSync(path.join(setup.folder, 'key')), keyFile === null, 'the key is where the setting says');
      const oldKeys = readKey(file);
      t.match(await rotateKey(setup.locations), { count: 4, file }, 'two secrets and two headers');
      t.not(readKey(file).id, oldKeys.id);
      t.equal(statSync(file).mode & 0o777, 0o600);
      for (const sealed of sealedSecrets(setup.folder)) {
        t.throws(() => oldKeys.unseal(sealed), { code: 'wrong-key' });
        t.match(readKey(file).unseal(sealed), /^whsec_/);
      }
      await assertAllWorks(t, setup);
      await rotateKey(setup.locations);
      await assertAllWorks(t, setup);
      t.same(
        readdirSync(path.dirname(file)).filter((name) => name.includes('key')),
        [path.basename(file)],
        'one key is left',
      );
    }
  },
);

t.test('an interrupted change of the key is completed or undone, after whichever step', async (t) => {
  for (const lastStep of STEPS) {
    const setup = await copyFolder(t);
    const interruption = new Error('cut off');
    const onStep = (step: KeyChangeStep): void => {
      if (step === lastStep) throw interruption;
    };
    await t.rejects(rotateKey(setup.locations, { onStep }), interruption);
    await assertAllWorks(t, setup);
    t.same(
      readdirSync(setup.folder).filter((name) => name.startsWith('key')),
      ['key'],
      `one key is left after ${lastStep}`,
    );
    await t.rejects(rotateKey(setup.locations, { onStep }), interruption);
    await rotateKey(setup.locations);
    await assertAllWorks(t, setup);
  }
});

t.test('a wrong or missing key is refused, and the key of a running gateway can’t be changed', async (t) => {
  const setup = await copyFolder(t);
  const other = await createFolder(t);
  await t.rejects(forgetSecrets(setup.locations), { code: 'key-fits' }, 'the key is not lost');
  const gateway = await openGateway(t, setup.folder);
  await t.rejects(rotateKey(setup.locations), { code: 'data-in-use' });
  await t.rejects(forgetSecrets(setup.locations), { code: 'data-in-use' });
  await gateway.close();
  const file = path.join(setup.folder, 'key');
  const rightKey = readFileSync(file);
  writeFileSync(file, readFileSync(path.join(other.folder, 'key')), { mode: 0o600 });
  const refusal = { code: 'wrong-key', message: /does not hold the key of this store.* from a backup/ };
  await t.rejects(openGateway(t, setup.folder), refusal);
  await t.rejects(rotateKey(setup.locations), refusal);
  writeFileSync(file, 'nonsense', { mode: 0o600 });
  await t.rejects(openGateway(t, setup.folder), { code: 'bad-key' });
  rmSync(file);
  await t.rejects(rotateKey(setup.locations), { code: 'key-missing' });
  await t.rejects(rotateKey({ data: path.join(setup.folder, 'none'), keyFile: null }), { code: 'input-data' });
  writeFileSync(file, rightKey, { mode: 0o600 });
  await assertAllWorks(t, setup);
});

t.test(
  'replacing a lost key revokes every credential, lists what needs a new secret, and retains all events',
  async (t) => {
    for (const lastStep of [...STEPS, undefined]) {
      const setup = await copyFolder(t);
      await assertAllWorks(t, setup);
      const key = path.join(setup.folder, 'key');
      renameSync(key, path.join(tempFolder(t), 'lost'));
      await t.rejects(openGateway(t, setup.folder), { code: 'key-missing' });
      // A key is `lgk_`, its id of 12 characters, and its secret.
      const apiKeys = [{ id: setup.apiKey.slice(4, 16), merchant: MERCHANT, name: 'shop' }];
      const urls = [{ id: 1, merchant: MERCHANT, headers: ['Authorization', 'X-Team'] }];
      const lost = { urls, locks: [MAC], apiKeys };
      const interruption = new Error('cut off');
      const onStep = (step: KeyChangeStep): void => {
        if (step === lastStep) throw interruption;
      };
      if (lastStep === undefined)
        t.match(await forgetSecrets(setup.locations), { ...lost, phones: [{ mac: MAC, name: 'Ada' }] });
      else {
        await t.rejects(forgetSecrets(setup.locations, { onStep }), interruption);
        // Before the commit nothing is changed; after it, everything is.
        if (lastStep === 'key-made') t.match(await forgetSecrets(setup.locations), lost);
        else await t.rejects(forgetSecrets(setup.locations), { code: 'key-fits' });
      }
      const gateway = await openGateway(t, setup.folder);
      await t.rejects(TestLock.connect(t, gateway.mqttPort, MAC, setup.lockSecret), 'the old secret is not accepted');
      t.same(await acceptedOverHttp(gateway, setup), { apiKey: false, token: false, session: false });
      t.match(await gateway.merchants.apiKeys.list(), [{ revokedAtMs: Number }], 'the key is listed as revoked');
      t.match(await gateway.store.webhooks.find(FIRST_ID), { state: 'disabled', disabledWhy: /lost with the key/ });
      const lock = await TestLock.connect(t, gateway.mqttPort, MAC, await gateway.accounts.rotateLockSecret(MAC));
      await lock.send(testBytes(50));
      const { settings, redelivery } = gateway.webhooks;
      const { secret } = await settings.rotateSecret(FIRST_ID, 0);
      await settings.set(FIRST_ID, { state: 'active', setHeaders: { Authorization: BEARER } });
      const delivered = waitForEvents(gateway, 'delivery', 1);
      t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId: 1, events: 1 }]);
      await delivered;
      const request = setup.receiver.requests.at(-1);
      t.match(request?.json, { sequence: 50 });
      const headers = request?.headers as Record<string, string>;
      t.doesNotThrow(() => new Webhook(secret).verify(request?.body ?? '', headers));
      await gateway.close();
    }
  },
);

t.test('config rotate-key and forget-secrets: text output, JSON output, and failures', async (t) => {
  const setup = await copyFolder(t);
  const run = async (...args: string[]) => {
    const { exit, stdout, stderr } = await runLockgate(['config', ...args, '--data', setup.folder]);
    return { code: exit.code, stdout: stdout.join('\n'), stderr: stderr.join('\n') };
  };
  const rotated = await run('rotate-key', '--json');
  t.match(rotated, { code: 0, stderr: '' });
  t.match(JSON.parse(rotated.stdout), { rotated: true, secrets: 4, key_file: path.join(setup.folder, 'key') });
  t.match(await run('forget-secrets', '--yes'), { code: 3, stderr: /is this store's key: nothing is lost/ });
  rmSync(path.join(setup.folder, 'key'));
  t.match(await run('rotate-key'), { code: 3, stderr: /key is missing/ });
  t.match(await run('forget-secrets'), { code: 2, stderr: /confirm with --yes/ });
  t.match(await run('forget-secrets', '--yes'), {
    code: 0,
    stdout:
      /webhook URL 1 \(Amber\) .*Authorization, X-Team\nlock A4:C1:38:00:00:01 .*\nphone Ada .*\nAPI key .* shop /,
  });
  t.notMatch(rotated.stdout, /whsec_|lgs_/, 'no secret is printed');
  // The one secret is the URL's: forget-secrets gave it a random one, since a URL must have a secret.
  t.match(await run('rotate-key'), { code: 0, stdout: /new key is in .*1 secret/, stderr: /Back it up/ });
});

// It has no secrets that another key could not unseal.
t.test('a store without merchants accepts any key and any change of the key', async (t) => {
  for (const lastStep of STEPS) {
    const folder = tempFolder(t);
    const locations = { data: folder, keyFile: null };
    await (await openGateway(t, folder)).close();
    const interruption = new Error('cut off');
    const onStep = (step: KeyChangeStep): void => {
      if (step === lastStep) throw interruption;
    };
    await t.rejects(rotateKey(locations, { onStep }), interruption);
    await (await openGateway(t, folder)).close();
    await rotateKey(locations);
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
    for (const lastStep of [...STEPS, undefined]) {
      const setup = await copyFolder(t);
      const [file, other] = [path.join(setup.folder, 'key'), path.join((await createFolder(t)).folder, 'key')];
      const otherKey = readFileSync(other, 'utf8');
      writeFileSync(file, otherKey, { mode: 0o600 });
      const onStep = (step: KeyChangeStep): void => {
        if (step === lastStep) throw new Error('cut off');
      };
      // It fails with the error of the cut.
      await forgetSecrets(setup.locations, { onStep }).catch(() => undefined);
      if (lastStep === 'key-made') await forgetSecrets(setup.locations);
      await (await openGateway(t, setup.folder)).close();
      t.equal(readFileSync(`${file}.of-another-store`, 'utf8'), otherKey, `after ${lastStep}`);
    }
  },
);

/**
 * A folder on another disk than the data folders, so that files can't be renamed from them to it: on Linux, memory
 * mounted as a disk, or the clone's if the temporary files are in memory.
 */
const OTHER_DISK = ['/dev/shm', path.join(root, 'dist')].find(
  (folder) => existsSync(folder) && statSync(folder).dev !== statSync(tmpdir()).dev,
);

t.test(
  'a key that is a link to another disk is changed at the link’s target',
  { skip: OTHER_DISK ? false : 'no other disk' },
  async (t) => {
    const folder = mkdtempSync(path.join(OTHER_DISK as string, 'lockgate-test-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const setup = await copyFolder(t);
    const [link, file] = [path.join(setup.folder, 'key'), path.join(folder, 'the-key')];
    writeFileSync(file, readFileSync(link), { mode: 0o600 });
    rmSync(link);
    symlinkSync(file, link);
    const onStep = (step: KeyChangeStep): void => {
      if (step === 'secrets-changed') throw new Error('cut off');
    };
    await t.rejects(rotateKey(setup.locations, { onStep }), { message: 'cut off' });
    await assertAllWorks(t, setup);
    await rotateKey(setup.locations);
    await assertAllWorks(t, setup);
    t.ok(lstatSync(link).isSymbolicLink(), 'the link itself stays');
    t.same(readdirSync(folder), ['the-key']);
  },
);

t.test('a key file that can’t be read or written is refused in a sentence, and nothing is changed', async (t) => {
  const folder = tempFolder(t);
  // A folder is no key file.
  mkdirSync(path.join(folder, 'file'));
  const setup = await copyFolder(t);
  await t.rejects(rotateKey({ data: setup.folder, keyFile: path.join(folder, 'file') }), {
    code: 'secret-file',
    message: /file can't be read or written: EISDIR/,
  });
  await assertAllWorks(t, setup);
});
