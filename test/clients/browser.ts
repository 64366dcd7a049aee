/**
 * Drives Debian's Chromium through puppeteer-core, and checks pages with axe-core. Where Chromium is not installed, the
 * tests that want it say so and are skipped.
 */
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { clientPath, loadClient, missingClient } from './client-package.js';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

/** Why tests with a browser are skipped; false if they are not. */
export const NO_BROWSER: string | false = CHROMIUM === undefined && 'Chromium is not installed (Debian: chromium)';

/** Why no browser can be driven; null if one can. Unlike the tests, the bench may run without test/clients. */
export function whyNoBrowser(): string | null {
  return NO_BROWSER === false ? missingClient('puppeteer-core') : NO_BROWSER;
}

/** The members of puppeteer's pages that the tests use. */
export interface BrowserPage {
  goto(url: string): Promise<unknown>;
  /** Closes the page; one behind another is not drawn. */
  close(): Promise<void>;
  setViewport(size: { readonly width: number; readonly height: number }): Promise<void>;
  emulateMediaFeatures(features: readonly { readonly name: string; readonly value: string }[]): Promise<void>;
  type(selector: string, text: string): Promise<void>;
  click(selector: string): Promise<void>;
  waitForSelector(selector: string, options?: { readonly timeout?: number }): Promise<PageElement | null>;
  waitForFunction(code: string, options?: { readonly timeout?: number }): Promise<unknown>;
  screenshot(options: { readonly type: 'png' }): Promise<Uint8Array>;
  evaluate<Result>(code: string): Promise<Result>;
  $(selector: string): Promise<PageElement | null>;
  on(event: 'request', take: (request: { url(): string }) => void): void;
  on(event: 'workercreated', take: (worker: { url(): string }) => void): void;
  on(event: 'pageerror', take: (error: Error) => void): void;
  on(event: 'dialog', take: (dialog: { accept(): Promise<void> }) => void): void;
  readonly mouse: BrowserMouse;
  /** Figures of the page, such as `JSHeapUsedSize`, bytes. */
  metrics(): Promise<Readonly<Record<string, number>>>;
  setCookie(cookie: Readonly<Record<string, string | boolean>>): Promise<void>;
  setCacheEnabled(isEnabled: boolean): Promise<void>;
  /** Runs a script in each document before its own scripts. */
  evaluateOnNewDocument(code: string): Promise<unknown>;
  createCDPSession(): Promise<DevToolsSession>;
}

/** The pointer; positions are in CSS pixels from the top left of the page. */
export interface BrowserMouse {
  move(x: number, y: number): Promise<void>;
  down(): Promise<void>;
  up(): Promise<void>;
  wheel(turn: { readonly deltaY: number }): Promise<void>;
}

/** A session of the Chrome DevTools Protocol. */
export interface DevToolsSession {
  send<Answer>(method: string, parameters?: object): Promise<Answer>;
  on<Parameters>(event: string, take: (parameters: Parameters) => void): void;
  detach(): Promise<void>;
}

/** A page or a worker. */
export interface BrowserTarget {
  type(): string;
  createCDPSession(): Promise<DevToolsSession>;
}

/** An element of a page; here, a field for files. */
export interface PageElement {
  uploadFile(path: string): Promise<void>;
}

/** The browser; its targets are its pages and workers. */
export interface Browser {
  newPage(): Promise<BrowserPage>;
  targets(): BrowserTarget[];
  close(): Promise<void>;
}

/** The package that controls the browser, as far as it is used here. */
interface Puppeteer {
  launch(options: object): Promise<Browser>;
}

/** Starts a browser that ends with the test. It makes no call of its own to the internet. */
export async function openBrowser(test: { teardown(end: () => Promise<void>): void }): Promise<Browser> {
  const url = pathToFileURL(clientPath('puppeteer-core/lib/esm/puppeteer/puppeteer-core.js')).href;
  const { default: puppeteer } = (await import(url)) as { default: Puppeteer };
  const flags = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
  ];
  const browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: [...flags, '--disable-component-update', '--disable-sync'],
  });
  test.teardown(() => browser.close());
  return browser;
}

/** The serious and critical findings of axe on the present view, one line each. */
export async function seriousFindings(page: BrowserPage): Promise<string[]> {
  const { source } = loadClient<{ readonly source: string }>('axe-core');
  await page.evaluate<void>(source);
  return await page.evaluate<string[]>(`axe.run().then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`);
}
