/**
 * The examples in README.md and docs/ work: bash runs each document's examples in order, against a gateway for that
 * document; the pages of the guide share one. The failure names the line of the example. Other tests cover docs/http.md
 * (document.test.ts), the programs in docs/webhooks.md (docs.test.ts) and proto/README.md (readme.test.ts).
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import t, { type Test } from 'tap';
import { addressFile } from '../../cli/client.js';
import { makeProgram } from '../../cli/program.js';
import type { Gateway } from '../../gateway/gateway.js';
import { ManualClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../helpers/gateway/test-receiver.js';
import {
  exampleLines,
  type LineException,
  type Replacement,
  runLines,
  unusedExceptions,
} from '../helpers/house/document-run.js';
import { root } from '../helpers/house/our-files.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.setTimeout(120_000);

/** Programs that the examples call and that this machine lacks. The type of `error` has no `code`. */
const MISSING = ['bash', 'curl', 'jq', 'xxd', 'mosquitto_pub'].filter((name) => {
  return (spawnSync(name, ['--help']).error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
});
const skip = MISSING.length > 0 ? `${MISSING.join(', ')} not installed` : false;

/** The environment of a reader who follows a document. */
interface Reader {
  readonly gateway: Gateway;
  readonly receiver: TestReceiver;
  readonly folder: string;
}

/** Sets up a reader's folder, with a gateway on `data` and none on `closed`, and a webhook receiver. */
async function setUpReader(test: Test): Promise<Reader> {
  const folder = tempFolder(test);
  const data = tempFolder(test);
  symlinkSync(data, path.join(folder, 'data'));
  for (const name of ['backups', 'closed']) mkdirSync(path.join(folder, name));
  // The gateway has usage of November, which is complete.
  const before = new ManualClock(Date.UTC(2026, 10, 15));
  for (const each of [data, path.join(folder, 'closed')])
    await (await openGateway(test, each, { usageClock: before })).close();
  const gateway = await openGateway(test, data, { usageClock: new ManualClock(Date.UTC(2026, 11, 2)) });
  writeFileSync(addressFile(data), `http://127.0.0.1:${gateway.operatorPort}\n`);
  const receiver = await testReceiver(test);
  writeFileSync(path.join(folder, 'locks.csv'), 'mac\nA4:C1:38:F0:E1:E1\nA4:C1:38:F0:E1:E2\n');
  // Its example is only parsed, so the route may be empty.
  writeFileSync(path.join(folder, 'my-ride.gpx'), '');
  return { gateway, receiver, folder };
}

/**
 * Replacements of text that differs for each reader. `last_printed` is a shell function of runLines: it prints the last
 * secret or id that a command has printed and that has this prefix.
 */
function replacementsFor({ gateway, receiver }: Reader): Replacement[] {
  return [
    ['127.0.0.1:8080', `127.0.0.1:${gateway.httpPort}`],
    ['127.0.0.1:8081', `127.0.0.1:${gateway.operatorPort}`],
    ['-p 1883', `-p ${gateway.mqttPort}`],
    ['http://127.0.0.1:9000/', receiver.url],
    [/'([^']*)(lgu)_…'/, '"$1$(last_printed $2)"'],
    [/\b(lgs|lgk|lgt|whsec|evt)_…/, '$(last_printed $1)'],
    [/\bevt_A4C138F0E1D2_[\w]+/, '$(last_printed evt)'],
    [/\b(finding|command):\d+/, '$1:1'],
    // Slow examples run with smaller numbers.
    [/(webhook trigger \w+ [\w:]+)(?![\w:]| --fast)/, '$1 --fast'],
    ['--locks 100 --days 7', '--locks 4 --days 1'],
    ['--locks 10 --days 2', '--locks 4 --days 1'],
    ['--locks 500 --days 30', '--locks 30 --days 1'],
    ['--locks 5 --days 7', '--locks 2 --days 1'],
  ];
}

const ENDLESS = 'It runs until Ctrl-C; other tests run it.';
/** Lines of any document that are not run. Of a parsed line only the flags and values are checked. */
const EXCEPTIONS: readonly LineException[] = [
  { line: /^npm |^npm$/, how: 'left out', reason: 'It runs this test, or takes minutes.' },
  { line: /lockgate (serve|tail|webhook listen)\b/, how: 'parsed', reason: ENDLESS },
  { line: /--watch\b/, how: 'parsed', reason: ENDLESS },
  { line: /lockgate (trace record|sim shadow)/, how: 'parsed', reason: ENDLESS },
  { line: /lockgate sim run (?!--virtual)/, how: 'parsed', reason: ENDLESS },
];

/** Runs the examples of documents that a reader reads one after another. Returns those that failed. */
async function failuresOf(
  test: Test,
  files: readonly string[],
  reader: Reader,
  {
    exceptions,
    replacements,
  }: {
    readonly exceptions: readonly LineException[];
    readonly replacements: readonly Replacement[];
  },
): Promise<string[]> {
  const documents = files.map((file) => exampleLines(readFileSync(path.join(root, file), 'utf8')));
  const lines = documents.flat();
  test.ok(
    lines.some((line) => line !== ''),
    `${files} have examples`,
  );
  const starts = documents.map((_document, index) => documents.slice(0, index).flat().length);
  /** The file and the line in it of a line of all documents joined. */
  const placeOf = (line: number): string => {
    const index = starts.filter((start) => start < line).length - 1;
    return `${files[index]}:${line - (starts[index] ?? 0)}`;
  };
  test.same(unusedExceptions(lines, exceptions), [], 'each exception matches a line of the documents');
  const failed = await runLines(test, lines, {
    exceptions: [...exceptions, ...EXCEPTIONS],
    replacements: [...replacements, ...replacementsFor(reader)],
    environment: { folder: reader.folder, environment: { LOCKGATE_DATA: path.join(reader.folder, 'data') } },
  });
  return failed.map(({ line, code, text }) => `${placeOf(line)}: ${text} => ${code}`);
}

const GUIDE_EXCEPTIONS: readonly LineException[] = [
  {
    line: /--ca our-ca\.pem/,
    how: 'parsed',
    reason: 'This page has no certificate of an authority; limits.test.ts does it.',
  },
  { line: /webhook remove 1/, how: 'parsed', reason: 'Later examples need the URL.' },
  {
    line: /trace (check|certify) day/,
    how: 'parsed',
    reason: 'mosquitto_pub sends no close-connection ping, so the trace of this page breaks a rule.',
  },
  { line: /trace import/, how: 'parsed', reason: 'This page has no recording; test/cli/recordings does it.' },
  { line: /device rejudge/, how: 'parsed', reason: 'The lock of this page is judged.' },
  {
    line: /db accept/,
    how: 'parsed',
    reason: 'The store of this page is intact; test/gateway/data-folder/data-folder.test.ts does it.',
  },
  { line: /trace why day/, how: 'parsed', reason: 'The trace of this page is short; other tests run it.' },
  { line: /trace shrink/, how: 'parsed', reason: 'Nothing is wrong with the lock of this page.' },
  { line: /trace diff/, how: 'parsed', reason: 'This page has only one trace; other tests run it.' },
  { line: /unlock --wait/, how: 'parsed', reason: 'It waits two minutes for a lock that is not connected.' },
  { line: /why finding:12/, how: 'parsed', reason: 'Nothing is wrong with the lock of this page.' },
  { line: /notices test/, how: 'parsed', reason: 'The gateway of this page has no notify URL.' },
  { line: /notices read 12 13/, how: 'parsed', reason: 'There are no such notices yet.' },
  {
    line: /^openssl/,
    how: 'left out',
    reason: 'A second gateway; test/gateway/mqtt/connection-guard-tls.test.ts does it.',
  },
  { line: /^ {2}-addext/, how: 'left out', reason: 'It continues the line before.' },
  { line: /--cafile cert\.pem/, how: 'left out', reason: 'It needs the second gateway above.' },
  { line: /sim plan --locks 20000/, how: 'parsed', reason: 'It takes some seconds; the smaller one is run.' },
  {
    line: /^ {2}--per-mb 0\.12 --per-sim 0\.80 --currency EUR$/,
    how: 'left out',
    reason: 'It continues the line before.',
  },
];

const GUIDE_REPLACEMENTS: readonly Replacement[] = [
  [/(device (?:set|remove|erase)) A4:C1:38:F0:E1:D2/, '$1 A4:C1:38:F0:E1:E1'],
  [/^(npx lockgate device set)/, 'npx lockgate merchant add "Basil Bikes"; $1'],
  [/(device erase [\w:]+)/, '$1 --yes'],
  [/(--merchant "Amber Bikes" --all)/, '$1 --yes'],
  ['command cancel 7', 'command cancel 2'],
  [/^(npx lockgate config rotate-key) --data \.\/data/, '$1 --data closed'],
  [/^(npx lockgate config forget-secrets --yes) --data \.\/data/, 'rm closed/key; $1 --data closed'],
  ['/backups/', 'backups/'],
  ['db migrate --dry-run', 'db migrate --dry-run --data closed'],
  ['cp monday', 'cp backups/monday'],
  ['/safe/key', 'data/key'],
  ['field.jsonl.gz', 'week.jsonl.gz'],
];

t.test('README.md', { skip }, async (t) => {
  t.same(await failuresOf(t, ['README.md'], await setUpReader(t), { exceptions: [], replacements: [] }), []);
});

t.test('the guide', { skip }, async (t) => {
  const listed = readFileSync(path.join(root, 'docs/guide/README.md'), 'utf8').matchAll(/^\| \[.*\]\((.+\.md)\)/gm);
  const files = [...listed].map(([, name]) => `docs/guide/${name}`);
  t.ok(files.length > 9);
  const pages = { exceptions: GUIDE_EXCEPTIONS, replacements: GUIDE_REPLACEMENTS };
  t.same(await failuresOf(t, files, await setUpReader(t), pages), []);
});

t.test('docs/webhooks.md', { skip }, async (t) => {
  const reader = await setUpReader(t);
  const { accounts } = reader.gateway;
  await accounts.addMerchant('Amber Bikes');
  const mac = testMac();
  await accounts.addWebhookUrl({ url: reader.receiver.url });
  const lock = await connectedLock(t, reader.gateway, mac);
  const delivered = waitForEvents(reader.gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await delivered;
  const exceptions: readonly LineException[] = [
    { line: /^curl https:\/\/lockgate\.example\.com/, how: 'left out', reason: 'README.md has the call too.' },
    { line: /^ {2}-d '\{"access_token":"…"/, how: 'left out', reason: 'The same.' },
    { line: /--ca our-ca\.pem/, how: 'parsed', reason: 'This page has no certificate of an authority.' },
  ];
  const replacements: readonly Replacement[] = [['A4:C1:38:F0:E1:D2', formatMac(mac)]];
  t.same(await failuresOf(t, ['docs/webhooks.md'], reader, { exceptions, replacements }), []);
});

t.test('docs/operator.md', { skip }, async (t) => {
  const exceptions: readonly LineException[] = [
    { line: /^createdb /, how: 'left out', reason: 'It needs a running PostgreSQL.' },
    { line: /^LOCKGATE_STORE=/, how: 'parsed', reason: 'test/system/postgres runs gateways on a database.' },
    {
      line: /lockgate .*postgres:\/\//,
      how: 'parsed',
      reason: 'test/gateway/store/postgres/move.slow.test.ts moves a store.',
    },
  ];
  t.same(await failuresOf(t, ['docs/operator.md'], await setUpReader(t), { exceptions, replacements: [] }), []);
});

t.test('docs/scenarios.md', { skip }, async (t) => {
  t.same(await failuresOf(t, ['docs/scenarios.md'], await setUpReader(t), { exceptions: [], replacements: [] }), []);
});

for (const name of ['hardware-engineers', 'qa', 'merchants', 'operators'])
  t.test(`docs/how-to/${name}.md`, { skip }, async (t) => {
    const exceptions: readonly LineException[] = [
      {
        line: /lockgate /,
        how: 'parsed',
        reason: 'Its locks, files and URLs are examples; contract.test.ts runs each.',
      },
      { line: /^(curl|mkdir|cp|install) /, how: 'left out', reason: 'docs/http.md and README.md run the same.' },
    ];
    const lines = exampleLines(readFileSync(path.join(root, 'docs/how-to', `${name}.md`), 'utf8'));
    t.ok(lines.filter((line) => /lockgate /.test(line)).length >= 6, 'there are examples');
    const { folder } = await setUpReader(t);
    t.same(await runLines(t, lines, { exceptions, replacements: [], environment: { folder, environment: {} } }), []);
  });

t.test('docs/firmware.md', { skip }, async (t) => {
  const exceptions: readonly LineException[] = [
    { line: /^cc /, how: 'left out', reason: 'test/system/example-locks.slow.test.ts compiles the lock.' },
    { line: /^LOCK_SECRET/, how: 'left out', reason: 'It runs until Ctrl-C; the same test runs it.' },
    { line: /sim shadow/, how: 'parsed', reason: 'It takes a day; the same test runs it.' },
  ];
  t.same(await failuresOf(t, ['docs/firmware.md'], await setUpReader(t), { exceptions, replacements: [] }), []);
});

t.test('every example in help texts is an accepted command line', { skip }, async (t) => {
  const reader = await setUpReader(t);
  // What the examples use: the program dot, a token and a file.
  const setUp = "dot() { cat; }; TOKEN=secret; printf '0829' > uplink.bin";
  const lines = [setUp, ...helpExamples(await makeProgram('all'))];
  t.ok(lines.length > 90, 'there are examples');
  const failed = await runLines(t, lines, {
    exceptions: [
      { line: /lockgate /, how: 'parsed', reason: 'test/cli/contract.test.ts runs each command.' },
      { line: /^createdb /, how: 'left out', reason: 'It needs a running PostgreSQL.' },
    ],
    replacements: [],
    environment: { folder: reader.folder, environment: {} },
  });
  t.same(
    failed.map(({ line, text }) => `${lines[line - 1]}: ${text}`),
    [],
  );
  t.equal((await failuresOfLine(t, reader, 'lockgate device list --wach')).length, 1, 'a wrong line fails');
  t.equal(
    (await failuresOfLine(t, reader, 'lockgate device show | cat')).length,
    1,
    'a wrong line in a pipe fails too',
  );
});

/** Runs one line. */
async function failuresOfLine(test: Test, reader: Reader, line: string) {
  const exceptions: readonly LineException[] = [{ line: /lockgate /, how: 'parsed', reason: 'It is wrong.' }];
  return await runLines(test, [line], {
    exceptions,
    replacements: [],
    environment: { folder: reader.folder, environment: {} },
  });
}

/** The command lines after `$` in all help texts. */
function helpExamples(command: Command): string[] {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const examples = [...help.matchAll(/^ {2}\$ (.*)$/gm)].map(([, line = '']) => line);
  return [...examples, ...command.commands.flatMap(helpExamples)];
}
