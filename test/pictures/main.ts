/**
 * `npm run pictures`: runs the demo with a seed, drives the dashboard in Chromium, and writes the pictures that README
 * and docs/console.md show, one of the terminal among them. With `--look FOLDER` it writes every screen of the
 * merchants' dashboard and of the operators' console there instead, in three widths, light and dark, for somebody to
 * look at.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Seconds, systemClock } from '../../proto/clock.js';
import { type Browser, type BrowserPage, NO_BROWSER, openBrowser } from '../clients/browser.js';
import { LOCKGATE } from '../helpers/cli/program.js';
import { root } from '../helpers/house/our-files.js';
import { type RunningDemo, startDemo } from './demo.js';
import { smallerPng } from './smaller-png.js';
import { terminalPage } from './terminal.js';

const PICTURES = join(root, 'docs/pictures');
/** Of the dashboard's user, whom the demo's link invites. */
const PASSWORD = 'correct horse battery';
const TIMEOUT = { timeout: Seconds(60) };
/** After this, a view has drawn its map and its lists. */
const SETTLE = Seconds(3);

/** The size of a window, CSS pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

const DOCS_SIZE: Size = { width: 1280, height: 800 };
const LOOK_SIZES: readonly Size[] = [
  { width: 360, height: 740 },
  { width: 1280, height: 800 },
  { width: 2560, height: 1300 },
];

/** A view: its file's name, its address (what follows `#/`), and what is done once it is there. */
interface View {
  readonly name: string;
  readonly address: string;
  readonly prepare?: (page: BrowserPage) => Promise<void>;
}

/** The views of the dashboard that the documentation shows. Waits until a lock is being stolen. */
async function viewsOf({ waitForStolen }: RunningDemo): Promise<readonly View[]> {
  const stolen = await waitForStolen();
  return [
    // The stolen lock first, while it is still on its way.
    { name: 'lock', address: `lock/${stolen}` },
    { name: 'map', address: `map?lock=${stolen}` },
    { name: 'now', address: 'now' },
    { name: 'locks', address: 'locks' },
    { name: 'deliveries', address: 'deliveries' },
    { name: 'access', address: 'access' },
    { name: 'bills', address: 'bills' },
    { name: 'trace', address: 'trace', prepare: dropTrace },
  ];
}

/** The screens that only the operators' console has, and those that look different there than on the dashboard. */
const OPERATOR_VIEWS: readonly View[] = ['now', 'deliveries', 'live', 'audit', 'nodes', 'settings'].map((address) => {
  return { name: `operator-${address}`, address };
});

/** Firmware bugs whose findings differ: some in each lock, some in one. */
const BUGS = ['period-every-6h', 'sequence-skips', 'clock-steps-back:1', 'theft-while-unlocked:1'];

/** Drops the trace of a day of three simulated locks that break several rules. */
async function dropTrace(page: BrowserPage): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'lockgate-trace-'));
  const file = join(folder, 'three-locks.jsonl');
  const bugs = BUGS.flatMap((bug) => ['--bug', bug]);
  const run = ['sim', 'run', '--virtual', '--locks', '3', '--days', '1', '--seed', '7', ...bugs, '--out', file];
  execFileSync(process.execPath, [LOCKGATE, ...run], { stdio: 'ignore' });
  await page.waitForSelector('input[type=file]', TIMEOUT);
  await (await page.$('input[type=file]'))?.uploadFile(file);
  await page.waitForSelector('.counts', TIMEOUT);
  rmSync(folder, { recursive: true, force: true });
}

/** Waits for the button with this text, and presses it. */
async function press(page: BrowserPage, text: string): Promise<void> {
  const button = `[...document.querySelectorAll('button')].find((each) => each.innerText.trim() === '${text}')`;
  await page.waitForFunction(`${button} !== undefined`, TIMEOUT);
  await page.evaluate<void>(`${button}.click()`);
}

/** Opens the page with the demo's invitation. */
async function openInvitation(page: BrowserPage, link: string): Promise<void> {
  await page.setViewport(DOCS_SIZE);
  await page.goto(link);
  await page.waitForSelector('input[name=repeated]', TIMEOUT);
}

/** Accepts the invitation, which logs in. */
async function logIn(page: BrowserPage): Promise<void> {
  await page.type('input[name=password]', PASSWORD);
  await page.type('input[name=repeated]', PASSWORD);
  await press(page, 'Accept');
  await page.waitForSelector('.nav', TIMEOUT);
}

/** Shows a view in this size and theme (`light` or `dark`), and writes its picture to a file. */
async function take(page: BrowserPage, view: View, size: Size, theme: string, file: string): Promise<void> {
  await show(page, size, theme);
  await page.evaluate<void>(`{ location.hash = ${JSON.stringify(`#/${view.address}`)}; scrollTo(0, 0); }`);
  await view.prepare?.(page);
  await page.waitForFunction("document.querySelector('main h1, main .map') !== null", TIMEOUT);
  await page.waitForFunction("!document.body.innerText.includes('Loading …')", TIMEOUT);
  await new Promise<void>((resolve) => void systemClock.after(SETTLE, resolve));
  await writePicture(page, file);
}

async function show(page: BrowserPage, size: Size, theme: string): Promise<void> {
  await page.setViewport(size);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
}

async function writePicture(page: BrowserPage, file: string): Promise<void> {
  const picture = smallerPng(Buffer.from(await page.screenshot({ type: 'png' })));
  writeFileSync(file, picture);
  console.log(`${file}: ${Math.ceil(picture.length / 1000)} kB`);
}

/** Writes the picture of the terminal in which the demo runs. */
async function takeTerminal(page: BrowserPage, { printed }: RunningDemo, data: string, file: string): Promise<void> {
  await page.setViewport(DOCS_SIZE);
  await page.goto(`data:text/html;base64,${Buffer.from(terminalPage(printed, data)).toString('base64')}`);
  await writePicture(page, file);
}

type Take = (size: Size, theme: string, file: string) => Promise<void>;

/** Takes something in every size, light and dark. */
async function inEachLook(folder: string, name: string, takeOne: Take): Promise<void> {
  for (const theme of ['light', 'dark'])
    for (const size of LOOK_SIZES) await takeOne(size, theme, join(folder, `${name}-${size.width}-${theme}.png`));
}

/** Takes the page as it is now, such as a form before the login. */
async function lookAtPage(page: BrowserPage, name: string, folder: string): Promise<void> {
  await inEachLook(folder, name, async (size, theme, file) => {
    await show(page, size, theme);
    await writePicture(page, file);
  });
}

/** Takes every screen of the dashboard and of the operators' console, the forms before the login, and the help. */
async function lookAtAll(
  browser: Browser,
  page: BrowserPage,
  { demo, data, folder }: { readonly demo: RunningDemo; readonly data: string; readonly folder: string },
): Promise<void> {
  const look = async (from: BrowserPage, view: View): Promise<void> =>
    inEachLook(folder, view.name, (size, theme, file) => take(from, view, size, theme, file));
  for (const view of await viewsOf(demo)) await look(page, view);
  const other = await browser.newPage();
  await other.goto(demo.console);
  await other.waitForSelector('main, form', TIMEOUT);
  await lookAtPage(other, 'operator-link', folder);
  const token = readFileSync(join(data, 'operator-token'), 'utf8').trim();
  const asked = await fetch(new URL('/console/links', demo.console), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const link = (await asked.json()) as { readonly token: string };
  // Only the fragment changes, so the page is not loaded again: it sees the link, and logs in.
  await other.goto(`${demo.console}/#${link.token}`);
  await other.waitForSelector('.nav', TIMEOUT);
  for (const view of OPERATOR_VIEWS) await look(other, view);
  await other.goto(new URL('/help/', demo.console).href);
  await other.waitForSelector('main h1', TIMEOUT);
  await lookAtPage(other, 'help', folder);
  await press(page, 'Log out');
  await page.waitForSelector('input[name=merchant]', TIMEOUT);
  await lookAtPage(page, 'login', folder);
}

/** Takes the documentation's pictures, or, with a folder to look at, every view in each size and theme. */
async function main(lookFolder: string | undefined): Promise<void> {
  if (NO_BROWSER !== false) throw new Error(NO_BROWSER);
  const data = mkdtempSync(join(tmpdir(), 'lockgate-pictures-'));
  const closers: (() => Promise<void>)[] = [async () => rmSync(data, { recursive: true })];
  try {
    console.log('Running the demo until a lock is stolen and followed; this takes some minutes.');
    const demo = await startDemo(data, (close) => closers.push(close));
    const browser = await openBrowser({ teardown: (close) => closers.push(close) });
    const page = await browser.newPage();
    await openInvitation(page, demo.dashboard);
    if (lookFolder !== undefined) {
      mkdirSync(lookFolder, { recursive: true });
      await lookAtPage(page, 'invitation', lookFolder);
      await logIn(page);
      await lookAtAll(browser, page, { demo, data, folder: lookFolder });
      return;
    }
    await logIn(page);
    mkdirSync(PICTURES, { recursive: true });
    for (const view of await viewsOf(demo)) {
      await take(page, view, DOCS_SIZE, 'light', join(PICTURES, `${view.name}.png`));
      if (view.name === 'lock') await take(page, view, DOCS_SIZE, 'dark', join(PICTURES, 'lock-dark.png'));
    }
    await takeTerminal(page, demo, data, join(PICTURES, 'terminal.png'));
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

const [flag, folder] = process.argv.slice(2);
await main(flag === '--look' ? folder : undefined);
