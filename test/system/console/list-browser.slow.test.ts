/**
 * The list of locks, in a real browser on a real gateway: it is scrolled without being drawn anew, has few rows in the
 * page, and draws a row anew only if its lock has changed.
 */
import t, { type Test } from 'tap';
import { type BrowserPage, NO_BROWSER, openBrowser } from '../../clients/browser.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { goTo, THEFT, TIMEOUT, uplinkNow, waitForText } from '../../helpers/console/page-actions.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';

const LOCKS = 60;
/** The page may have fewer elements of rows than this, which is more than fit into the window and its margins. */
const MAX_ROWS = 40;

/** A layer that the browser moves as a whole; the names are those of its protocol. */
interface Layer {
  readonly height: number;
}

t.test('the list of locks', { skip: NO_BROWSER }, async (t) => {
  const gateway = await testGateway(t);
  const secrets: string[] = [];
  for (let number = 1; number <= LOCKS; number++) {
    const name = `Lock ${String(number).padStart(3, '0')}`;
    secrets.push((await gateway.accounts.addDevice({ mac: testMac(number), merchant: MERCHANT, name })).secret);
  }
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(LOCKS), secrets.at(-1) ?? '');
  const page = await (await openBrowser(t)).newPage();
  await page.setViewport({ width: 1280, height: 800 });
  const { body } = await callOperator(gateway, 'POST', '/console/links', {});
  await page.goto(`http://127.0.0.1:${gateway.operatorPort}/#${(body as { readonly token: string }).token}`);
  await waitForText(page, '(admin)');
  await goTo(page, '#/locks');
  await page.waitForSelector('.list-row', TIMEOUT);
  await t.test('the browser scrolls it as one layer', (t) => scrollLayer(t, page));
  await t.test('it ends with the last lock', (t) => scrollToEnd(t, page));
  await t.test('a change draws the rows of changed locks only', (t) => changeRow(t, page, lock));
});

/** The browser scrolls the list without drawing it if the list's content is a layer. */
async function scrollLayer(t: Test, page: BrowserPage): Promise<void> {
  const session = await page.createCDPSession();
  let layers: readonly Layer[] = [];
  session.on<{ readonly layers?: readonly Layer[] }>('LayerTree.layerTreeDidChange', (tree) => {
    layers = tree.layers ?? [];
  });
  await session.send('DOM.enable');
  await session.send('LayerTree.enable');
  const contentHeight = await page.evaluate<number>("document.querySelector('.list-space').clientHeight");
  await page.evaluate<void>(`new Promise((resolve) => {
    document.querySelector('.list').scrollTop = 300;
    requestAnimationFrame(() => requestAnimationFrame(resolve));
  })`);
  t.ok(contentHeight > 2_000, `${contentHeight} pixels`);
  t.ok(
    layers.some(({ height }) => height === contentHeight),
    `a layer of ${contentHeight} pixels among those of ${layers.map(({ height }) => height).join(', ')}`,
  );
  await session.detach();
}

async function scrollToEnd(t: Test, page: BrowserPage): Promise<void> {
  await page.evaluate<void>("document.querySelector('.list').scrollTop = 1e6");
  await waitForText(page, `Lock 0${LOCKS - 1}`);
  const rows = await page.evaluate<number>("document.querySelectorAll('.list-row').length");
  t.ok(rows < MAX_ROWS, `${rows} rows`);
  await page.evaluate<void>("document.querySelector('.list').scrollTop = 0");
  await waitForText(page, 'Lock 001');
}

/** Collects the names of the locks whose rows the page changes, while one lock reports a theft. */
async function changeRow(t: Test, page: BrowserPage, lock: TestLock): Promise<void> {
  await page.evaluate<void>(`{
    window.drawn = new Set();
    const note = (records) => {
      for (const { target } of records) {
        const row = (target instanceof Element ? target : target.parentElement)?.closest('.lock-row');
        if (row) window.drawn.add(row.querySelector('strong').textContent);
      }
    };
    const rows = document.querySelector('.list');
    new MutationObserver(note).observe(rows, { subtree: true, childList: true, characterData: true });
  }`);
  await lock.send(uplinkNow(1, THEFT));
  await page.waitForFunction("document.querySelector('.list-row .badge.theft') !== null", TIMEOUT);
  const drawn = await page.evaluate<string[]>('[...window.drawn]');
  t.same(
    drawn.filter((name) => name !== `Lock 0${LOCKS}`),
    [],
  );
}
