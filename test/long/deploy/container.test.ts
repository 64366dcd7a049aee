/**
 * Runs the steps of deploy/Dockerfile as plain commands in a temporary folder, because a container needs a daemon: the
 * copies of both stages, the build, the command, the health check and the stop. Packages are those of this clone, and
 * what changes the system (apt-get, links, owners) is left out.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { Program, runProgram } from '../../helpers/cli/program.js';
import { execForm, type Instruction, onlyValue, readStages } from '../../helpers/deploy/dockerfile.js';
import { root } from '../../helpers/house/our-files.js';
import { freePort } from '../../helpers/http/free-port.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const WORKDIR = '/opt/lockgate';
/** Steps that need the network or change the system. */
const LEFT_OUT = [/^apt-get update && apt-get install /, /^npm ci --omit=dev /, /^ln -s /, /^install -d /];
const stages = readStages(readFileSync(path.join(root, 'deploy/Dockerfile'), 'utf8'));
const [build = [], final = []] = stages;

/** Copies what .dockerignore lets into the build. */
function copyContext(folder: string): void {
  const [all, ...kept] = readFileSync(path.join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  if (all !== '*') throw new Error('.dockerignore does not begin with everything');
  // After `*`, which leaves out everything, each line is `!` and a path that the build gets.
  for (const line of kept)
    cpSync(path.join(root, line.slice(1)), path.join(folder, line.slice(1)), { recursive: true });
}

/** Puts the packages of `npm ci --omit=dev` into a folder: links, and npm's record of them. */
function linkPackages(folder: string): void {
  const installed = JSON.parse(readFileSync(path.join(root, 'node_modules/.package-lock.json'), 'utf8'));
  // package-lock.json says which packages only development needs; npm's record may be older, and wrong about that.
  const locked: Record<string, { dev?: boolean }> = JSON.parse(
    readFileSync(path.join(root, 'package-lock.json'), 'utf8'),
  ).packages;
  const entries = Object.entries<object>(installed.packages)
    .filter(([name]) => locked[name]?.dev !== true)
    .map(([name, entry]) => [name, { ...entry, dev: undefined }] as const);
  // Packages at the top; a link brings the packages inside them.
  for (const [place] of entries.filter(([name]) => name.split('node_modules/').length === 2)) {
    mkdirSync(path.dirname(path.join(folder, place)), { recursive: true });
    symlinkSync(path.join(root, place), path.join(folder, place));
  }
  const record = { ...installed, packages: Object.fromEntries(entries) };
  writeFileSync(path.join(folder, 'node_modules/.package-lock.json'), JSON.stringify(record));
}

/** Follows the copies and commands of a stage in `folder`; `from` is where copies come from. Returns the commands. */
function follow(stage: readonly Instruction[], from: string, folder: string): string[] {
  const ran: string[] = [];
  for (const { name, value } of stage) {
    if (name === 'COPY') {
      const words = value
        .replace(/^--from=build /, '')
        .replaceAll(`${WORKDIR}/`, '')
        .split(' ');
      const target = words.pop() ?? '';
      for (const word of words) {
        if (word === 'node_modules') continue;
        const place = target.endsWith('/') ? path.join(target, path.basename(word)) : target;
        cpSync(path.join(from, word), path.join(folder, place), { recursive: true });
      }
    }
    if (name === 'RUN' && !LEFT_OUT.some((step) => step.test(value))) {
      ran.push(value);
      execFileSync('sh', ['-c', value], { cwd: folder, stdio: 'pipe' });
    }
  }
  return ran;
}

t.test('the steps of the Dockerfile build a gateway that runs, is healthy and stops', async (t) => {
  t.equal(stages.length, 2);
  for (const stage of stages) t.equal(onlyValue(stage, 'WORKDIR'), WORKDIR);
  t.equal(onlyValue(final, 'USER'), 'node');
  const [context, built, image] = [tempFolder(t), tempFolder(t), tempFolder(t)];
  copyContext(context);
  linkPackages(built);
  t.same(follow(build, context, built), ['npm run build']);
  linkPackages(image);
  t.same(follow(final, built, image), []);

  const port = String(await freePort());
  const variables = Object.fromEntries(
    onlyValue(final, 'ENV')
      .split(' ')
      .map((word) => word.split('=') as [string, string]),
  );
  t.equal(variables.LOCKGATE_DATA, onlyValue(final, 'VOLUME'));
  const environment = {
    ...variables,
    LOCKGATE_DATA: path.join(tempFolder(t), 'data'),
    ...{ LOCKGATE_HTTP_PORT: port, LOCKGATE_MQTT_PORT: '0', LOCKGATE_OPERATOR_PORT: '0' },
  };
  /** The arguments of a command of the image after `node`, with its files at their places in the folder. */
  const inImage = (words: readonly string[]): string[] =>
    words.slice(1).map((word) => (/\.m?js$/.test(word) ? path.join(image, word) : word));
  const check = inImage(execForm(onlyValue(final, 'HEALTHCHECK')));
  const isHealthy = async () => (await runProgram(t, process.execPath, check, environment)).exit?.code === 0;
  t.notOk(await isHealthy(), 'nothing runs yet');
  const gateway = new Program(t, process.execPath, inImage(execForm(onlyValue(final, 'CMD'))), environment);
  await gateway.waitForLine(/Next:/);
  t.ok(await isHealthy());
  // `ln -s PROGRAM NAME`, which makes the program a command: the path of the program.
  const link = final.find(({ value }) => value.startsWith('ln -s '))?.value.split(' ')[2] ?? '';
  const status = [link.replace(WORKDIR, image), 'status', '--json', '--data', environment.LOCKGATE_DATA];
  t.equal((await runProgram(t, process.execPath, status)).exit?.code, 0, 'commands find the gateway');
  gateway.kill(onlyValue(final, 'STOPSIGNAL') as NodeJS.Signals);
  t.same(await gateway.waitForExit(), { code: 0, signal: null });
});
