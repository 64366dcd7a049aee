/**
 * What a ping costs on its whole way through `lockgate serve`, in counts that no busy machine changes much: statements,
 * bytes handed to the system, fsyncs. They guard against what makes each ping dearer without failing a test; times are
 * the bench's.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { ServeSite } from '../bench/serve-site.js';
import { onStage } from '../bench/stage.js';
import { root } from '../helpers/house/our-files.js';
import type { StatementCount } from '../helpers/store/counting-statements.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const PINGS = 20_000;
const LOCKS = 1000;

/** At most so many for each ping: its row, its lock's state, its share of what a commit and the usage count do. */
const STATEMENTS_WRITING = 3;
/** A ping whose name comes after all others of its lock is looked up in memory. */
const STATEMENTS_READING = 0.5;
/** At most so many bytes for each ping: the pages of its row, name and lock's state, in the WAL and in the file. */
const BYTES = 8192;
/** At least so many pings for each fsync: some hundred wait whenever a commit begins, and checkpoints have theirs. */
const PINGS_AN_FSYNC = 50;

t.setTimeout(300_000);

const PRELOAD = fileURLToPath(new URL('../helpers/store/counting-statements.js', import.meta.url));

function sum(folder: string): StatementCount {
  const counts = readdirSync(folder).map(
    (file) => JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as StatementCount,
  );
  const total = (name: keyof StatementCount): number => counts.reduce((all, count) => all + count[name], 0);
  return { run: total('run'), read: total('read') };
}

function bytesWritten(pid: number | undefined): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

const noCompiler = spawnSync('g++', ['--version']).error !== undefined && 'g++ is not installed';

t.test('a ping costs few statements, few bytes and a share of an fsync', { skip: noCompiler }, async (t) => {
  const [library, statements] = [path.join(tempFolder(t), 'counting-fsync.so'), tempFolder(t)];
  const source = path.join(root, 'test/helpers/store/counting-fsync.cc');
  t.equal(spawnSync('g++', ['-O2', '-shared', '-fPIC', '-o', library, source]).status, 0);
  const fsyncs = path.join(tempFolder(t), 'fsyncs');
  await onStage(async (stage) => {
    const environment = { LD_PRELOAD: library, COUNTED_FSYNC: fsyncs, COUNTED_STATEMENTS: statements };
    const nodeArgs = ['--import', PRELOAD];
    const site = await ServeSite.open(stage, { locks: LOCKS, urls: 0, environment, nodeArgs });
    // Each lock is known, and its connection stored, before anything counts.
    await site.generator.flood(LOCKS);
    const before = { ...sum(statements), bytes: bytesWritten(site.pid), fsyncs: Number(readFileSync(fsyncs, 'utf8')) };
    const last = site.stored.lastId();
    await site.generator.flood(PINGS);
    const after = { ...sum(statements), bytes: bytesWritten(site.pid), fsyncs: Number(readFileSync(fsyncs, 'utf8')) };
    t.equal(site.stored.countAfter(last), PINGS, 'all are in the store');
    const each = (name: keyof typeof before): number => (after[name] - before[name]) / PINGS;
    t.comment(`each ping: ${each('run')} statements that may write, ${each('read')} that read, ${each('bytes')} bytes`);
    t.comment(`pings for each fsync: ${1 / each('fsyncs')}`);
    t.ok(each('run') >= 1 / 100, 'statements are counted at all');
    t.ok(each('run') <= STATEMENTS_WRITING, 'statements that may write');
    t.ok(each('read') <= STATEMENTS_READING, 'statements that read');
    t.ok(each('bytes') <= BYTES, 'bytes written');
    t.ok(each('fsyncs') > 0, 'fsyncs are counted at all');
    t.ok(1 / each('fsyncs') >= PINGS_AN_FSYNC, 'pings for each fsync');
  });
});
