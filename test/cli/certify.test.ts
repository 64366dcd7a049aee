// `lockgate trace certify`: the certificate as a page and as JSON, exit codes, and --verify, which finds every change
// of a trace or of the certificate (interfaces.md §4). A certificate says for each requirement on a lock's firmware (a
// row) whether the traces show that it holds: PASS, FAIL or NOT SEEN.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { certifyTraces } from '../../cli/commands/trace/certify/certify.js';
import { checkTraces } from '../../cli/commands/trace/check/check.js';
import type { CheckFlags, FormatName } from '../../cli/commands/trace/check/options.js';
import { captureOutput } from '../../cli/terminal/output.js';
import { builtInNames } from '../../firmware-sim/scenario/built-in.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { CertificateJson } from '../../proto/trace/certificate/json.js';
import { certificateRows } from '../../proto/trace/certificate/rows.js';
import { root } from '../helpers/house/our-files.js';
import { scenarioLines } from '../helpers/sim/certified-run.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const folder = tempFolder(t);
/** A trace that breaks the rule cadence-too-fast. */
const broken = path.join(root, 'test/traces/cadence-too-fast.breaks-1.jsonl');

/** What a command printed, and its exit code. */
interface CommandResult {
  readonly text: string;
  readonly json: unknown;
  readonly code: number;
}

/** Runs a command in this process. */
async function run(command: () => Promise<void>): Promise<CommandResult> {
  try {
    const { lines, documents } = await captureOutput(command);
    return { text: lines.join('\n'), json: documents[0], code: Number(process.exitCode ?? 0) };
  } finally {
    process.exitCode = 0;
  }
}

function certify(files: readonly string[], flags: Parameters<typeof certifyTraces>[1]): Promise<CommandResult> {
  return run(() => certifyTraces(files, flags));
}

/** The lines of the trace of a built-in scenario. */
async function linesOfScenario(name: string, hasWorldEvents = false): Promise<string[]> {
  // Of locks without an injected bug.
  const traces = await scenarioLines(undefined, hasWorldEvents);
  return traces[builtInNames().indexOf(name)] ?? [];
}

/** Writes the traces of two scenarios into a new folder: airplane, and theft, gzipped. Returns the two files. */
async function traceFiles(test: Test): Promise<string[]> {
  const traces = tempFolder(test);
  const [plain, gzipped] = [path.join(traces, 'airplane.jsonl'), path.join(traces, 'theft.gz')];
  writeFileSync(plain, `${(await linesOfScenario('airplane')).join('\n')}\n`);
  writeFileSync(gzipped, gzipSync(`${(await linesOfScenario('theft')).join('\n')}\n`));
  return [plain, gzipped];
}

t.test('a certificate has its rows as JSON; a broken rule exits with 1', async (t) => {
  const files = await traceFiles(t);
  const clean = await certify(files, { json: true });
  t.equal(clean.code, 0);
  const certificate = clean.json as CertificateJson;
  t.match(certificate, { certificate: 'lockgate', failed: 0, firmware_reported: [{ version: '2.4.1' }] });
  t.match(certificate.traces[0]?.sha256, /^[0-9a-f]{64}$/);
  const rows = certificate.rows as { row: string; state: string | null; verdict: string; lines: string[] }[];
  t.equal(rows.length, certificate.passed + certificate.not_seen);
  const theft = rows.find(({ row }) => row === 'theft-gps-mid');
  t.match(theft, { state: 'MID', verdict: 'PASS' });
  t.match(theft?.lines[0], /\.gz:\d+$/);
  const failed = await certify([broken], { json: true });
  t.equal(failed.code, 1);
  t.ok((failed.json as CertificateJson).failed > 0);
  t.match((await certify([broken], {})).text, /theft-cadence: .*:\d+: cadence-too-fast: Two GPS pings/);
});

t.test('a page has no scripts or external resources, and shows each verdict as a word', async (t) => {
  const files = [...(await traceFiles(t)), broken];
  const out = path.join(folder, 'page.html');
  t.equal((await certify(files, { out, firmware: '<b>9"' })).code, 1);
  const html = readFileSync(out, 'utf8');
  t.notMatch(html, /<script|<link|<img|<iframe|url\(|@import|https?:\/\//i);
  t.notMatch(html, /<b>9"/);
  t.match(html, /^<!DOCTYPE html>\n<html lang="en">/);
  t.match(html, /No ping reports firmware &lt;b&gt;9&quot;/);
  t.equal(html.match(/<caption>/g)?.length, html.match(/<table>/g)?.length);
  for (const verdict of ['PASS', 'FAIL', 'NOT SEEN']) t.match(html, new RegExp(`</span> ${verdict}</td>`));
  for (const { row } of certificateRows(POWER_MODEL))
    t.ok(html.replaceAll('<wbr>', '').includes(`<code>${row}</code>`));
});

t.test(
  '--verify confirms a certificate, as a page and as JSON, whatever the folder and order of the traces',
  async (t) => {
    const files = await traceFiles(t);
    for (const name of ['cert.html', 'cert.json']) {
      const out = path.join(folder, name);
      await certify(files, { out, firmware: '2.4.1' });
      const copies = files.map((file) => path.join(folder, `copy-${path.basename(file)}`));
      for (const [index, copy] of copies.entries()) writeFileSync(copy, readFileSync(files[index] as string));
      t.match(
        await certify(copies.reverse(), { verify: out, json: true }),
        { code: 0, json: { verified: true } },
        name,
      );
    }
  },
);

// World events say what truly happened to the lock. A file with such events is the truth that --world compares with.
t.test('--world compares with another file, and --verify needs that file unchanged', async (t) => {
  const hasWorldEvents = true;
  const lines = await linesOfScenario('theft', hasWorldEvents);
  const isWorld = (line: string): boolean => line.includes('"event":"world"');
  const [trace, truth, out] = ['bare.jsonl', 'truth.jsonl.gz', 'world.html'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(trace, lines.filter((line) => !isWorld(line)).join('\n'));
  writeFileSync(truth, gzipSync(lines.join('\n')));
  const positionRow = async (flags: Parameters<typeof certifyTraces>[1]): Promise<unknown> =>
    ((await certify([trace], { ...flags, json: true })).json as CertificateJson).rows.find(
      (each) => (each as { row: string }).row === 'position-true',
    );
  t.match(await positionRow({}), { verdict: 'NOT SEEN' });
  t.match(await positionRow({ world: truth }), { verdict: 'PASS' });
  t.equal((await certify([trace], { world: truth, out })).code, 0);
  t.match(readFileSync(out, 'utf8'), /Compared with the truth .*truth/);
  t.match(await certify([trace], { verify: out, world: truth }), { code: 0 });
  t.match(await certify([trace], { verify: out }), { code: 1, text: /made with --world .*, which was not given/ });
  const withoutTheft = lines.filter((line) => !isWorld(line) && !line.includes('"reason":"REASON_THEFT"'));
  writeFileSync(trace, withoutTheft.join('\n'));
  const failed = await certify([trace], { world: truth });
  t.match(failed, { code: 1, text: /theft-cellular-mid: .*: owed: .*truth\.jsonl\.gz:\d+/ });
  writeFileSync(trace, lines.filter((line) => !isWorld(line)).join('\n'));
  writeFileSync(truth, gzipSync(lines.slice(0, -1).join('\n')));
  t.match(await certify([trace], { verify: out, world: truth }), {
    code: 1,
    text: /truth.* differs from the certified truth/,
  });
  await t.rejects(certify([trace], { world: trace }), { code: 'input-world', message: /no events of the world/ });
});

t.test('--verify finds a changed byte of a trace, a missing trace and an additional trace', async (t) => {
  const files = await traceFiles(t);
  const out = path.join(folder, 'bytes.html');
  await certify(files, { out });
  for (const [index, file] of files.entries()) {
    const bytes = readFileSync(file);
    for (const offset of [0, 20, bytes.length >> 1, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[offset] = (changed[offset] as number) ^ 1;
      writeFileSync(file, changed);
      const { code, text } = await certify(files, { verify: out });
      t.equal(code, 1, `file ${index}, byte ${offset}`);
      t.match(
        text,
        /differs from the certified trace: its SHA-256 is [0-9a-f]{64}, the certificate says [0-9a-f]{64}\./,
      );
    }
    writeFileSync(file, bytes);
  }
  t.match(await certify(files.slice(0, 1), { verify: out }), { code: 1, text: /which was not given/ });
  t.match(await certify([...files, broken], { verify: out }), { code: 1, text: /is not about .*cadence-too-fast/ });
  t.equal((await certify(files, { verify: out })).code, 0);
});

t.test('--verify finds a changed verdict, in the data and in the visible text', async (t) => {
  const files = await traceFiles(t);
  const [page, json] = [path.join(folder, 'forged.html'), path.join(folder, 'forged.json')];
  await certify(files, { out: page });
  await certify(files, { out: json });
  const html = readFileSync(page, 'utf8');
  writeFileSync(page, html.replace('</span> NOT SEEN</td>', '</span> PASS</td>'));
  t.match(await certify(files, { verify: page }), { code: 1, text: /differs from the data inside the page/ });
  writeFileSync(page, html.replaceAll('&quot;NOT SEEN&quot;', '&quot;PASS&quot;'));
  t.match(await certify(files, { verify: page }), {
    code: 1,
    text: /the certificate says PASS, seen 0; the traces show NOT/,
  });
  writeFileSync(json, readFileSync(json, 'utf8').replace('"NOT SEEN"', '"PASS"'));
  t.match(await certify(files, { verify: json }), { code: 1, text: /the certificate says PASS/ });
});

t.test('a file that is not a certificate, and a missing file, are input errors', async (t) => {
  const files = await traceFiles(t);
  await t.rejects(certify(files, { verify: files[0] as string }), { code: 'input-certificate' });
  await t.rejects(certify(files, { verify: path.join(folder, 'none.html') }), { code: 'input-file' });
  await t.rejects(certify([path.join(folder, 'none.jsonl')], {}), { code: 'input-file' });
  await t.rejects(certify(files, { out: path.join(folder, 'none', 'cert.html') }), { code: 'input-file' });
});

t.test(
  'trace check --require fails where a row was not seen, in each format, and counts all files together',
  async (t) => {
    const files = await traceFiles(t);
    const check = async (rows: string, format?: FormatName, ignore: readonly string[] = []): Promise<CommandResult> => {
      const flags: CheckFlags = { failOn: 'violation', ignore, require: [rows], ...(format && { format }) };
      return await run(() => checkTraces(files, flags));
    };
    t.match(await check('theft-gps-mid,airplane-silence'), { code: 0, text: /2 of 2 required rows seen\./ });
    t.match(await check('theft-gps'), { code: 0 }, 'seen in one of its states');
    const sentence = /theft-gps-high is required and was not seen/;
    for (const format of ['text', 'junit', 'github'] as const)
      t.match(await check('theft-gps-mid,theft-gps-high', format), { code: 1, text: sentence }, format);
    t.match(await check('theft-gps-high', 'html'), { code: 1, text: /theft-gps-high<\/th><td>NOT SEEN/ });
    t.match(await check('theft-gps-mid, theft-gps-high', 'json'), {
      code: 1,
      json: {
        required: [
          { row: 'theft-gps-mid', verdict: 'PASS' },
          { row: 'theft-gps-high', verdict: 'NOT SEEN', seen: 0 },
        ],
      },
    });
    await t.rejects(check('theft-gps-mdi'), { code: 'input-row', message: /Did you mean theft-gps-mid\?/ });
    files.push(broken);
    t.match(await check('theft-cadence'), { code: 1, text: /theft-cadence is required and failed/ });
    t.equal((await check('theft-cadence', 'text', ['cadence-too-fast'])).code, 0, 'an ignored rule does not count');
  },
);

t.test('docs/certificate.md lists the rows of the code', async (t) => {
  const text = readFileSync(path.join(root, 'docs/certificate.md'), 'utf8');
  const listed = [...text.matchAll(/^\| `([a-z-]+)` \| (.+?) \| (.+?) \| (.+?) \|$/gm)].map(([, ...cells]) => {
    return cells.map((cell) => cell.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1'));
  });
  const rows = certificateRows(POWER_MODEL).map(({ row, says, seenWhen, section }) => [row, says, seenWhen, section]);
  t.same(listed, rows);
});
