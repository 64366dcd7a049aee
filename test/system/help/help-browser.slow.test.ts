/**
 * The help in a real browser on a real gateway: pages pass axe, the search finds what is looked for, no page is wider
 * than a phone, and nothing is loaded from another origin. All pages come from one template, so `npm run test:slow`
 * runs axe on a few of them; `npm run test:long` runs it on each.
 */
import t, { type Test } from 'tap';
import { HELP_PATH, loadHelp } from '../../../gateway/console/help-pages.js';
import { type Browser, type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../../clients/browser.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../../helpers/house/test-length.js';

t.setTimeout(300_000);

const PHONE = { width: 360, height: 740 };
const DESK = { width: 1280, height: 800 };
/** Pages with everything that has a colour: tables, code, terminal sessions, pictures, lists. */
const IN_BOTH_THEMES = ['index.html', 'tutorials/operators.html', 'reference/errors.html', 'console.html'];
/** The themes in which axe checks a page. The colours come from one style sheet, so a few pages have them all. */
const themesOf = (name: string): readonly string[] =>
  IN_BOTH_THEMES.includes(name) ? ['light', 'dark'] : quickOrLong([], ['light']);
const TIMEOUT = { timeout: 60_000 };

/** The origins of all requests that a page makes. */
function originsOf(page: BrowserPage): Set<string> {
  const origins = new Set<string>();
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin);
  });
  return origins;
}

/** The operators' server of a gateway, and a browser. */
interface Visit {
  readonly origin: string;
  readonly browser: Browser;
}

async function checkPages(t: Test, { origin, browser }: Visit): Promise<void> {
  const page = await browser.newPage();
  const origins = originsOf(page);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  for (const name of loadHelp().names.filter((each) => each.endsWith('.html'))) {
    await page.goto(`${origin}${HELP_PATH}${name}`);
    for (const value of themesOf(name)) {
      await page.setViewport(DESK);
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
      t.same(await seriousFindings(page), [], `${name}, ${value}`);
    }
    await page.setViewport(PHONE);
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    t.ok(width <= PHONE.width, `${name}: ${width} pixels wide`);
  }
  t.same([...origins], [origin]);
  t.same(faults, []);
  await page.close();
}

async function checkSearch(t: Test, { origin, browser }: Visit): Promise<void> {
  const page = await browser.newPage();
  await page.setViewport(DESK);
  await page.goto(`${origin}${HELP_PATH}tutorials/qa.html`);
  await page.evaluate<void>("document.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))");
  await page.type('#query', 'period-too-soon');
  await page.waitForSelector('#found:not([hidden]) a', TIMEOUT);
  t.match(await page.evaluate<string>("document.querySelector('#found a').innerText"), /^Rules › period-too-soon/);
  t.same(await seriousFindings(page), [], 'axe: results');
  await page.evaluate<void>("document.querySelector('#found a').click()");
  await page.waitForFunction("location.pathname.endsWith('/reference/rules.html')", TIMEOUT);
  t.equal(await page.evaluate<string>('location.hash'), '#period-too-soon');
  await page.type('#query', 'xyzzyx');
  await page.waitForFunction("document.querySelector('#found').innerText.includes('Nothing was found')", TIMEOUT);
}

t.test('the help', { skip: NO_BROWSER }, async (t) => {
  const gateway = await testGateway(t);
  const visit = { origin: `http://127.0.0.1:${gateway.operatorPort}`, browser: await openBrowser(t) };
  await t.test('pages are accessible, and each fits a phone', (t) => checkPages(t, visit));
  await t.test('the search opens with a key and finds a rule by its name', (t) => checkSearch(t, visit));
});
