// `lockgate trace check --world` (interfaces.md §4) compares a trace with a truth: a trace with world events, which say
// what really happened around the simulated locks. The truth may be the same file, another file, gzipped, or the
// standard input. The rule `owed` finds uplinks (messages) that a lock should have sent; its findings appear in every
// report.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { runLockgate } from '../../helpers/cli/program.js';
import { root } from '../../helpers/house/our-files.js';
import { traceOf } from '../../helpers/sim/judged-run.js';
import { mutantOf } from '../../helpers/sim/mutant-trace.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const pathOf = (name: string): string => path.join(folder, name);

async function runCheck(...args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const { exit, stdout, stderr } = await runLockgate(['trace', 'check', ...args]);
  return { code: exit.code ?? null, out: stdout.join('\n'), err: stderr.join('\n') };
}

const isWorld = (line: string): boolean => line.includes('"event":"world"');
/** The lines of a trace of healthy locks with world events. */
const TRUTH = traceOf({ seed: 'cli', locks: 3, days: 1, pace: 'lively', hasWorldEvents: true });
/** Writes lines to a file, gzipped if its name ends in .gz. Returns the file. */
const writeTrace = (name: string, lines: readonly string[]): string => {
  const text = lines.filter((line) => line !== '').join('\n');
  writeFileSync(pathOf(name), name.endsWith('.gz') ? gzipSync(text) : text);
  return pathOf(name);
};
const truth = writeTrace('truth.jsonl', TRUTH);
const gzippedTruth = writeTrace('truth.jsonl.gz', TRUTH);
const healthy = writeTrace(
  'healthy.jsonl',
  TRUTH.filter((line) => !isWorld(line)),
);
/** The same trace without the pings of thefts, as a lock with a bug would have sent it. */
const withoutTheft = mutantOf(TRUTH, (ping) => (ping.reason === 'REASON_THEFT' ? null : ping));
const buggy = writeTrace(
  'mutant.jsonl',
  withoutTheft.filter((line) => !isWorld(line)),
);

/** The members of `--json` that the tests read. */
interface CheckReport {
  readonly files: readonly {
    readonly findings: readonly {
      readonly rule: string;
      readonly message: string;
      readonly world?: { line: number };
    }[];
  }[];
}

t.test('the trace of healthy locks has no findings, whichever file is the truth', async (t) => {
  for (const args of [
    [truth, '--world', truth],
    [healthy, '--world', truth],
    [healthy, '--world', gzippedTruth],
  ]) {
    const { code, out } = await runCheck(...args);
    t.equal(code, 0, out);
    t.match(out, '0 violations');
  }
});

t.test('a missing uplink is a finding that names the world event and its line in the truth', async (t) => {
  const { code, out } = await runCheck(buggy, '--world', gzippedTruth, '--json');
  t.equal(code, 1);
  const { files } = JSON.parse(out) as CheckReport;
  const findings = (files[0]?.findings ?? []).filter(({ rule }) => rule === 'owed');
  t.ok(findings.length > 0);
  for (const { message, world } of findings) {
    const cause = JSON.parse(TRUTH[(world?.line ?? 0) - 1] ?? '{}') as { event?: string };
    t.equal(cause.event, 'world');
    t.match(message, `truth.jsonl.gz:${world?.line}`);
    t.match(message, 'REASON_THEFT');
  }
  t.notMatch((await runCheck(buggy)).out, 'owed', 'without a truth the rule finds nothing');
});

t.test('text and JUnit reports have the findings, and --ignore omits them', async (t) => {
  const trace = path.join(root, 'test/traces/owed.breaks-1.jsonl');
  const { code, out } = await runCheck(trace, '--world', trace);
  t.equal(code, 1);
  t.match(out, /line 2 +violation +owed: The lock moved while it was locked.*“moving true”.*\(line 2\)/);
  const junit = (await runCheck(trace, '--world', trace, '--junit')).out;
  t.match(junit, /name="owed">\s*<failure message="The lock moved while it was locked/);
  t.equal((await runCheck(trace, '--world', trace, '--ignore', 'owed')).code, 0);
});

t.test('a file without world events, a missing file and an invalid event are errors', async (t) => {
  const withoutWorld = await runCheck(truth, '--world', healthy);
  t.equal(withoutWorld.code, 2);
  t.match(withoutWorld.err, /healthy\.jsonl has no events of the world: expected/);
  t.match((await runCheck(truth, '--world', pathOf('missing.jsonl'))).err, /there is no file .*missing\.jsonl/);
  t.match((await runCheck(truth, healthy, '--world', '-')).err, /--world - can be read only once/);
  const [header = '', first = ''] = readFileSync(truth, 'utf8').split('\n');
  const wrong = writeTrace('wrong.jsonl', [header, first, first.replace(/"event".*/, '"event":"world","sky":1}')]);
  const { code, err } = await runCheck(healthy, '--world', wrong);
  t.equal(code, 2);
  t.match(err, /wrong\.jsonl:3: sky is 1: expected true or false/);
});
