/** The settings file: what `config --write` writes, what `serve --config` reads, and what SIGHUP rereads. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readConfig } from '../../gateway/config-reader.js';
import { resolveSettings, settingName } from '../../gateway/resolved-settings.js';
import { SETTINGS } from '../../gateway/settings.js';
import { readSettingsFile, settingsFileText } from '../../gateway/settings-file.js';
import { LOCKGATE, lockgateJson, Program, runLockgate } from '../helpers/cli/program.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** A settings file with this text. */
function fileOf(test: Test, text: string): string {
  const file = path.join(tempFolder(test), 'lockgate.yaml');
  writeFileSync(file, text);
  return file;
}

/** The settings of a file, checked, without flags and environment. */
const configOf = (file: string) => readConfig(resolveSettings({}, {}, readSettingsFile(file)));

t.test('a written file has every setting with its meaning, and reads back the same', async (t) => {
  const defaults = settingsFileText(resolveSettings({}, {}));
  for (const setting of SETTINGS) {
    t.match(defaults, new RegExp(`^# ${settingName(setting)}: `, 'm'), setting.flag);
    t.ok(defaults.includes(`# ${setting.meaning}\n`), setting.key);
  }
  t.equal(readSettingsFile(fileOf(t, defaults)).size, 0, 'defaults are comments');
  // Some of these texts mean something else in YAML, unless they are quoted: a comment, a number, a list.
  const flags = {
    ...{ mqttPort: '0', keepDays: '90', httpCorsOrigin: 'https://a.example,https://b.example', logLevel: 'warn' },
    ...{ mapTiles: 'https://tiles.example/{z}/{x}/{y}.png', mapAttribution: '© "A": #1', data: '/srv/my data' },
    ...{ merchantPets: '007', trustedProxies: 'fd00::/8', operatorHost: '::1' },
  };
  const written = settingsFileText(resolveSettings(flags, {}));
  const read = resolveSettings({}, {}, readSettingsFile(fileOf(t, written)));
  t.same(
    Object.fromEntries(read.filter(({ source }) => source === 'file').map((each) => [each.setting.key, each.text])),
    flags,
  );
});

t.test('flags override the environment, which overrides the file, which overrides defaults', async (t) => {
  const file = readSettingsFile(fileOf(t, 'mqtt_port: 1\nhttp_port: 2\noperator_port: 3\nkeep_days:\n'));
  const settings = resolveSettings({ mqttPort: '11' }, { LOCKGATE_HTTP_PORT: '22', LOCKGATE_MQTT_PORT: '33' }, file);
  const find = (key: string) => settings.find(({ setting }) => setting.key === key);
  t.match(find('mqttPort'), { text: '11', source: 'flag' });
  t.match(find('httpPort'), { text: '22', source: 'environment' });
  t.match(find('operatorPort'), { text: '3', source: 'file' });
  t.match(find('keepDays'), { text: '400', source: 'default' }, 'an empty value counts as missing');
});

t.test('values may be lists or quoted, and a file may be empty', async (t) => {
  const text =
    'trusted_proxies:\n  - 10.0.0.0/8\n  - "fd00::/8"\nlog_level: "warn"\nallow_webhook_range: [127.0.0.0/8]\n';
  t.match(configOf(fileOf(t, text)), {
    trustedProxies: { length: 2 },
    logLevel: 'warn',
    allowWebhookRange: { length: 1 },
  });
  for (const empty of ['', '# only a comment\n', '---\n'])
    t.equal(configOf(fileOf(t, empty)).keepDays, 400, 'the default');
});

t.test('an error names file, line, setting and what is expected', async (t) => {
  const wrong: readonly (readonly [text: string, message: RegExp])[] = [
    ['keep_days: 90\n\nmqtt_port: x\n', /lockgate\.yaml, line 3: mqtt_port is "x": expected a port, 0 to 65535$/],
    ['mqtt_prot: 1\n', /lockgate\.yaml, line 1: "mqtt_prot" is not a setting\. Did you mean mqtt_port\?$/],
    ['mqtt_port: 1\nmqtt_port: 2\n', /lockgate\.yaml, line 2: Map keys must be unique$/],
    ['mqtt_port: "1\n', /lockgate\.yaml, line \d: Missing closing "quote$/],
    ['mqtt_port:\n  a: 1\n', /line 1: mqtt_port has an unsuitable value: expected one value, or a list$/],
    ['- mqtt_port\n', /line 1: expected lines such as keep_days: 90$/],
    ['\nmqtt_tls_cert: a.pem\n', /a TLS certificate is set by \S+, line 2: mqtt_tls_cert, but no key: TLS needs both$/],
    ['allow_webhook_range: here\n', /line 1: allow_webhook_range: .*here/],
    ['store: mysql://ann:secret@db\n', /line 1: store is not the URL of a database: expected [^:]*postgres:/],
    // The URL may hold a password, so it is not in the message either.
    ['notify_url: secret\n', /line 1: notify_url is no http or https URL without/],
    ['merchant_pets: -1\n', /line 1: merchant_pets is "-1": expected a whole number/],
    [`# ${'x'.repeat(300_000)}\n`, /is larger than 256 KiB: expected a few lines of YAML$/],
  ];
  for (const [text, message] of wrong) {
    const file = fileOf(t, text);
    t.throws(() => configOf(file), { message }, text.slice(0, 40));
    t.throws(() => configOf(file), { message: /^(?!.*secret)/ }, 'without secrets');
  }
  t.throws(() => configOf('/nowhere/lockgate.yaml'), {
    message: /^the settings file \/nowhere\/\S+ can't be read: ENOENT/,
  });
});

t.test('config --write makes a private file without secrets, and config --config shows it', async (t) => {
  const file = path.join(tempFolder(t), 'lockgate.yaml');
  const secrets = ['--store', 'postgres://ann:hunter2@db/locks', '--notify-url', 'https://chat.example/hunter3'];
  const written = await runLockgate(['config', '--write', file, '--keep-days', '90', ...secrets]);
  t.match(written, {
    exit: { code: 0 },
    stdout: [/^Wrote .*lockgate serve --config/],
    stderr: [/: store, notify_url\.$/],
  });
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.notMatch(readFileSync(file, 'utf8'), /hunter/);
  t.match(readFileSync(file, 'utf8'), /^keep_days: 90$/m);
  const again = await runLockgate(['config', '--write', file]);
  t.match(again, { exit: { code: 2 }, stderr: [/can't be written: it exists; name a new file$/] });
  const shown = await lockgateJson<{ settings: { key: string }[] }>(['config', '--config', file]);
  t.match(
    shown.settings.find(({ key }) => key === 'keep_days'),
    { value: '90', source: 'file' },
  );
  const piped = await runLockgate(['config', '--write', '-', '--keep-days', '90']);
  t.match(piped.stdout.join('\n'), /^keep_days: 90$/m);
  t.match(await lockgateJson(['config', '--write', '-', '--keep-days', '90']), {
    text: /^keep_days: 90$/m,
    left_out: [],
  });
});

t.test(
  'serve reads the file, and SIGHUP rereads it: the log’s level at once, the rest at the next start',
  async (t) => {
    const folder = tempFolder(t);
    const file = path.join(folder, 'lockgate.yaml');
    const ports = 'mqtt_port: 0\nhttp_port: 0\noperator_port: 0\nlog_format: json\n';
    writeFileSync(file, `${ports}data: ${folder}/data\nkeep_days: 90\nlog_level: warn\n`);
    const environment = { LOCKGATE_CONFIG: file };
    const serve = new Program(t, process.execPath, [LOCKGATE, 'serve'], environment);
    await serve.waitForLine(/Next:/);
    const inUse = async () => {
      const { settings } = await lockgateJson<{ settings: { key: string; given: string }[] }>([
        'config',
        '--data',
        `${folder}/data`,
      ]);
      const givenOf = (name: string) => settings.find(({ key }) => key === name)?.given;
      return { keepDays: givenOf('keep_days'), logLevel: givenOf('log_level') };
    };
    t.same(await inUse(), { keepDays: '90', logLevel: 'warn' });

    writeFileSync(file, `${ports}data: ${folder}/data\nkeep_days: 91\nlog_level: debug\n`);
    serve.kill('SIGHUP');
    await serve.waitForLine(/"event":"settings-wait","settings":\["keep_days"\]/, 'stderr');
    t.ok(
      serve.stderr.some((line) => line.includes('"event":"settings-read"')),
      'the line has the level info',
    );
    t.same(await inUse(), { keepDays: '90', logLevel: 'debug' });

    writeFileSync(file, `${ports}data: ${folder}/data\nkeep_days: many\n`);
    serve.kill('SIGHUP');
    const wrong = await serve.waitForLine(/"event":"settings-wrong"/, 'stderr');
    t.match(
      JSON.parse(wrong).msg,
      /lockgate\.yaml, line 6: keep_days is "many": expected days.*; the previous settings stay/,
    );
    t.same(await inUse(), { keepDays: '90', logLevel: 'debug' });
    serve.kill('SIGTERM');
    t.same(await serve.waitForExit(), { code: 0, signal: null });
    const refused = new Program(t, process.execPath, [LOCKGATE, 'serve', '--config', file]);
    t.same(await refused.waitForExit(), { code: 2, signal: null });
    t.match(refused.stderr, [/^lockgate: \S+lockgate\.yaml, line 6: keep_days is "many"/]);
  },
);
