/**
 * Checks deploy/Dockerfile and deploy/package.dockerfile as texts. test/long/deploy/container.test.ts runs the steps of
 * the first, test/long/deploy/package.test.ts the commands of the second.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { execForm, onlyValue, readStages } from '../helpers/deploy/dockerfile.js';
import { root } from '../helpers/house/our-files.js';

/** The instructions that the Dockerfile may use. */
const KNOWN = ['FROM', 'WORKDIR', 'RUN', 'COPY', 'ENV', 'VOLUME', 'EXPOSE', 'USER', 'STOPSIGNAL', 'HEALTHCHECK', 'CMD'];
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

t.test('a line that is no instruction is noticed', async (t) => {
  t.throws(() => readStages('FROM node:20\nnpm ci'), /no instruction: npm ci/);
  t.throws(() => readStages('RUN npm ci'), /before FROM/);
});

for (const file of ['deploy/Dockerfile', 'deploy/package.dockerfile'])
  t.test(`${file} is well-formed, and its image runs Node.js unprivileged, without a shell`, async (t) => {
    const stages = readStages(read(file));
    t.same(
      stages.flat().filter(({ name }) => !KNOWN.includes(name)),
      [],
    );
    const final = stages.at(-1) ?? [];
    t.not(onlyValue(final, 'USER'), 'root');
    t.equal(execForm(onlyValue(final, 'CMD'))[0], 'node', 'signals reach node itself');
    const wanted = read('.nvmrc').trim();
    for (const [from] of stages) t.match(from?.value, `node:${wanted}-`, 'the Node.js of .nvmrc');
  });

t.test('both images run the gateway with the same settings', async (t) => {
  const files = ['deploy/Dockerfile', 'deploy/package.dockerfile'];
  const [ofClone, ofPackage] = files.map((file) => readStages(read(file)).at(-1));
  for (const name of ['ENV', 'VOLUME', 'EXPOSE', 'USER', 'STOPSIGNAL'])
    t.equal(onlyValue(ofPackage ?? [], name), onlyValue(ofClone ?? [], name), name);
});

t.test('.dockerignore admits only what exists, and nothing with secrets', async (t) => {
  const [first, ...admitted] = read('.dockerignore')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  t.equal(first, '*');
  for (const line of admitted) t.ok(line.startsWith('!') && existsSync(path.join(root, line.slice(1))), line);
  t.same(
    admitted.filter((line) => /^!data(\/|$)/.test(line)),
    [],
    'the data folder has secrets',
  );
});
