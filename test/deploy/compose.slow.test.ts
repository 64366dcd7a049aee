/**
 * deploy/compose.yaml without a Docker daemon: it is valid, names only what exists, and its steps run one after another
 * as plain commands against a gateway, until the receiver verifies a webhook and Prometheus' token reads the metrics.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import got from 'got';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { LOCKGATE, Program, runProgram } from '../helpers/cli/program.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import {
  type ComposeFile,
  type ComposeService,
  deadReferences,
  mountsOf,
  noComposeSchema,
  readCompose,
  schemaFaults,
} from '../helpers/deploy/compose-file.js';
import { parseWords } from '../helpers/house/document-run.js';
import { root } from '../helpers/house/our-files.js';
import { freePort } from '../helpers/http/free-port.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const compose = readCompose('compose.yaml');
const service = (name: string): ComposeService => compose.services[name] as ComposeService;
const inDeploy = (file: string): string => path.join(root, 'deploy', file);

t.test('the file is valid', { skip: noComposeSchema }, async (t) => {
  const wrong = { services: { gateway: { image: 'lockgate', stop_grace_period: 'soon', port: [] } }, volume: {} };
  t.equal(schemaFaults(wrong).length, 3);
  t.same(schemaFaults(compose), []);
});

t.test('it names only services, volumes and files that exist, and fixed versions of images', async (t) => {
  const image = 'other';
  const wrong: ComposeFile = {
    services: { a: { image, depends_on: ['b'], network_mode: 'service:c', volumes: ['d:/d', './e:/e', 'f:/f'] } },
    volumes: { f: null },
  };
  t.same(
    deadReferences(wrong, () => false),
    ['a: b', 'a: c', 'a: d', 'a: ./e'],
  );
  t.same(
    deadReferences(compose, (file) => existsSync(inDeploy(file))),
    [],
  );
  for (const [name, { image, build, ports = [] }] of Object.entries(compose.services)) {
    if (image !== 'lockgate') t.match(image, /:v?\d+\.\d+\.\d+$/, name);
    if (build !== undefined) t.ok(existsSync(path.join(inDeploy(build.context), build.dockerfile)), build.dockerfile);
    for (const port of ports) t.match(port, /^127\.0\.0\.1:(\d+):\1$/, `${name} is published on this machine only`);
  }
});

/** The words after `lockgate` in a service's command, which may be a line for the shell. */
function lockgateWords({ command = [] }: ComposeService): string[] {
  const words = command[0] === 'sh' ? (command.at(-1) ?? '').split(' ') : command;
  return words.slice(words.indexOf('lockgate') + 1);
}

t.test('lockgate accepts the command lines of the services', async (t) => {
  t.equal((await parseWords(['sim', 'run', '--lock', '12'])).code, 2, 'a wrong flag is noticed');
  for (const name of ['receiver', 'locks']) t.match(await parseWords(lockgateWords(service(name))), { code: 0 }, name);
});

t.test('Prometheus and Grafana find each other and the mounted files', async (t) => {
  const yaml = (file: string) => parse(readFileSync(inDeploy(file), 'utf8'));
  const targets = (name: string): string[] => mountsOf(service(name)).map(({ target }) => target);
  const { rule_files: rules, scrape_configs: jobs } = yaml('compose/prometheus.yaml');
  for (const file of rules) t.ok(targets('prometheus').includes(`/etc/prometheus/${file}`), file);
  t.ok(targets('prometheus').includes(path.dirname(jobs[0].authorization.credentials_file)));
  t.equal(jobs[0].job_name, 'lockgate', 'the alert rules name the job');
  t.equal(service('prometheus').network_mode, 'service:gateway', 'the operators’ port listens on loopback');
  const [source] = yaml('compose/grafana-datasource.yaml').datasources;
  t.ok(service('gateway').ports?.some((port) => port.endsWith(`:${new URL(source.url).port}`)));
  const [provider] = yaml('compose/grafana-dashboards.yaml').providers;
  t.ok(targets('grafana').some((target) => path.dirname(target) === provider.options.path));
  const promtool = spawnSync('promtool', ['check', 'config', '--syntax-only', inDeploy('compose/prometheus.yaml')]);
  if (promtool.error === undefined) t.equal(promtool.status, 0, String(promtool.stderr));
  else t.comment('promtool is not installed, so it has not checked prometheus.yaml');
});

/** The image's command `lockgate` and its folder of secrets, as a folder of programs and as replacements of texts. */
function imageOf(test: Test, receiverPort: number) {
  const folder = tempFolder(test);
  const programs = path.join(folder, 'bin');
  mkdirSync(programs);
  const start = `#!/bin/sh\nexec '${process.execPath}' '${LOCKGATE}' "$@"\n`;
  writeFileSync(path.join(programs, 'lockgate'), start, { mode: 0o755 });
  const secrets = path.join(folder, 'secrets');
  mkdirSync(secrets);
  const here = (text: string): string => {
    return text.replaceAll('/home/node', secrets).replaceAll('9000', String(receiverPort)).replaceAll('$$', '$');
  };
  return { programs, secrets, here };
}

t.test('the steps of the services lead to a verified webhook and to metrics', async (t) => {
  const { programs, secrets, here } = imageOf(t, await freePort());
  const gateway = await ServeProgram.start(t, tempFolder(t), service('gateway').environment);
  const environment = { PATH: `${programs}:${process.env.PATH}`, LOCKGATE_DATA: gateway.data };
  const script = path.join(secrets, 'set-up.sh');
  writeFileSync(script, here(readFileSync(inDeploy('compose/set-up.sh'), 'utf8')));
  const setUp = () => runProgram(t, 'sh', [script, secrets], environment);
  const read = (name: string) => readFileSync(path.join(secrets, name), 'utf8').trim();

  const first = await setUp();
  t.equal(first.exit?.code, 0, first.stderr.join('\n'));
  t.equal(statSync(path.join(secrets, 'webhook-secret')).mode & 0o777, 0o600);
  t.equal(statSync(path.join(secrets, 'prometheus-token')).mode & 0o777, 0o644, 'Prometheus is another user');
  const kept = [read('webhook-secret'), read('prometheus-token')];
  t.equal((await setUp()).exit?.code, 0);
  t.same([read('webhook-secret'), read('prometheus-token')], kept, 'a second run changes nothing');

  const run = (name: string): Program => {
    const [command = '', ...args] = (service(name).command ?? []).map(here);
    return new Program(t, command, args, environment);
  };
  const receiver = run('receiver');
  const locks = run('locks');
  await receiver.waitForLine(/ hook {2}verified /);
  for (const program of [locks, receiver]) {
    program.kill('SIGTERM');
    await program.waitForExit();
  }
  const address = readFileSync(path.join(gateway.data, 'operator-address'), 'utf8').trim();
  const headers = { authorization: `Bearer ${read('prometheus-token')}` };
  t.match(await got(new URL('/metrics', address), { headers }).text(), /^lockgate_ready 1$/m);
});
