/**
 * Makes the npm package as `npm run release` does, installs it into an empty folder and runs it: the demo until a
 * webhook is verified, a simulation and its check, and a gateway on the data of an older and of a newer version. The
 * SQLite driver is that of this clone, because compiling it takes a minute; the release itself compiles it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { Program, runProgram } from '../../helpers/cli/program.js';
import { execForm, onlyValue, readStages } from '../../helpers/deploy/dockerfile.js';
import { root } from '../../helpers/house/our-files.js';
import { freePort } from '../../helpers/http/free-port.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** npm copies and packs some 2,600 files, which takes a minute on a busy machine. */
const RELEASE_SECONDS = 600;
const PORTS = ['--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
const VERSION = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).version;
const release = tempFolder(t);
const folder = tempFolder(t);
const installed = path.join(folder, 'node_modules/lockgate');

/** Starts the installed command. */
const start = (test: Test, ...args: string[]): Program =>
  new Program(test, path.join(folder, 'node_modules/.bin/lockgate'), args);

/** Runs the installed command to its end. */
const run = (test: Test, ...args: string[]): Promise<Program> =>
  runProgram(test, path.join(folder, 'node_modules/.bin/lockgate'), args);

/** A data folder with a store that an older version wrote. */
function oldData(test: Test): string {
  const data = tempFolder(test);
  const store = gunzipSync(readFileSync(path.join(root, 'test/stores/before-0032.sqlite.gz')));
  writeFileSync(path.join(data, 'lockgate.sqlite'), store, { mode: 0o600 });
  writeFileSync(path.join(data, 'key'), readFileSync(path.join(root, 'test/stores/before-0032.key')), { mode: 0o600 });
  return data;
}

/** The number of rows of some tables. */
function countRows(data: string): Record<string, unknown> {
  const db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'), { readonly: true });
  const count = (table: string) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  const counts = ['merchant', 'device', 'credential', 'uplink', 'webhook_url'].map((table) => [table, count(table)]);
  db.close();
  return Object.fromEntries(counts);
}

t.test('a release makes package, bill of materials, changes and sums', async (t) => {
  const args = [path.join(root, 'cli/prepare/release/release.mjs'), '--rehearse', '--no-try', '--out', release];
  const made = new Program(t, process.execPath, args);
  t.equal((await made.waitForExit(RELEASE_SECONDS)).code, 0, made.stderr.join('\n'));
  const sums = readFileSync(path.join(release, 'SHA256SUMS'), 'utf8');
  t.match(sums, new RegExp(`^[0-9a-f]{64} {2}lockgate-${VERSION}\\.tgz\n`));
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release, stdio: 'ignore' });
  const manifest = JSON.parse(
    execFileSync('tar', ['xzOf', path.join(release, `lockgate-${VERSION}.tgz`), 'package/package.json'], {
      encoding: 'utf8',
    }),
  );
  t.ok(manifest.man.includes('./docs/man/lockgate-device.1'), 'npm install -g installs the man pages');
  const bill = JSON.parse(readFileSync(path.join(release, `lockgate-${VERSION}.cdx.json`), 'utf8'));
  t.match(bill, { bomFormat: 'CycloneDX', metadata: { component: { name: 'lockgate', version: VERSION } } });
  const names: string[] = bill.components.map(({ name }: { name: string }) => name);
  t.ok(names.includes('fastify') && names.includes('better-sqlite3') && !names.includes('esbuild'));
  t.notOk(names.includes('tap'), 'nothing that only tests need');

  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n');
  const install = ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', [...install, path.join(release, `lockgate-${VERSION}.tgz`)], { cwd: folder, stdio: 'pipe' });
  // In a clone whose node_modules is a link, the driver is where the link leads.
  const driver = 'node_modules/better-sqlite3/build';
  cpSync(path.join(realpathSync(path.join(root, 'node_modules')), '../', driver), path.join(folder, driver), {
    recursive: true,
  });
});

t.test('the installed package runs', async (t) => {
  t.same((await run(t, '--version')).stdout, [VERSION]);
  const trace = path.join(folder, 'trace.jsonl');
  t.equal((await run(t, 'sim', 'run', '--virtual', '--locks', '2', '--days', '2', '--out', trace)).exit?.code, 0);
  t.equal((await run(t, 'trace', 'check', trace)).exit?.code, 0);
  t.match((await run(t, 'sim', 'scenarios')).stdout.join('\n'), /theft/);
  const demo = start(t, 'demo', '--data', tempFolder(t), ...PORTS);
  await demo.waitForLine(/ hook {2}verified /);
  demo.kill('SIGINT');
  t.same(await demo.waitForExit(), { code: 0, signal: null });
  const { resolve } = createRequire(path.join(folder, 'merchant.js'));
  t.equal(resolve('lockgate/trace.schema.json'), path.join(realpathSync(installed), 'docs/trace.schema.json'));
  t.throws(() => resolve('lockgate/dist/program/main.js'), /not defined by "exports"/);
});

t.test('the commands of the image that has the package start a gateway that is healthy', async (t) => {
  const final = readStages(readFileSync(path.join(root, 'deploy/package.dockerfile'), 'utf8')).at(-1) ?? [];
  /** The arguments of a command of the image after `node`, with its files at their places in the folder. */
  const inImage = (name: string): string[] => {
    const words = execForm(onlyValue(final, name)).slice(1);
    return words.map((word) => (/\.m?js$/.test(word) ? path.join(folder, word) : word));
  };
  const port = String(await freePort());
  const environment = { LOCKGATE_DATA: path.join(tempFolder(t), 'data'), LOCKGATE_HTTP_PORT: port };
  const gateway = new Program(t, process.execPath, inImage('CMD'), {
    ...environment,
    LOCKGATE_MQTT_PORT: '0',
    LOCKGATE_OPERATOR_PORT: '0',
  });
  await gateway.waitForLine(/Next:/);
  t.equal((await runProgram(t, process.execPath, inImage('HEALTHCHECK'), environment)).exit?.code, 0);
  gateway.kill(onlyValue(final, 'STOPSIGNAL') as NodeJS.Signals);
  t.same(await gateway.waitForExit(), { code: 0, signal: null });
});

t.test('an upgrade keeps the data, and a downgrade is refused with a sentence', async (t) => {
  const data = oldData(t);
  const before = countRows(data);
  t.ok(Number(before.uplink) > 0);
  const gateway = start(t, 'serve', '--data', data, ...PORTS);
  // The last line of its start.
  await gateway.waitForLine(/Next:/);
  t.equal((await run(t, 'merchant', 'list', '--data', data, '--json')).exit?.code, 0);
  gateway.kill('SIGTERM');
  t.same(await gateway.waitForExit(), { code: 0, signal: null });
  t.same(countRows(data), before);

  // As if a newer version had changed the tables: its migration has a name that this version does not know.
  const db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'));
  db.prepare(`INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', '')`).run();
  db.close();
  const refused = await run(t, 'serve', '--data', data, ...PORTS);
  t.not(refused.exit?.code, 0);
  t.match(refused.stderr.join('\n'), /was written by a newer version of lockgate; run that version/);
  t.same(countRows(data), before);
});
