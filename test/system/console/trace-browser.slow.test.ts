/**
 * QA drops a trace on the Trace screen, in a real browser on a real gateway, and sees what `lockgate trace check` finds
 * in it: the same findings, all of them, in the same order and words. The trace is a virtual run with firmware bugs;
 * test/long/sizes/trace-browser.test.ts drops one of 100,000 lines. A worker judges them, so that the page answers the
 * reader meanwhile.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseBugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../../clients/browser.js';
import { runCommand } from '../../helpers/cli/command-line.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { goTo, TIMEOUT, waitForText } from '../../helpers/console/page-actions.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { eachLine } from '../../helpers/sim/each-line.js';
import { RUN_STARTS_MS } from '../../helpers/sim/judged-run.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const SEED = 'qa';
const LINES = quickOrLong(2_000, 100_000);
/** Bugs of some locks (how many of the 12). In the long form they make more findings than a page could hold as rows. */
const BUGS = ['clock-ahead:2', 'theft-while-unlocked:3', 'no-close-pings:2'];
const MIN_FINDINGS = quickOrLong(100, 10_000);
const MAX_JUDGING = quickOrLong(Seconds(20), Seconds(90));
const MAX_HEAP_BYTES = 150e6;
const MAX_ROWS_IN_PAGE = 200;

t.setTimeout(Minutes(5));

/** Writes the first lines of the run. */
function writeTrace(t: Test): string {
  const lines: string[] = [];
  const options = { seed: SEED, locks: 12, days: 30, startMs: RUN_STARTS_MS, note: '', hasWorldEvents: false };
  const trace = new VirtualTrace(
    { ...options, pace: 'lively', bugs: BUGS.map(parseBugAssignment) },
    eachLine((line) => lines.push(line)),
  );
  while (lines.length < LINES && trace.nowMs < trace.endMs) trace.advance(trace.nowMs + Hours(1));
  const file = join(tempFolder(t), 'run.jsonl');
  writeFileSync(file, `${lines.slice(0, LINES).join('\n')}\n`);
  return file;
}

/** What `trace check --json` says about a file. */
interface CheckedFile {
  readonly pings: number;
  readonly findings: readonly {
    readonly line: number;
    readonly mac: string;
    readonly rule: string;
    readonly severity: string;
    readonly message: string;
    readonly boot: number | null;
    readonly sequence: number | null;
  }[];
}

/** Checks the file with `lockgate trace check`. */
async function checkedByCli(file: string): Promise<CheckedFile> {
  const { stdout } = await runCommand(['trace', 'check', file, '--json']);
  const [checked] = (JSON.parse(stdout) as { readonly files: readonly CheckedFile[] }).files;
  if (checked === undefined) throw new Error(stdout);
  return checked;
}

/** Drops a file on the screen, as a hand does with the mouse. */
async function drop(page: BrowserPage, file: string): Promise<void> {
  await page.evaluate<void>(`{
    const input = document.createElement('input');
    input.type = 'file';
    input.id = 'hand';
    document.body.append(input);
  }`);
  await (await page.$('#hand'))?.uploadFile(file);
  await page.evaluate<void>(`{
    const input = document.querySelector('#hand');
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(input.files[0]);
    document.querySelector('section.trace').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true }));
    input.remove();
  }`);
}

/** Scrolls through the list of findings to its end, and returns the text of each row, its columns joined by spaces. */
const READ_LIST = `(async () => {
  const list = document.querySelector('.list[aria-label=Findings]');
  const rows = [];
  let mostRows = 0;
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  for (let top = 0; top < list.scrollHeight; top += list.clientHeight) {
    list.scrollTop = top;
    await frame();
    const shown = [...list.querySelectorAll('.list-row')];
    mostRows = Math.max(mostRows, shown.length);
    for (const row of shown)
      rows[row.ariaPosInSet - 1] = [...row.firstChild.children].map((each) => each.textContent).join(' ');
  }
  return { rows, mostRows };
})()`;

/** The row of the list that a finding of the CLI must have. */
function rowOf({ severity, line, rule, mac, boot, sequence, message }: CheckedFile['findings'][number]): string {
  const uplink = boot === null ? '' : `${boot}/${sequence}`;
  return [severity === 'violation' ? '▼' : '○', line, rule, mac, uplink, message].join(' ');
}

t.test('QA drops a trace and sees the findings of the CLI', { skip: NO_BROWSER }, async (t) => {
  const file = writeTrace(t);
  const { pings, findings } = await checkedByCli(file);
  const violations = findings.filter(({ severity }) => severity === 'violation').length;
  t.ok(findings.length >= MIN_FINDINGS && violations > 0, `${findings.length} findings, ${violations} violations`);

  const gateway = await testGateway(t);
  const page = await (await openBrowser(t)).newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.setViewport({ width: 1280, height: 900 });
  const { body } = await callOperator(gateway, 'POST', '/console/links', {});
  await page.goto(`http://127.0.0.1:${gateway.operatorPort}/#${(body as { readonly token: string }).token}`);
  await waitForText(page, '(admin)');
  await goTo(page, '#/trace');
  await page.waitForSelector('section.trace', TIMEOUT);

  const workers: string[] = [];
  page.on('workercreated', (worker) => workers.push(worker.url()));
  await drop(page, file);
  await page.waitForSelector('.counts', { timeout: MAX_JUDGING });
  t.match(workers, [/\/trace-worker[^/]*\.js$/], 'a worker judged the trace, not the page');

  const number = (count: number): string => count.toLocaleString('en-US');
  await waitForText(page, `${number(pings)} pings of 12 locks`);
  await waitForText(page, `✗ ${number(violations)} violations`);
  await waitForText(page, `${number(findings.length - violations)} warnings`);
  const { rows, mostRows } = await page.evaluate<{ rows: string[]; mostRows: number }>(READ_LIST);
  t.equal(rows.length, findings.length, 'all findings are listed');
  const expected = findings.map(rowOf);
  // -1 if no row differs: then both sides of the comparison are undefined.
  const different = expected.findIndex((row, index) => row !== rows[index]);
  t.same(rows[different], expected[different], 'the list is that of the CLI');
  t.ok(mostRows < MAX_ROWS_IN_PAGE, `${mostRows} rows are in the page at once`);
  const { JSHeapUsedSize: heapBytes = 0 } = await page.metrics();
  t.ok(heapBytes < MAX_HEAP_BYTES, `heap ${(heapBytes / 1e6).toFixed(0)} MB`);
  t.same(await seriousFindings(page), [], 'axe');
  t.same(errors, [], 'no script failed');
});
