/**
 * What the npm package contains, and the rules of a release (cli/prepare/release). test/long/deploy/package.test.ts
 * makes the package, installs it and runs it.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { uncompressedGzipEnv } from '../helpers/deploy/uncompressed-gzip.js';
import { root } from '../helpers/house/our-files.js';

const releaseModule = (name: string): Promise<Record<string, (...args: unknown[]) => unknown>> =>
  import(pathToFileURL(path.join(root, 'cli/prepare/release', name)).href);
const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

/** Paths that the package must not contain. */
const SURPLUS_FILES = [
  /^test\//,
  /^dist\/(?!program|packages|console|help)/,
  // The bundle with which tests run a gateway in a process of its own.
  /gateway-process/,
  // TypeScript sources. Declarations and the example client for merchants are part of the package.
  /(?<!\.d|clients\/merchant)\.tsx?$/,
  /\.map$/,
  // V8's compiled code, which only the Node.js version that wrote it can use.
  /\.code$/,
  // Fingerprints of a build's inputs.
  /\.inputs$/,
  // The data folder of a gateway that was run in the clone.
  /^data/,
];

/** The files below a folder, except source maps. */
const filesIn = (folder: string): string[] =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.map'))
    .map((entry) => path.relative(path.join(root, folder), path.join(entry.parentPath, entry.name)));

t.test('the package has what runs, and neither tests nor sources', async (t) => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const env = { ...process.env, ...uncompressedGzipEnv() };
  const [{ files }] = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', env }));
  const paths: string[] = files.map((file: { path: string }) => file.path);
  const has = (file: string) => t.ok(paths.includes(file), file);
  for (const file of Object.values<string>(manifest.bin)) has(path.posix.normalize(file));
  for (const target of Object.values<string | { types: string }>(manifest.exports))
    has(path.posix.normalize(typeof target === 'string' ? target : target.types));
  for (const folder of ['dist/packages', 'dist/console', 'dist/help', 'firmware-sim/scenarios'])
    for (const name of filesIn(folder).filter((each) => !each.startsWith('.'))) has(`${folder}/${name}`);
  // Only tests run gateway-process.
  const programs = readdirSync(path.join(root, 'dist/program')).filter((name) => /\.c?js$/.test(name));
  for (const name of programs.filter((each) => !each.startsWith('gateway-process'))) has(`dist/program/${name}`);
  // cli/lockgate.mjs imports this file. The other files of cli/prepare are only for clones of the repository.
  has('cli/prepare/node-version.mjs');
  for (const text of ['README.md', 'LICENSE', 'CHANGELOG.md']) has(text);
  t.same(
    paths.filter((file) => SURPLUS_FILES.some((pattern) => pattern.test(file))),
    [],
  );
});

t.test('the program loads only packages that npm installs', async (t) => {
  const { neededPackages } = await releaseModule('package.mjs');
  const needed = neededPackages?.(manifest) as string[];
  t.has(needed, ['@fastify/swagger-ui', '@node-rs/argon2']);
  t.ok(needed.includes('better-sqlite3') && needed.includes('commander'));
  t.notOk(needed.includes('esbuild') || needed.includes('leaflet'), 'what only the build needs');
  const { commander: _, ...others } = manifest.dependencies;
  t.throws(() => neededPackages?.({ dependencies: others }), /The program loads commander, which is not in dep/);
});

t.test('the code in the bundles comes with its licences', async (t) => {
  const { makeNotices } = await releaseModule('notices.mjs');
  const notices = String(makeNotices?.(['better-sqlite3']));
  for (const name of ['fastify', 'mqtt', 'got', 'kysely', 'leaflet', 'preact'])
    t.match(notices, new RegExp(`\\n-{80}\\n${name} ${manifest.dependencies[name]}, \\S+\\n-{80}\\n\\n.*\\S`), name);
  t.notMatch(notices, /\nbetter-sqlite3 /);
});

t.test('the README of the package has no links to files, which lead nowhere in a registry', async (t) => {
  const { packageReadme } = await releaseModule('package-readme.mjs');
  const text =
    '# A\n\n![B](c.png)\n\n[D](docs/d.md#e), [docs/f.md](docs/f.md), [G](g/), [H](#h) and [I](https://i.example/)\n';
  t.equal(
    packageReadme?.(text, ['docs/d.md', 'docs/f.md']),
    '# A\n\nD (`docs/d.md`), `docs/f.md`, G, [H](#h) and [I](https://i.example/)\n\n' +
      'The files that are named here are in the package.\n',
  );
  const readme = String(packageReadme?.(readFileSync(path.join(root, 'README.md'), 'utf8'), ['docs/webhooks.md']));
  t.match(readme, 'webhooks (`docs/webhooks.md`)');
  t.notMatch(readme, /\]\((?!https?:)/);
});

t.test('a release needs a dated section of the changelog', async (t) => {
  const { sectionOf } = await releaseModule('changelog.mjs');
  const log =
    '# Changelog\n\n## Unreleased\n\nNew.\n\n## 1.1.0 – 2026-12-01\n\n### Fixed\n\n- A.\n\n## 1.0.0 – 2026-11-01\n';
  t.equal(sectionOf?.(log, '1.1.0'), '# lockgate 1.1.0\n\n### Fixed\n\n- A.\n');
  t.equal(sectionOf?.(log, null), '# lockgate Unreleased\n\nNew.\n');
  t.throws(() => sectionOf?.(log, '1.2.0'), /no section for 1\.2\.0: expected "## 1\.2\.0 – YYYY-MM-DD"/);
  t.throws(() => sectionOf?.(log, '1.0.0'), /The section 1\.0\.0 of CHANGELOG\.md is empty/);
  t.throws(() => sectionOf?.(`${log}\n- B.\n`, '1.0.0'), /newest version in CHANGELOG\.md is 1\.1\.0, not 1\.0\.0/);
  t.throws(() => sectionOf?.('## 1.0.0\n\n- A.\n', '1.0.0'), /has no date for 1\.0\.0/);
  t.ok(sectionOf?.(readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'), null));
});
