/**
 * The console's trace screen checks a trace (a file of what locks did) inside the browser. It must find what
 * `lockgate trace check` finds, with the same words, in plain and gzipped files, valid and invalid ones (console.md,
 * "Screens"). Tested without a browser, with the samples in test/traces.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { checkTrace } from '../../../gateway/console/page/trace/trace-check.js';
import { readLines } from '../../../gateway/console/page/trace/trace-lines.js';
import { runCommand } from '../../helpers/cli/command-line.js';
import { root } from '../../helpers/house/our-files.js';

const TRACES = join(root, 'test/traces');
// Such as after-close.breaks-1.jsonl, which breaks the rule “after-close”, and after-close.holds-2.jsonl.
const files = readdirSync(TRACES).filter((name) => /\.(breaks|holds)-\d+\.jsonl$/.test(name));

/** What the CLI finds in a trace file: its findings as `line mac rule message`. */
async function findingsOfCli(path: string): Promise<{ findings: string[]; pings: number }> {
  const { stdout } = await runCommand(['trace', 'check', path, '--json']);
  const report = JSON.parse(stdout) as {
    files: { pings: number; findings: { line: number; mac: string; rule: string; message: string }[] }[];
  };
  const [file] = report.files;
  const findings = file?.findings.map(({ line, mac, rule, message }) => `${line} ${mac} ${rule} ${message}`) ?? [];
  return { findings, pings: file?.pings ?? 0 };
}

/** What the page finds in a trace's content, as {@link findingsOfCli}, with its whole report. */
async function findingsOfPage(content: Uint8Array, name: string) {
  const report = await checkTrace(new Blob([content]), name, () => {});
  const findings = report.findings.map(({ line, mac, rule, message }) => `${line} ${mac} ${rule} ${message}`);
  return { report, findings };
}

t.test('the page finds what the CLI finds', async (t) => {
  t.ok(files.length > 50, `${files.length} traces`);
  let findingCount = 0;
  // Every fifth trace is enough here: other tests check the rules.
  for (const file of files.filter((_, index) => index % 5 === 0)) {
    const path = join(TRACES, file);
    const expected = await findingsOfCli(path);
    const { report, findings } = await findingsOfPage(readFileSync(path), file);
    t.same(findings, expected.findings, file);
    t.equal(report.pings, expected.pings, `${file}: pings`);
    t.equal(report.error, null);
    findingCount += findings.length;
  }
  t.ok(findingCount > 5, `${findingCount} findings`);
});

t.test('a gzipped trace gives the same report as the plain one', async (t) => {
  const name = files.find((file) => file.includes('breaks')) ?? '';
  const content = readFileSync(join(TRACES, name));
  const plain = await findingsOfPage(content, name);
  const packed = await findingsOfPage(gzipSync(content), name);
  t.same(packed.report, plain.report);
  const [lock] = plain.report.locks;
  t.ok((lock?.states.length ?? 0) > 0, 'states');
  t.equal(lock?.findings.length, plain.findings.length, 'all findings are about the first lock');
  // The certificate says of each requirement whether the trace meets it (docs/certificate.md).
  t.ok(plain.report.certificate.some(({ verdict }) => verdict === 'FAIL'));
});

t.test('an error in a trace is reported with file and line, after what was found before it', async (t) => {
  const name = files.find((file) => file.includes('breaks')) ?? '';
  const lines = readFileSync(join(TRACES, name), 'utf8').trimEnd().split('\n');
  const linesAfterHeader = lines.slice(1);
  const broken = Buffer.from([...lines, '{"event":"no such event"}', ...linesAfterHeader].join('\n'));
  const { report } = await findingsOfPage(broken, name);
  t.match(report.error, new RegExp(`^${name.replaceAll('.', '\\.')}:${lines.length + 1}: `));
  t.ok(report.pings > 0);
  t.match((await findingsOfPage(Buffer.from('no trace'), 'a.jsonl')).report.error, /^a\.jsonl:1: /);
  t.match((await findingsOfPage(Buffer.alloc(0), 'a.jsonl')).report.error, /^a\.jsonl:\d: /);
});

const MIB = 2 ** 20;

// The page's own limits are 1,024 and 32 MiB, which take long to reach.
t.test('a small file that unpacks to more than the limit is not read to its end', async (t) => {
  const limits = { fileBytes: 4 * MIB, lineBytes: MIB };
  const line = `${'x'.repeat(999)}\n`;
  const packed = gzipSync(line.repeat(10_000));
  t.ok(packed.length < MIB / 8, `${packed.length} bytes`);
  let linesRead = 0;
  const read = (content: Uint8Array) =>
    readLines(
      new Blob([content]),
      () => {
        linesRead += 1;
        return true;
      },
      limits,
    );
  await t.rejects(read(packed), { message: /^The trace unpacks to over 4 MiB/ });
  t.ok(linesRead > 3_000 && linesRead < 4_200, `${linesRead} lines were read`);
  linesRead = 0;
  await read(gzipSync(line.repeat(4_000)));
  t.equal(linesRead, 4_000, 'a file within the limit is read to its end');
});

t.test('a line without an end is not collected beyond the limit', async (t) => {
  let chunksRead = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      chunksRead += 1;
      controller.enqueue(new Uint8Array(MIB / 16));
    },
  });
  const file = { slice: () => new Blob(['{']), stream: () => endless } as unknown as Blob;
  const reading = readLines(file, () => true, { fileBytes: 4 * MIB, lineBytes: MIB });
  await t.rejects(reading, { message: /^A line of the file has over 1 MiB/ });
  t.ok(chunksRead < 20, `${chunksRead} chunks were read`);
});
