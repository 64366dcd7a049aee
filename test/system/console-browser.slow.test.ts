/**
 * An operator's day on the console, in a real browser on a real gateway (console.md): open the one-time link, see a
 * theft come up, ask why, send a siren and see it done, resend a dead delivery, log out. The link works once. No screen
 * has a serious finding of axe, and nothing is loaded from another origin.
 */
import t, { type Test } from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { formatMac } from '../../proto/wire/mac.js';
import { type Browser, type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../clients/browser.js';
import { runCommand } from '../helpers/cli/command-line.js';
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
import { MERCHANT, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import type { TestReceiver } from '../helpers/gateway/test-receiver.js';
import { advanceToNextTimer, eventually, setUpWebhooks } from '../helpers/gateway/webhook-setup.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';

const MAC = testMac();
/** The lock's name and firmware version: HTML whose script would run if a page did not escape it. */
const HTML_NAME = '<img src=x onerror="window.isInjected=1">';
/** What the merchant's receiver answers to a webhook, which the console shows. */
const RECEIVER_ANSWER = '<script>window.isInjected=2</script><i class="injected">no room today';
/** After so many failed attempts a delivery is dead: the gateway gives it up. */
const MAX_ATTEMPTS = 8;

/** The login screen's button in a browser that has a session. */
const GO_ON = 'Go on with the open session';

/** What the parts of the day share: the operator's page, and a merchant's lock and receiver. */
interface Day {
  readonly gateway: Gateway;
  readonly receiver: TestReceiver;
  readonly lock: TestLock;
  readonly browser: Browser;
  readonly page: BrowserPage;
  /** The one-time link. */
  readonly link: string;
}

/** The link that the command prints. */
async function askForLink(gateway: Gateway): Promise<string> {
  const environment = {
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  return (await runCommand(['console'], { environment })).stdout.trim();
}

async function logIn(t: Test, { browser, page, link }: Day): Promise<void> {
  await page.goto(link.replace(/#.*/, ''));
  await waitForText(page, 'lockgate console');
  t.same(await seriousFindings(page), [], 'axe: login');
  await page.goto(link);
  await waitForText(page, '(admin)');
  const otherTab = await browser.newPage();
  await otherTab.goto(link);
  t.notMatch(await page.evaluate<string>('location.href'), /lgl_/, 'the address has no token any more');
  await otherTab.waitForSelector('[role=alert]', TIMEOUT);
  await waitForText(otherTab, 'was used already');
  await waitForText(otherTab, GO_ON);
  t.notMatch(await otherTab.evaluate<string>('location.href'), /lgl_/);
  await otherTab.close();
}

async function seeTheft(t: Test, { lock, page }: Day): Promise<void> {
  await waitForText(page, 'No lock needs attention');
  await lock.send(uplinkNow(2, THEFT));
  await waitForText(page, '1 lock needs attention');
  await waitForText(page, MERCHANT);
  t.ok(await page.evaluate<boolean>(`document.body.innerText.includes(${JSON.stringify(HTML_NAME)})`), 'as text');
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null);
}

async function soundSiren(t: Test, { lock, page }: Day): Promise<void> {
  const commanded = nextCommand(lock);
  await page.evaluate<void>('document.querySelector(\'section[aria-label="Locks in trouble"] a\').click()');
  await page.waitForSelector('.timeline .state.MID', TIMEOUT);
  t.ok(await page.$('.timeline .ping[data-item^="ping evt_"]'));
  await press(page, 'Why?');
  await page.waitForSelector('.why ol li', TIMEOUT);
  await press(page, 'Siren');
  const commandId = await commanded;
  await page.waitForSelector('[data-command-state=sent]', TIMEOUT);
  await lock.send(uplinkNow(3, { kind: 'ack', commandId, result: 'ok', detail: '', highWindow: null }));
  await page.waitForSelector('[data-command-state=done]', TIMEOUT);
}

async function readFinding(t: Test, { lock, page }: Day): Promise<void> {
  await goTo(page, '#/now');
  await waitForText(page, 'needs attention');
  // A second daily ping within a day, which breaks a rule.
  await lock.send(uplinkNow(4, periodPing('1.0')));
  const table = 'section[aria-label=Findings]';
  await page.waitForSelector(`${table} a[href="#/lock/${formatMac(MAC)}"]`, TIMEOUT);
  t.ok(await page.evaluate<boolean>(`document.querySelector('${table}').innerText.includes('${HTML_NAME}')`));
  await press(page, 'Why?');
  await page.waitForSelector('.why ol li', TIMEOUT);
}

/** While nobody sees the page of a lock, its past is not loaded for each ping, and at once when it is seen again. */
async function hidePage(t: Test, { lock, page }: Day): Promise<void> {
  const setHidden = (isHidden: boolean) =>
    page.evaluate<void>(`{
      Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} });
      document.dispatchEvent(new Event('visibilitychange'));
    }`);
  // Counted when they begin: a call that was under way when the page was hidden may still end.
  let pingCalls = 0;
  page.on('request', (request) => {
    if (/\/pings\?/.test(request.url())) pingCalls += 1;
  });
  await goTo(page, `#/lock/${formatMac(MAC)}`);
  await page.waitForSelector('.timeline', TIMEOUT);
  await setHidden(true);
  // The stream goes on, so that the page shows when it has got a ping.
  const sendPing = async (sequence: number, batteryPercent: number): Promise<void> => {
    await lock.send(uplinkNow(sequence, { ...THEFT, batteryPercent }));
    await waitForText(page, `${batteryPercent} %`);
  };
  // With the first one, all is drawn that came before the page was hidden, and so the calls for that have begun.
  await sendPing(5, 44);
  const before = pingCalls;
  // By the second of these a call for the first would be made.
  await sendPing(6, 43);
  await sendPing(7, 42);
  // The browser answers this after it has reported all requests that began before.
  await page.evaluate<void>('0');
  t.equal(pingCalls, before, 'nothing is loaded while the page is hidden');
  await setHidden(false);
  await eventually('a call for the pings', () => pingCalls > before);
}

async function resendDead(t: Test, { page, receiver }: Day): Promise<void> {
  await goTo(page, '#/deliveries?state=dead');
  await page.waitForSelector('.deliveries li', TIMEOUT);
  await page.waitForSelector('svg.hours rect.dead', TIMEOUT);
  await press(page, '▸ ✗ dead');
  await waitForText(page, RECEIVER_ANSWER);
  t.equal(await injectedElements(page), 0, 'the answer is text');
  const before = receiver.requests.length;
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await press(page, 'Resend');
  await receiver.waitForRequests(before + 1);
  t.equal(receiver.requests.at(-1)?.json.mac_addr, formatMac(MAC));
  await page.waitForFunction("document.querySelector('.deliveries li') === null", TIMEOUT);
}

const SCREENS = ['now', 'locks', 'map', 'deliveries', 'live', 'audit', 'nodes', 'settings', 'trace'];

async function checkScreens(t: Test, { page }: Day): Promise<void> {
  for (const [value, width] of LOOKS) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
    await page.setViewport({ width, height: 900 });
    for (const address of [...SCREENS, `lock/${formatMac(MAC)}`]) {
      await goTo(page, `#/${address}`);
      await page.waitForFunction("document.querySelector('main h1, main .map, main .empty') !== null", TIMEOUT);
      t.same(await seriousFindings(page), [], `${address}, ${value}, ${width} px`);
      t.equal(await injectedElements(page), 0, `${address} shows texts as text`);
    }
  }
}

async function logOut(t: Test, { browser, page, link }: Day): Promise<void> {
  await press(page, 'Log out');
  await waitForText(page, 'lockgate console');
  const again = await browser.newPage();
  await again.goto(link);
  await waitForText(again, 'was used already');
  t.notOk(await again.evaluate<boolean>(`document.body.innerText.includes('${GO_ON}')`), 'there is no session');
}

/** Sends a ping whose delivery fails until it is dead. */
async function makeDead({ clock, gateway, receiver }: Awaited<ReturnType<typeof setUpWebhooks>>, lock: TestLock) {
  receiver.answer = (_request, response) => void response.writeHead(503).end(RECEIVER_ANSWER);
  const dead = waitForEvents(gateway, 'delivery', 1, ({ outcome }) => outcome === 'dead');
  let attempts = 0;
  gateway.events.on('delivery', () => {
    attempts += 1;
  });
  await lock.send(uplinkNow(1, periodPing(HTML_NAME)));
  for (let retry = 1; retry < MAX_ATTEMPTS; retry++) {
    await eventually('an attempt', () => attempts === retry && clock.nextDueMs !== undefined);
    await advanceToNextTimer(clock);
  }
  await dead;
}

t.test('an operator’s day on the console', { skip: NO_BROWSER }, async (t) => {
  const setup = await setUpWebhooks(t);
  const { gateway, receiver } = setup;
  const { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant: MERCHANT, name: HTML_NAME });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.client.subscribeAsync('down', { qos: 1 });
  await makeDead(setup, lock);

  const browser = await openBrowser(t);
  const page = await browser.newPage();
  const origin = `http://127.0.0.1:${gateway.operatorPort}`;
  /** Requests to other origins. */
  const foreign: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) foreign.push(request.url());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => void dialog.accept());
  await page.setViewport({ width: 1280, height: 900 });

  const day = { gateway, receiver, lock, browser, page, link: await askForLink(gateway) };
  await t.test('the one-time link logs in, once', (t) => logIn(t, day));
  await t.test('a theft comes up by itself', (t) => seeTheft(t, day));
  await t.test('the lock has a timeline and an explanation of a ping; a siren command becomes done', (t) =>
    soundSiren(t, day),
  );
  await t.test('a dead delivery is read and sent again', (t) => resendDead(t, day));
  await t.test('a finding comes up by itself, with an explanation', (t) => readFinding(t, day));
  await t.test('a page that nobody sees loads nothing', (t) => hidePage(t, day));
  await t.test('no screen has a serious finding of axe, light or dark', (t) => checkScreens(t, day));
  await t.test('after the logout there is no way back with the link', (t) => logOut(t, day));

  t.same(foreign, [], 'nothing is loaded from elsewhere');
  t.same(errors, [], 'no script failed');
});
