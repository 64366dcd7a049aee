/**
 * What the bench's row `console` measures in a page in Chromium: frame times while somebody drags the map or scrolls
 * the list, the time until the first view, the memory, and when a theft is shown.
 */
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import type { Browser, BrowserPage } from '../../clients/browser.js';
import { percentile } from '../measure.js';
import type { ConsoleSession } from './logins.js';

/** Frames while a page was used. */
export interface FrameFigures {
  readonly perSecond: number;
  /** Times from one frame to the next, ms. */
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
  /** The share of a core that the page's main thread took: CPU time, so that it hardly depends on other programs. */
  readonly busyShare: number;
}

/** Heaps after a garbage collection, bytes. */
export interface HeapFigures {
  /** JSHeapUsedSize of the page. */
  readonly page: number;
  /** Of the workers of all pages in the browser. */
  readonly workers: number;
}

/** From the start of loading a page, ms. */
export interface FirstView {
  /** Until it shows locks. */
  readonly firstMs: number;
  /** Until it has all locks. */
  readonly allMs: number;
}

/** Of a page's window, pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** How long a page may take for anything that the bench waits for. */
const TIMEOUT = { timeout: Seconds(60) };
/**
 * The pause between two moves of the mouse. It is half of the 16 ms between two reports of a mouse, because a move
 * itself takes time.
 */
const MOUSE_PAUSE: Milliseconds = 8;
/** One drag of the map; then the button is released and pressed again. */
const DRAG_SPAN = Seconds(1.5);
const DRAG_RADIUS_PIXELS = 220;
/**
 * The pause between two notches of a wheel that is turned fast: some 30 a second. With more, Chromium reaches only 55
 * frames/s even on a page without any script.
 */
const WHEEL_PAUSE: Milliseconds = 30;
const WHEEL_PIXELS = 300;
/** How long the list is scrolled in one direction. */
const SCROLL_SPAN = Seconds(2);

/** Notes the time of each frame, from the call on. */
const RECORD_FRAMES = `{
  const times = [];
  window.benchFrames = times;
  const note = (time) => {
    if (window.benchFrames !== times) return;
    times.push(time);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}`;
/** Ends the notes. Its value is the list of times. */
const TAKE_FRAMES = '{ const times = window.benchFrames; window.benchFrames = null; times }';

/** Runs in each new page: notes when the view first shows rows, and when it has all locks. */
const NOTE_FIRST_VIEW = `{
  const view = (window.benchView = { first: null, all: null });
  const look = (now) => {
    if (view.first === null && document.querySelector('.list-row') !== null) view.first = performance.now();
    const count = document.querySelector('.screen-head .hint')?.textContent;
    const [, shown, all] = /([\\d,]+) of ([\\d,]+)/.exec(count) ?? [];
    const isComplete = shown === all && Number(all?.replaceAll(',', '')) >= window.benchLocks;
    if (view.first !== null && isComplete) view.all = performance.now();
    if (view.all === null) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}`;

/** Runs in each new page: notes when each lock first is among those in trouble. */
const NOTE_TROUBLES = `{
  const troubles = (window.benchTroubles = new Map());
  const look = () => {
    for (const link of document.querySelectorAll('[aria-label="Locks in trouble"] tr td:nth-child(2) a'))
      if (!troubles.has(link.textContent)) troubles.set(link.textContent, Date.now());
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
}`;

/** A page of the console, with a session. */
export class MeasuredPage {
  readonly #browser: Browser;
  readonly #page: BrowserPage;
  readonly #origin: string;
  readonly #size: Size;

  private constructor(browser: Browser, page: BrowserPage, origin: string, size: Size) {
    this.#browser = browser;
    this.#page = page;
    this.#origin = origin;
    this.#size = size;
  }

  /** @param locks the number of locks that the page will have */
  static async open(browser: Browser, session: ConsoleSession, size: Size, locks: number): Promise<MeasuredPage> {
    const origin = `http://127.0.0.1:${session.port}`;
    const page = await browser.newPage();
    const [name = '', value = ''] = session.cookie.split('=');
    await page.setCookie({ name, value, url: origin, httpOnly: true, sameSite: 'Strict' });
    await page.setViewport(size);
    // Each visit loads the files anew.
    await page.setCacheEnabled(false);
    await page.evaluateOnNewDocument(`window.benchLocks = ${locks}; ${NOTE_FIRST_VIEW} ${NOTE_TROUBLES}`);
    return new MeasuredPage(browser, page, origin, size);
  }

  /** Loads the page at the list of locks. Returns the ms until it shows locks, and until it has all. */
  async firstView(): Promise<FirstView> {
    // Away from the page first, so that its worker and its stream end.
    await this.#page.goto('about:blank');
    await delay(Seconds(1));
    await this.#page.goto(`${this.#origin}/#/locks`);
    await this.#page.waitForFunction('window.benchView.all !== null', TIMEOUT);
    const { first, all } = await this.#page.evaluate<{ first: number; all: number }>('window.benchView');
    return { firstMs: first, allMs: all };
  }

  /** Opens a view. @param address such as `#/map` */
  async show(address: string): Promise<void> {
    await this.#page.evaluate<void>(`{ location.hash = ${JSON.stringify(address)}; }`);
    const shown = address.startsWith('#/map') ? '.map-list li' : 'main h1';
    // Not waitForSelector: it returns a handle, which would keep the element and so each map that was ever shown.
    await this.#page.waitForFunction(`document.querySelector('${shown}') !== null`, TIMEOUT);
  }

  /** Drags the map in circles. */
  async dragMap(span: Milliseconds): Promise<FrameFigures> {
    const { mouse } = this.#page;
    // A point of the map around which a circle of the radius is on the map too.
    const [x, y] = [this.#size.width * 0.4, this.#size.height * 0.5];
    return await this.#measureFrames(async () => {
      const startedAtMs = monotonicMs();
      for (let passedMs = 0; passedMs < span; ) {
        const dragAtMs = monotonicMs();
        await mouse.move(x + DRAG_RADIUS_PIXELS, y);
        await mouse.down();
        while (monotonicMs() - dragAtMs < DRAG_SPAN && passedMs < span) {
          passedMs = monotonicMs() - startedAtMs;
          const angle = ((monotonicMs() - dragAtMs) / DRAG_SPAN) * 2 * Math.PI;
          await mouse.move(x + DRAG_RADIUS_PIXELS * Math.cos(angle), y + DRAG_RADIUS_PIXELS * Math.sin(angle));
          await delay(MOUSE_PAUSE);
        }
        await mouse.up();
      }
    });
  }

  /** Scrolls the list down and up with the wheel. */
  async scrollList(span: Milliseconds): Promise<FrameFigures> {
    const { mouse } = this.#page;
    // A point of the list.
    await mouse.move(this.#size.width * 0.6, this.#size.height * 0.6);
    return await this.#measureFrames(async () => {
      const startedAtMs = monotonicMs();
      for (let passedMs = 0; passedMs < span; passedMs = monotonicMs() - startedAtMs) {
        const isUp = Math.floor(passedMs / SCROLL_SPAN) % 2 === 1;
        await mouse.wheel({ deltaY: isUp ? -WHEEL_PIXELS : WHEEL_PIXELS });
        await delay(WHEEL_PAUSE);
      }
    });
  }

  /** Measures the frames and the main thread's CPU time while `act` runs. */
  async #measureFrames(act: () => Promise<void>): Promise<FrameFigures> {
    const session = await this.#page.createCDPSession();
    // In this time domain TaskDuration is the thread's CPU time.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const cpuSeconds = async (): Promise<number> => {
      const { metrics } = await session.send<{ metrics: { name: string; value: number }[] }>('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
    };
    const [startedAtMs, cpuBefore] = [monotonicMs(), await cpuSeconds()];
    await this.#page.evaluate<void>(RECORD_FRAMES);
    await act();
    const times = await this.#page.evaluate<number[]>(TAKE_FRAMES);
    const cpuUsed = (await cpuSeconds()) - cpuBefore;
    const seconds = (monotonicMs() - startedAtMs) / Seconds(1);
    await session.detach();
    const deltas = times.slice(1).map((time, index) => time - (times[index] ?? time));
    const [p50Ms, p95Ms, maxMs] = [percentile(deltas, 0.5), percentile(deltas, 0.95), percentile(deltas, 1)];
    const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
    return { perSecond: (deltas.length / spanMs) * Seconds(1), p50Ms, p95Ms, maxMs, busyShare: cpuUsed / seconds };
  }

  /** The heaps after a garbage collection. */
  async heap(): Promise<HeapFigures> {
    const session = await this.#page.createCDPSession();
    await session.send('HeapProfiler.collectGarbage');
    await session.detach();
    const { JSHeapUsedSize: page = 0 } = await this.#page.metrics();
    let workers = 0;
    for (const target of this.#browser.targets().filter((each) => each.type() === 'shared_worker')) {
      const worker = await target.createCDPSession();
      await worker.send('HeapProfiler.collectGarbage');
      workers += (await worker.send<{ usedSize: number }>('Runtime.getHeapUsage')).usedSize;
      await worker.detach();
    }
    return { page, workers };
  }

  /** When the lock with this name was first shown among those in trouble, ms since the epoch. */
  async troubleShownAt(name: string): Promise<number> {
    const shownAt = `window.benchTroubles?.get(${JSON.stringify(name)})`;
    await this.#page.waitForFunction(`${shownAt} !== undefined`, TIMEOUT);
    return await this.#page.evaluate<number>(shownAt);
  }
}

export async function delay(milliseconds: Milliseconds): Promise<void> {
  await new Promise<void>((resolve) => systemClock.after(milliseconds, resolve));
}
