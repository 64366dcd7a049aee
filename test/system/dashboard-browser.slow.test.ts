/**
 * A merchant's day on the dashboard, in a real browser on a real gateway (console.md): log in, see a theft come up, ask
 * why, send a siren and see it done, make a key, use it with curl, revoke it, check a trace. No screen has a serious
 * finding of axe, nothing is loaded from another origin, and what a lock or merchant wrote is shown as text.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { formatMac } from '../../proto/wire/mac.js';
import { type Browser, type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../clients/browser.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { addUser, PASSWORD } from '../helpers/console/dashboard.js';
import {
  goTo,
  injectedElements,
  LOOKS,
  nextCommand,
  periodPing,
  press,
  THEFT,
  TIMEOUT,
  uplinkNow,
  waitForText,
} from '../helpers/console/page-actions.js';
import { MERCHANT, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { root } from '../helpers/house/our-files.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';

const MAC = testMac();
/** The lock's name and firmware version: HTML whose script would run if a page did not escape it. */
const HTML_NAME = '<img src=x onerror="window.isInjected=1">';

/** Names of an API key and a user: HTML that would become an element. */
const HTML_NAMES = { key: '<i class="injected">till', user: '<i class="injected">bob' } as const;

const HAS_CURL = spawnSync('curl', ['--version']).error === undefined;

/** What the parts of the day share: a page that is logged in as an owner, and the merchant's lock. */
interface Day {
  readonly gateway: Gateway;
  readonly lock: TestLock;
  readonly browser: Browser;
  readonly page: BrowserPage;
}

async function seeTheft(t: Test, { lock, page }: Day): Promise<void> {
  await lock.send(uplinkNow(2, THEFT));
  await waitForText(page, '1 lock needs attention');
  await waitForText(page, 'theft');
  t.ok(await page.evaluate<boolean>(`document.body.innerText.includes(${JSON.stringify(HTML_NAME)})`), 'as text');
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null);
}

/** A finding comes up, and one click explains it. */
async function readFinding(t: Test, { lock, page }: Day): Promise<void> {
  await goTo(page, '#/now');
  // A second daily ping within a day, which breaks a rule.
  await lock.send(uplinkNow(4, periodPing('1.0')));
  const table = 'section[aria-label=Findings]';
  await page.waitForSelector(`${table} a[href="#/lock/${formatMac(MAC)}"]`, TIMEOUT);
  const text = await page.evaluate<string>(`document.querySelector('${table}').innerText`);
  t.match(text, HTML_NAME, 'with the name of its lock');
  await page.evaluate<void>(`document.querySelector('${table} button').click()`);
  await page.waitForSelector('.why ol li', TIMEOUT);
}

/** Drags over the timeline before the only position: the map beside it has none while the drag lasts. */
async function brushTimeline(t: Test, page: BrowserPage): Promise<void> {
  await page.waitForSelector('.path[data-places="1"] .map canvas', TIMEOUT);
  await waitForText(page, '1 position; the last one ± 9 m');
  const svg = "document.querySelector('.timeline svg')";
  const mouse = (type: string, x: number) =>
    page.evaluate<void>(
      `{ const box = ${svg}.getBoundingClientRect();
         const at = { clientX: box.left + ${x}, clientY: box.top + 10, bubbles: true };
         ${svg}.dispatchEvent(new MouseEvent(${JSON.stringify(type)}, at)); }`,
    );
  await mouse('mousedown', 215);
  await mouse('mousemove', 235);
  await page.waitForSelector('.path[data-places="0"]', TIMEOUT);
  await waitForText(page, 'No position in this time');
  await mouse('mouseleave', 235);
  await page.waitForSelector('.path[data-places="1"]', TIMEOUT);
  t.pass('the drag ended without a choice, so the whole time is shown again');
}

async function soundSiren(t: Test, { lock, page }: Day): Promise<void> {
  const commanded = nextCommand(lock);
  await goTo(page, `#/lock/${formatMac(MAC)}`);
  await page.waitForSelector('.timeline .state.MID', TIMEOUT);
  t.ok(await page.$('.timeline .ping[data-item^="ping evt_"]'));
  await page.waitForSelector('.timeline .delivery.good[data-item^="delivery evt_"]', TIMEOUT);
  await brushTimeline(t, page);
  await press(page, 'Why?');
  await page.waitForSelector('.why ol li', TIMEOUT);
  await press(page, 'Siren');
  const commandId = await commanded;
  await page.waitForSelector('[data-command-state=sent]', TIMEOUT);
  const ack = { kind: 'ack', commandId, result: 'ok', detail: '', highWindow: null } as const;
  await lock.send(uplinkNow(3, ack));
  await page.waitForSelector('[data-command-state=done]', TIMEOUT);
}

/** Runs a curl line that the page shows, and returns the status of the answer. */
async function runCurl(line: string): Promise<number> {
  const onlyStatus = "--silent --output /dev/null --write-out '%{http_code}'";
  const { stdout } = await promisify(execFile)('sh', ['-c', `${line} ${onlyStatus}`]);
  return Number(stdout);
}

async function useKey(t: Test, { gateway, page }: Day): Promise<void> {
  await goTo(page, '#/access');
  await page.waitForSelector('input[name=name]', TIMEOUT);
  t.equal(await page.evaluate<number>("document.querySelector('input[name=name]').maxLength"), 200, 'as the gateway');
  await page.type('input[name=name]', 'till');
  await press(page, 'Make a key');
  await page.waitForSelector('[data-new-key]', TIMEOUT);
  const key = await page.evaluate<string>("document.querySelector('[data-new-key]').innerText");
  const line = await page.evaluate<string>("[...document.querySelectorAll('.once code')].at(-1).innerText");
  t.match(line, key);
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 200 });
  if (HAS_CURL) t.equal(await runCurl(line), 200, 'the line on the page works');
  await rename(page, 'till', 'counter');
  t.match(await gateway.merchants.apiKeys.list(MERCHANT), [{ name: 'counter' }]);
  await press(page, 'Revoke');
  await waitForText(page, 'revoked');
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 401 });
  if (HAS_CURL) t.equal(await runCurl(line), 401);
}

/** Renames the key or the lock that has this name. */
async function rename(page: BrowserPage, name: string, next: string): Promise<void> {
  await page.waitForSelector(`[aria-label="Rename ${name}"]`, TIMEOUT);
  await page.evaluate<void>(`document.querySelector('[aria-label="Rename ${name}"]').click()`);
  await page.waitForSelector('[aria-label="New name"]', TIMEOUT);
  // The present name is selected, so that typing replaces it.
  await page.type('[aria-label="New name"]', next);
  await press(page, 'Save');
  await page.waitForSelector(`[aria-label="Rename ${next}"]`, TIMEOUT);
}

async function nameLock(t: Test, { gateway, page }: Day): Promise<void> {
  await gateway.accounts.addDevice({ mac: testMac(2), merchant: MERCHANT, name: 'Bike 2' });
  await goTo(page, `#/lock/${formatMac(testMac(2))}`);
  await rename(page, 'Bike 2', 'Bike 7');
  await waitForText(page, 'Bike 7');
  t.match(await gateway.store.findDevice(testMac(2)), { device: { name: 'Bike 7' } });
}

/** Drops a recorded trace, whose name says that it breaks rules, and compares the counts with those of the CLI. */
async function judgeTrace(t: Test, { page }: Day): Promise<void> {
  const folder = join(root, 'test/traces');
  const file = readdirSync(folder).find((name) => name.includes('.breaks-')) ?? '';
  const { stdout } = await runCommand(['trace', 'check', join(folder, file), '--json']);
  const { violations, warnings } = JSON.parse(stdout) as { violations: number; warnings: number };
  await goTo(page, '#/trace');
  await page.waitForSelector('input[type=file]', TIMEOUT);
  await (await page.$('input[type=file]'))?.uploadFile(join(folder, file));
  await page.waitForSelector('.counts', TIMEOUT);
  const counts = await page.evaluate<string>("document.querySelector('.counts').innerText");
  t.match(counts, new RegExp(` ${violations === 0 ? 'no' : violations} violations?,`));
  t.match(counts, new RegExp(` ${warnings} warnings?$`));
}

/** What a screen must show before it is checked: names that are HTML, as text. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  now: [HTML_NAME],
  locks: [HTML_NAME],
  [`lock/${formatMac(MAC)}`]: [HTML_NAME],
  access: [HTML_NAMES.key, HTML_NAMES.user],
};

async function checkScreens(t: Test, { gateway, page }: Day): Promise<void> {
  await gateway.merchants.apiKeys.create(MERCHANT, HTML_NAMES.key);
  await addUser(gateway, MERCHANT, HTML_NAMES.user, 'viewer');
  for (const [value, width] of LOOKS) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
    await page.setViewport({ width, height: 900 });
    for (const address of ['now', 'locks', 'map', `lock/${formatMac(MAC)}`, 'deliveries', 'access', 'bills', 'trace']) {
      await goTo(page, `#/${address}`);
      await page.waitForFunction("document.querySelector('main h1, main .map, main .empty') !== null", TIMEOUT);
      for (const text of SHOWN[address] ?? []) await waitForText(page, text);
      t.same(await seriousFindings(page), [], `${address}, ${value}, ${width} px`);
      t.equal(await injectedElements(page), 0, `${address} shows names as text`);
    }
  }
}

/** An image without a text alternative is a serious finding of axe. */
async function checkTheCheck(t: Test, { page }: Day): Promise<void> {
  await page.evaluate<void>("document.querySelector('main').append(document.createElement('img'))");
  t.match(await seriousFindings(page), [/^image-alt: <img>/]);
}

async function invite(t: Test, { browser, page }: Day): Promise<void> {
  await goTo(page, '#/access');
  await press(page, 'Invite');
  await waitForText(page, 'it works once');
  const link = await page.evaluate<string>("document.querySelector('.once code').innerText");
  await press(page, 'Log out');
  await page.waitForSelector('input[name=merchant]', TIMEOUT);
  const guest = await browser.newPage();
  await guest.goto(link);
  await guest.waitForSelector('input[name=repeated]', TIMEOUT);
  t.equal(await guest.evaluate<string>('location.hash'), '', 'the address has no token any more');
  t.same(await seriousFindings(guest), [], 'axe: invitation');
  await guest.type('input[name=username]', 'grace');
  await guest.type('input[name=password]', PASSWORD);
  await guest.type('input[name=repeated]', PASSWORD);
  await press(guest, 'Accept');
  await waitForText(guest, 'grace (viewer)');
  t.notOk(await guest.evaluate<boolean>("document.body.innerText.includes('Bills')"), 'a viewer sees no bills');
  const second = await browser.newPage();
  await second.goto(link);
  await second.waitForSelector('[role=alert]', TIMEOUT);
}

t.test('a merchant’s day on the dashboard', { skip: NO_BROWSER }, async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant: MERCHANT, name: HTML_NAME });
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url, headers: {} });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.client.subscribeAsync('down', { qos: 1 });
  await lock.send(uplinkNow(1, periodPing(HTML_NAME)));

  const browser = await openBrowser(t);
  const page = await browser.newPage();
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  /** Requests to other origins. */
  const foreign: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) foreign.push(request.url());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => void dialog.accept());
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(origin);
  await page.waitForSelector('input[name=merchant]', TIMEOUT);
  t.same(await seriousFindings(page), [], 'axe: login');
  const help = await page.evaluate<string>("fetch(document.querySelector('.help-link').href).then((a) => a.text())");
  t.match(help, '<title>', 'help without a login');
  await page.type('input[name=merchant]', MERCHANT);
  await page.type('input[name=username]', 'ada');
  await page.type('input[name=password]', PASSWORD);
  await page.click('button[type=submit]');
  await waitForText(page, 'No lock needs attention');

  const day = { gateway, lock, browser, page };
  await t.test('a theft comes up by itself', (t) => seeTheft(t, day));
  await t.test('the lock has a timeline, a why, and a siren whose end is seen', (t) => soundSiren(t, day));
  await t.test('a finding comes up, and why', (t) => readFinding(t, day));
  await t.test('the map names the town', async () => {
    await goTo(page, '#/map');
    const names = "[...document.querySelectorAll('.map .town')].map((each) => each.textContent)";
    await page.waitForFunction(`${names}.includes('Amsterdam')`, TIMEOUT);
  });
  await t.test('a key is made, used, and revoked', (t) => useKey(t, day));
  await t.test('a lock is renamed', (t) => nameLock(t, day));
  await t.test('a trace is judged in the page as the CLI judges it', (t) => judgeTrace(t, day));
  await t.test('no screen has a serious finding of axe, light or dark', (t) => checkScreens(t, day));
  await t.test('the check of accessibility finds what is wrong', (t) => checkTheCheck(t, day));
  await t.test('an invited person accepts and is logged in; the link works once', (t) => invite(t, day));

  t.same(foreign, [], 'nothing is loaded from elsewhere');
  t.same(errors, [], 'no script failed');
});
