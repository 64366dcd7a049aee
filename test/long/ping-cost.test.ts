/**
 * Limits the cost of a ping in `lockgate serve` in counts that a busy machine hardly changes: SQL statements, bytes
 * written, fsyncs. This detects changes that make each ping more expensive; the bench measures times.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { withResources } from '../bench/resources.js';
import { ServeSetup } from '../bench/serve-setup.js';
import { root } from '../helpers/house/our-files.js';
import type { StatementCount } from '../helpers/store/counting-statements.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const PINGS = 20_000;
const LOCKS = 1000;

/** Per ping: its row, its lock's state, and its share of the statements of a commit and of the usage counts. */
const MAX_WRITING_STATEMENTS = 3;
/** Per ping. Low because a ping with a higher key than all earlier ones of its lock is recognised as new in memory. */
const MAX_READING_STATEMENTS = 0.5;
/** Per ping: the pages of its row, key and lock's state, in the WAL and in the file. */
const MAX_BYTES = 8192;
/** Some hundred pings share the fsync of a commit; checkpoints need additional fsyncs. */
const MIN_PINGS_PER_FSYNC = 50;

t.setTimeout(300_000);

const PRELOAD = fileURLToPath(new URL('../helpers/store/counting-statements.js', import.meta.url));

/** Adds up the counts that the gateway's threads wrote into this folder, one file each. */
function sumCounts(folder: string): StatementCount {
  const counts = readdirSync(folder).map(
    (file) => JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as StatementCount,
  );
  const total = (name: keyof StatementCount): number => counts.reduce((all, count) => all + count[name], 0);
  return { run: total('run'), read: total('read') };
}

/** The bytes that a process has written so far, to files and sockets. */
function bytesWritten(pid: number | undefined): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

const noCompiler = spawnSync('g++', ['--version']).error !== undefined && 'g++ is not installed';

t.test('a ping costs few statements, few bytes and a share of an fsync', { skip: noCompiler }, async (t) => {
  const [library, statements] = [path.join(tempFolder(t), 'counting-fsync.so'), tempFolder(t)];
  const source = path.join(root, 'test/helpers/store/counting-fsync.cc');
  t.equal(spawnSync('g++', ['-O2', '-shared', '-fPIC', '-o', library, source]).status, 0);
  const fsyncs = path.join(tempFolder(t), 'fsyncs');
  await withResources(async (resources) => {
    const environment = { LD_PRELOAD: library, COUNTED_FSYNC: fsyncs, COUNTED_STATEMENTS: statements };
    const nodeArgs = ['--import', PRELOAD];
    const setup = await ServeSetup.open(resources, { locks: LOCKS, urls: 0, environment, nodeArgs });
    // Warm-up: afterwards each lock has a stored state and connection.
    await setup.generator.flood(LOCKS);
    const before = {
      ...sumCounts(statements),
      bytes: bytesWritten(setup.pid),
      fsyncs: Number(readFileSync(fsyncs, 'utf8')),
    };
    const lastIdBefore = setup.stored.lastId();
    await setup.generator.flood(PINGS);
    const after = {
      ...sumCounts(statements),
      bytes: bytesWritten(setup.pid),
      fsyncs: Number(readFileSync(fsyncs, 'utf8')),
    };
    t.equal(setup.stored.countAfter(lastIdBefore), PINGS, 'all pings are stored');
    const perPing = (name: keyof typeof before): number => (after[name] - before[name]) / PINGS;
    t.comment(
      `each ping: ${perPing('run')} statements that may write, ${perPing('read')} that read, ${perPing('bytes')} bytes`,
    );
    t.comment(`pings for each fsync: ${1 / perPing('fsyncs')}`);
    t.ok(perPing('run') >= 1 / 100, 'statements are counted at all');
    t.ok(perPing('run') <= MAX_WRITING_STATEMENTS, 'statements that may write');
    t.ok(perPing('read') <= MAX_READING_STATEMENTS, 'statements that read');
    t.ok(perPing('bytes') <= MAX_BYTES, 'bytes written');
    t.ok(perPing('fsyncs') > 0, 'fsyncs are counted at all');
    t.ok(1 / perPing('fsyncs') >= MIN_PINGS_PER_FSYNC, 'pings for each fsync');
  });
});
