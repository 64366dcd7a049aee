/**
 * What strangers write is text on both pages, in a real browser on a real gateway (console.md): each string that a
 * lock, a merchant, a user or a client can set has markup in it; ../console-browser.slow.test.ts has that of a
 * receiver. Each must be seen somewhere as it was written, and no screen may turn one into an element. The
 * Content-Security-Policy, which would keep such a script from running, is not trusted here.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { type BrowserPage, NO_BROWSER, openBrowser } from '../../clients/browser.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { addUser, Dashboard, PASSWORD } from '../../helpers/console/dashboard.js';
import { goTo, nextCommand, periodPing, TIMEOUT, uplinkNow, waitForText } from '../../helpers/console/page-actions.js';
import { testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const LOCK = `lock/${formatMac(MAC)}`;

/** Markup that a page must not take as such; the name says who wrote it. At most 60 characters, as labels have. */
function markup(name: string): string {
  return `<script>isInjected=1</script><i class=injected>${name}`;
}

/** Who can write what, and where each page shows it: the screens of the merchants' page, and of the operators'. */
const TEXTS = {
  merchant: { text: markup('merchant'), dashboard: 'now', console: LOCK },
  user: { text: markup('user'), dashboard: 'access', console: null },
  invited: { text: markup('invited'), dashboard: 'access', console: null },
  key: { text: markup('key'), dashboard: 'access', console: null },
  agent: { text: markup('agent'), dashboard: 'access', console: null },
  lock: { text: markup('lock'), dashboard: LOCK, console: LOCK },
  label: { text: markup('label'), dashboard: LOCK, console: LOCK },
  firmware: { text: markup('firmware'), dashboard: LOCK, console: LOCK },
  detail: { text: markup('detail'), dashboard: LOCK, console: LOCK },
  asked: { text: markup('asked'), dashboard: LOCK, console: LOCK },
} as const;

const SCREENS = {
  dashboard: ['now', 'locks', 'map', LOCK, 'deliveries', 'access', 'bills', 'trace'],
  console: ['now', 'locks', 'map', LOCK, 'deliveries', 'live', 'audit', 'nodes', 'settings', 'trace'],
} as const;

/** The answer of a call that was not refused. */
function done<Answer extends { readonly status: number; readonly body: unknown }>(answer: Answer): Answer {
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer;
}

/** Writes every text, as whoever can write it. */
async function writeAll(t: Test, gateway: Gateway): Promise<void> {
  const merchant = TEXTS.merchant.text;
  await gateway.accounts.addMerchant(merchant);
  await addUser(gateway, merchant, TEXTS.user.text, 'owner');
  const { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant, name: TEXTS.lock.text });
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end(markup('receiver'));
  await gateway.accounts.addWebhookUrl({ url: receiver.url, merchant });
  const owner = await Dashboard.open(gateway, merchant, TEXTS.user.text);
  done(
    await owner.call(`/v1/locks/${formatMac(MAC)}`, { method: 'PATCH', body: { labels: { site: TEXTS.label.text } } }),
  );
  done(await owner.call('/console/keys', { body: { name: TEXTS.key.text } }));
  done(await owner.call('/v1/invitations', { body: { dashboard: 'viewer', username: TEXTS.invited.text } }));
  const login = { merchant, username: TEXTS.user.text, password: PASSWORD };
  done(await owner.call('/console/login', { body: login, headers: { 'user-agent': TEXTS.agent.text, cookie: '' } }));
  await writeAsLock(t, gateway, secret);
  await receiver.waitForRequests(2);
}

/** What the lock says of itself, and how it answers a command. */
async function writeAsLock(t: Test, gateway: Gateway, secret: string): Promise<void> {
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.client.subscribeAsync('down', { qos: 1 });
  await lock.send(uplinkNow(1, periodPing(TEXTS.firmware.text)));
  const commanded = nextCommand(lock);
  const command = { macs: [formatMac(MAC)], type: 'siren', parameters: { seconds: 5 }, asked_by: TEXTS.asked.text };
  done(await callOperator(gateway, 'POST', '/commands', command));
  const commandId = await commanded;
  const detail = TEXTS.detail.text;
  await lock.send(uplinkNow(2, { kind: 'ack', commandId, result: 'failed', detail, highWindow: null }));
}

/** Opens what is closed, and says whether the page shows a text: as a text, or as what a resting pointer shows. */
function openAndFind(text: string): string {
  return `{
    for (const each of document.querySelectorAll('[aria-expanded=false], details:not([open]) > summary')) each.click();
    const titles = [...document.querySelectorAll('[title], svg title')];
    const texts = [document.body.innerText, ...titles.map((each) => each.getAttribute('title') ?? each.textContent)];
    texts.some((each) => each.includes(${JSON.stringify(text)}));
  }`;
}

/** Opens every screen, waits until it shows what it should, and looks for elements that a text became. */
async function visit(t: Test, page: BrowserPage, which: 'dashboard' | 'console'): Promise<void> {
  for (const screen of SCREENS[which]) {
    await goTo(page, `#/${screen}`);
    await page.waitForFunction("document.querySelector('main h1, main .map, main .empty') !== null", TIMEOUT);
    if (screen === LOCK) await openWhy(page);
    for (const [name, shown] of Object.entries(TEXTS))
      if (shown[which] === screen) {
        const isShown = await page.waitForFunction(`eval(${JSON.stringify(openAndFind(shown.text))})`, TIMEOUT).then(
          () => true,
          () => false,
        );
        t.ok(isShown, `${screen} shows what the ${name} wrote`);
      }
    t.equal(await page.evaluate<number>("document.querySelectorAll('.injected').length"), 0, `${screen}: no element`);
  }
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null, 'no script ran');
}

/** The explanation of the failed command quotes the lock. */
async function openWhy(page: BrowserPage): Promise<void> {
  await page.waitForSelector('[data-command-state=failed] button', TIMEOUT);
  await page.click('[data-command-state=failed] button');
  await page.waitForSelector('.why ol li', TIMEOUT);
}

/** A trace with markup as its name and as a member that the format does not have. */
function traceFile(t: Test): string {
  const file = join(tempFolder(t), '<i class=injected>trace.jsonl');
  const header = { lockgate_trace: 1, [markup('member')]: 1, locks: [] };
  writeFileSync(file, `${JSON.stringify(header)}\n${JSON.stringify({ event: markup('event') })}\n`);
  return file;
}

async function dropTrace(t: Test, page: BrowserPage): Promise<void> {
  await goTo(page, '#/trace');
  await page.waitForSelector('input[type=file]', TIMEOUT);
  await (await page.$('input[type=file]'))?.uploadFile(traceFile(t));
  await page.waitForSelector('.counts, .failure', TIMEOUT);
  await waitForText(page, '<i class=injected>trace.jsonl');
  t.equal(await page.evaluate<number>("document.querySelectorAll('.injected').length"), 0, 'no element');
}

t.test('what strangers write is text', { skip: NO_BROWSER }, async (t) => {
  const gateway = await testGateway(t);
  await writeAll(t, gateway);
  const browser = await openBrowser(t);

  await t.test('on the dashboard', async (t) => {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${gateway.httpPort}/`);
    await page.waitForSelector('input[name=merchant]', TIMEOUT);
    await page.type('input[name=merchant]', TEXTS.merchant.text);
    await page.type('input[name=username]', TEXTS.user.text);
    await page.type('input[name=password]', PASSWORD);
    await page.click('button[type=submit]');
    await waitForText(page, TEXTS.user.text);
    await visit(t, page, 'dashboard');
    await dropTrace(t, page);
    await page.close();
  });

  await t.test('on the console', async (t) => {
    const page = await browser.newPage();
    const { body } = await callOperator(gateway, 'POST', '/console/links', {});
    await page.goto(`http://127.0.0.1:${gateway.operatorPort}/#${(body as { readonly token: string }).token}`);
    await waitForText(page, '(admin)');
    await visit(t, page, 'console');
  });
});
