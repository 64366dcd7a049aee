/**
 * The operators' screens about the gateway itself, in a real browser on a real gateway (console.md): live events with
 * their filters, pause and JSON; the audit log page by page; the gateway's health; its settings. What locks, merchants
 * and clients wrote is shown as text, on a phone and on a desktop, light and dark, without a serious finding of axe.
 */
import got from 'got';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { resolveSettings } from '../../../gateway/resolved-settings.js';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { type Browser, type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../../clients/browser.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { goTo, periodPing, press, THEFT, TIMEOUT, uplinkNow, waitForText } from '../../helpers/console/page-actions.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { connackCode, TestLock } from '../../helpers/mqtt/test-lock.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);
/** Texts of strangers. Each would run as a script if a page put it into its HTML; the number says who wrote it. */
const SCRIPTS = {
  merchant: '<img src=x onerror="window.isInjected=1">',
  lock: '<img src=x onerror="window.isInjected=2">',
  agent: '<script>window.isInjected=3</script>',
  answer: '<svg onload="window.isInjected=4">',
  client: '<img src=x onerror="window.isInjected=5">',
};
const SCREENS = ['live', 'audit', 'nodes', 'settings'] as const;
/** More entries of the audit log than a page has. */
const CHANGES = 60;
/** How often the test makes more events than the gateway sends; it stops when the page shows that some were skipped. */
const MAX_BURSTS = 5;

/** What each step of the test uses: the gateway, the operator's page, and a lock of each of two merchants. */
interface Visit {
  readonly gateway: Gateway;
  readonly browser: Browser;
  readonly page: BrowserPage;
  readonly lock: TestLock;
  readonly other: TestLock;
}

/** The address of a one-time link. @param token of the caller; by default that of the data folder */
async function linkOf(gateway: Gateway, token?: string): Promise<string> {
  const { body } = await callOperator(gateway, 'POST', '/console/links', {}, token);
  return `http://127.0.0.1:${gateway.operatorPort}/#${(body as { readonly token: string }).token}`;
}

/** The text of each line, newest first. */
async function linesOf(page: BrowserPage): Promise<string[]> {
  return await page.evaluate<string[]>("[...document.querySelectorAll('.tail-text')].map((each) => each.innerText)");
}

/** Presses a key with the focus where it is. */
async function pressKey(page: BrowserPage, key: string): Promise<void> {
  const event = `new KeyboardEvent('keydown', { key: ${JSON.stringify(key)}, bubbles: true })`;
  await page.evaluate<void>(`(document.activeElement ?? document.body).dispatchEvent(${event})`);
}

/** Opens the screen of live events with this filter, and waits until the page follows the stream. */
async function openLive(page: BrowserPage, query = ''): Promise<void> {
  await goTo(page, `#/live${query}`);
  await page.waitForSelector('[data-stream=open], [data-stream=live]', TIMEOUT);
}

async function seeEvents(t: Test, { gateway, page, lock, other }: Visit): Promise<void> {
  await openLive(page);
  await waitForText(page, 'Nothing has happened yet');
  t.same(await seriousFindings(page), [], 'axe: without events');
  await lock.send(uplinkNow(1, periodPing('1.0')));
  await waitForText(page, 'REASON_PERIOD_TRACKING');
  await lock.send(
    uplinkNow(2, { kind: 'ack', commandId: 9, result: 'failed', detail: SCRIPTS.answer, highWindow: null }),
  );
  await waitForText(page, SCRIPTS.answer);
  await waitForText(page, SCRIPTS.lock);
  await waitForText(page, MERCHANT);
  await other.send(uplinkNow(1, periodPing('1.0')));
  await waitForText(page, SCRIPTS.merchant);
  // Anybody who reaches the port of locks can write a client id.
  await connackCode(gateway.mqttPort, { clientId: SCRIPTS.client, username: 'x', password: 'x' });
  await waitForText(page, SCRIPTS.client);
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null, 'scripts are text');
}

async function filterEvents(t: Test, { page, lock, other }: Visit): Promise<void> {
  await openLive(page, '?reason=REASON_THEFT');
  await waitForText(page, 'No event matches yet');
  await other.send(uplinkNow(2, periodPing('1.0')));
  await lock.send(uplinkNow(3, THEFT));
  await page.waitForSelector('.tail-row', TIMEOUT);
  const [theft, ...others] = await linesOf(page);
  t.match(theft, /REASON_THEFT/);
  t.same(others, []);
  await openLive(page, `?merchant=${encodeURIComponent(SCRIPTS.merchant)}&kind=ping`);
  await page.waitForFunction("document.querySelectorAll('.tail-row').length === 2", TIMEOUT);
  t.equal(
    await page.evaluate<string>("document.querySelector('select[name=merchant]').value"),
    SCRIPTS.merchant,
    'the address is what the fields show',
  );
  await openLive(page, `?lock=${encodeURIComponent(formatMac(MAC))}&search=theft`);
  await page.waitForFunction("document.querySelectorAll('.tail-row').length >= 1", TIMEOUT);
  t.ok((await linesOf(page)).every((line) => /theft/i.test(line)));
}

async function pauseEvents(t: Test, { page, lock }: Visit): Promise<void> {
  await openLive(page, '?kind=ping');
  await page.waitForSelector('.tail-row', TIMEOUT);
  await pressKey(page, 'p');
  await waitForText(page, 'paused, 0 new');
  const before = await linesOf(page);
  await lock.send(uplinkNow(4, THEFT));
  await waitForText(page, 'paused, 1 new');
  t.same(await linesOf(page), before);
  await press(page, 'Go on');
  await page.waitForFunction(`document.querySelectorAll('.tail-row').length === ${before.length + 1}`, TIMEOUT);
}

async function clickAt({ mouse }: BrowserPage, x: number, y: number): Promise<void> {
  await mouse.move(x, y);
  await mouse.down();
  await mouse.up();
}

async function readEvent(t: Test, { page }: Visit): Promise<void> {
  await openLive(page, '?reason=REASON_THEFT');
  await page.waitForSelector('.tail-row', TIMEOUT);
  await pressKey(page, 'j');
  await waitForText(page, 'paused');
  await pressKey(page, 'Enter');
  await page.waitForSelector('dialog[open] pre.json', TIMEOUT);
  const event = JSON.parse(await page.evaluate<string>("document.querySelector('pre.json').innerText"));
  t.match(event, { event: 'ping', mac: formatMac(MAC), ping: { reason: 'REASON_THEFT' } });
  t.same(await seriousFindings(page), [], 'axe: the JSON of an event');
  await page.evaluate<void>('document.querySelector(\'dialog [aria-label="Close"]\').click()');
  await page.waitForFunction("document.querySelector('dialog') === null", TIMEOUT);
  await page.evaluate<void>("document.querySelector('.list-row').click()");
  await page.waitForSelector('dialog[open] pre.json', TIMEOUT);
  const corner = "(({ left, top }) => [left, top])(document.querySelector('dialog').getBoundingClientRect())";
  const [left, top] = await page.evaluate<[number, number]>(corner);
  await clickAt(page, left + 5, top + 5);
  t.ok(await page.$('dialog'), 'a click on the padding of a dialog does not close it');
  await clickAt(page, left - 5, top - 5);
  await page.waitForFunction("document.querySelector('dialog') === null", TIMEOUT);
  await pressKey(page, 'p');
  await page.waitForFunction("document.querySelector('[aria-pressed=true]') === null", TIMEOUT);
}

/** Whether the page shows a text within a few seconds. Scrolls the list to its top, where the newest lines are. */
async function isShown(page: BrowserPage, text: string): Promise<boolean> {
  // The page has only the lines of a list that are in view.
  const toTop = "document.querySelector('.list')?.scrollTo(0, 0)";
  const condition = `(${toTop}, document.body.innerText.includes(${JSON.stringify(text)}))`;
  return await page.waitForFunction(condition, { timeout: Seconds(4) }).then(
    () => true,
    () => false,
  );
}

async function skipEvents(t: Test, { page, gateway }: Visit): Promise<void> {
  await openLive(page);
  // The audit log does not contain this event; the next test reads that log.
  const strayAck = { atMs: systemClock.now(), mac: MAC, commandId: 7, why: 'no such command' };
  // Of 1,500 events in one turn of the event loop, the gateway sends at most 1,000. If the page did not follow the
  // stream yet, it sees none of them: then the test tries again.
  let isSkipping = false;
  for (let burst = 1; burst <= MAX_BURSTS && !isSkipping; burst += 1) {
    for (let n = 0; n < 1_500; n++) gateway.events.emit('stray-ack', strayAck);
    isSkipping = await isShown(page, 'skipped: they came too fast');
  }
  t.ok(isSkipping, 'the page says that events were skipped');
  const rows = await page.evaluate<number>("document.querySelectorAll('.list-row').length");
  t.ok(rows < 100, `of 1,000 lines ${rows} are in the page`);
  await press(page, 'Clear');
  await waitForText(page, 'Nothing has happened yet');
}

async function readAudit(t: Test, { page, gateway }: Visit): Promise<void> {
  for (let n = 0; n < CHANGES; n++) await callOperator(gateway, 'POST', '/merchants', { name: `Merchant ${n}` });
  await goTo(page, '#/audit?action=merchant');
  await waitForText(page, `Merchant ${CHANGES - 1}`);
  await page.evaluate<void>("[...document.links].find(({ innerText }) => innerText === 'Older').click()");
  await waitForText(page, SCRIPTS.merchant);
  await page.evaluate<void>("[...document.querySelectorAll('tbody button')].at(-1).click()");
  await waitForText(page, SCRIPTS.agent);
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null, 'scripts are text');
  t.same(await seriousFindings(page), [], 'axe: an open entry');
  await page.evaluate<void>("[...document.links].find(({ innerText }) => innerText === 'Newest').click()");
  await waitForText(page, `Merchant ${CHANGES - 1}`);
  await goTo(page, '#/audit?object=nothing');
  await waitForText(page, 'No change matches');
  await press(page, 'Show all changes');
  await waitForText(page, `Merchant ${CHANGES - 1}`);
}

async function checkScreens(t: Test, { page }: Visit): Promise<void> {
  for (const width of [360, 1280]) {
    await page.setViewport({ width, height: 900 });
    for (const value of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
      for (const screen of SCREENS) {
        await goTo(page, `#/${screen}`);
        await page.waitForSelector(`#${screen}-title`, TIMEOUT);
        t.same(await seriousFindings(page), [], `${screen}, ${width}, ${value}`);
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        t.ok(overflow <= 0, `${screen}, ${width}: nothing sticks out (${overflow})`);
      }
    }
  }
}

async function readGateway(t: Test, { page, gateway }: Visit): Promise<void> {
  await goTo(page, '#/nodes');
  await waitForText(page, '✓ ready');
  const { body } = await callOperator(gateway, 'GET', '/status');
  const { version, store } = body as { readonly version: string; readonly store: string };
  await waitForText(page, version);
  await waitForText(page, store);
  await waitForText(page, 'There is none yet');
  await goTo(page, '#/settings?changed=yes');
  await page.waitForSelector('tbody tr', TIMEOUT);
  const [row, ...others] = await page.evaluate<string[]>(
    "[...document.querySelectorAll('tbody tr')].map((each) => each.innerText)",
  );
  t.match(row, /^--keep-days\s+45 \(default 400\)\s+• flag\s/);
  t.same(others, []);
  await goTo(page, '#/settings?search=no+such+setting');
  await waitForText(page, 'No setting matches');
}

/** Logs in with fewer rights, and then stops the gateway. */
async function seeErrors(t: Test, { page, gateway, browser }: Visit): Promise<void> {
  await press(page, 'Log out');
  const { body } = await callOperator(gateway, 'POST', '/tokens', { name: 'reader', role: 'read' });
  const reader = await browser.newPage();
  await reader.goto(await linkOf(gateway, (body as { readonly token: string }).token));
  await waitForText(reader, '(read)');
  await goTo(reader, '#/settings');
  await waitForText(reader, 'Only admins may see the settings');
  t.same(await seriousFindings(reader), [], 'axe: refused settings');
  await goTo(reader, '#/nodes');
  await waitForText(reader, '✓ ready');
  await gateway.close();
  await waitForText(reader, 'The gateway does not answer');
  await waitForText(reader, 'as of the last answer: ready');
  t.same(await seriousFindings(reader), [], 'axe: no answer');
  await goTo(reader, '#/live');
  await waitForText(reader, 'interrupted');
}

t.test('an operator watches the gateway on the console', { skip: NO_BROWSER }, async (t) => {
  const gateway = await testGateway(t, { settings: resolveSettings({ keepDays: '45' }, {}) });
  await got.post(`http://127.0.0.1:${gateway.operatorPort}/merchants`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}`, 'user-agent': SCRIPTS.agent },
    json: { name: SCRIPTS.merchant },
  });
  const connect = async (mac: typeof MAC, merchant: string, name: string): Promise<TestLock> => {
    const { secret } = await gateway.accounts.addDevice({ mac, merchant, name });
    return await TestLock.connect(t, gateway.mqttPort, mac, secret);
  };
  const [lock, other] = [
    await connect(MAC, MERCHANT, SCRIPTS.lock),
    await connect(OTHER_MAC, SCRIPTS.merchant, 'Other'),
  ];

  const browser = await openBrowser(t);
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => void dialog.accept());
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(await linkOf(gateway));
  await waitForText(page, '(admin)');

  const visit = { gateway, browser, page, lock, other };
  await t.test('events come as they happen, as text', (t) => seeEvents(t, visit));
  await t.test('filters select lines, and the address has them', (t) => filterEvents(t, visit));
  await t.test('a pause stops the lines and counts the new ones', (t) => pauseEvents(t, visit));
  await t.test('the keyboard opens an event as JSON', (t) => readEvent(t, visit));
  await t.test('events that came too fast are counted, and few lines are in the page', (t) => skipEvents(t, visit));
  await t.test('the audit log has who changed what, page by page', (t) => readAudit(t, visit));
  await t.test('the gateway’s health and settings are those of the command line', (t) => readGateway(t, visit));
  await t.test('no screen has a serious finding of axe or sticks out', (t) => checkScreens(t, visit));
  await t.test('a refusal and a gateway that stops are explained', (t) => seeErrors(t, visit));
  t.same(errors, [], 'no script failed');
});
