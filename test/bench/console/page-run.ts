/** Measures the pages of the console, the merchants' and the operators', for the bench's row `console`. */
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import { openBrowser } from '../../clients/browser.js';
import { StreamClient } from '../../helpers/http/stream-client.js';
import type { ChildProgram } from '../load/child-program.js';
import { type Resources, withResources } from '../resources.js';
import type { Theft } from './crowd.js';
import type { ConsoleSession } from './logins.js';
import { delay, type FirstView, type FrameFigures, type HeapFigures, MeasuredPage, type Size } from './page-figures.js';

/** The size of a measurement. */
export interface ConsoleSize {
  readonly locks: number;
  readonly moving: number;
  readonly thefts: number;
  /** How often the map is dragged and the list scrolled, after one more time as the warm-up. */
  readonly rounds: number;
  /** How often the page is loaded. */
  readonly views: number;
  /** How long the map is dragged, and the list scrolled. */
  readonly span: Milliseconds;
  /** How long the page is used before its memory is measured. */
  readonly heapAfter: Milliseconds;
}

/** What was measured of one page. */
export interface PageFigures {
  readonly name: string;
  readonly views: readonly FirstView[];
  readonly map: readonly FrameFigures[];
  readonly list: readonly FrameFigures[];
  /** From the PUBACK of a theft's ping until it is shown, ms. */
  readonly shownMs: readonly number[];
  /** From the PUBACK until a client of the stream has it, ms. */
  readonly streamedMs: readonly number[];
  readonly heap: HeapFigures;
}

const MEGABYTE = 1e6;
const WINDOW: Size = { width: 1280, height: 800 };
/** After a view was opened, until it is measured. */
const SETTLE = Seconds(1);
/** How long a screen is shown while the page is used. */
const SCREEN_SPAN = Seconds(10);
const SCREENS = ['#/now', '#/map', '#/locks'];
/** Not a multiple of a second: the stream sends a lock at most once a second, which could delay each theft alike. */
const BETWEEN_THEFTS = Seconds(1.3);

/** What was measured of a page in its first minutes, while no other one was open. */
type AloneFigures = Omit<PageFigures, 'name' | 'heap'>;

/** Measures the pages of these sessions: each alone, and then, all open at the same time, what memory they take. */
export async function measurePages(
  sessions: readonly ConsoleSession[],
  size: ConsoleSize,
  crowd: ChildProgram,
): Promise<PageFigures[]> {
  const alone: AloneFigures[] = [];
  for (const session of sessions) alone.push(await measureAlone(session, size, crowd));
  const heaps = await Promise.all(sessions.map((session) => measureHeap(session, size)));
  return sessions.map((session, index) => ({
    name: session.console === 'merchant' ? 'dashboard' : 'console',
    // Defined: each list has an entry for each session.
    ...(alone[index] as AloneFigures),
    heap: heaps[index] as HeapFigures,
  }));
}

async function measureAlone(session: ConsoleSession, size: ConsoleSize, crowd: ChildProgram): Promise<AloneFigures> {
  return await withResources(async (resources) => {
    const page = await MeasuredPage.open(await openBrowser(resources), session, WINDOW, size.locks);
    const views: FirstView[] = [];
    for (let view = 0; view < size.views; view++) views.push(await page.firstView());
    console.error(`  ${session.console}: loaded ${views.map(({ allMs }) => Math.round(allMs)).join(', ')} ms`);
    const { map, list } = await measureFrames(page, size);
    const thefts = await measureThefts(resources, page, session, crowd, size.thefts);
    console.error(`  thefts shown after ${thefts.shownMs.map(Math.round).join(', ')} ms`);
    return { views, map, list, ...thefts };
  });
}

/** The memory of a page after {@link ConsoleSize.heapAfter} of use. */
async function measureHeap(session: ConsoleSession, size: ConsoleSize): Promise<HeapFigures> {
  return await withResources(async (resources) => {
    const page = await MeasuredPage.open(await openBrowser(resources), session, WINDOW, size.locks);
    await page.firstView();
    await usePage(page, size.heapAfter);
    const heap = await page.heap();
    const megabytes = (heap.page / MEGABYTE).toFixed(1);
    console.error(`  ${session.console}: heap after ${size.heapAfter / Seconds(60)} min: ${megabytes} MB`);
    return heap;
  });
}

/** Drags the map and scrolls the list in turn. Round 0 is the warm-up, which is not measured. */
async function measureFrames(page: MeasuredPage, size: ConsoleSize): Promise<Pick<PageFigures, 'map' | 'list'>> {
  const [map, list]: [FrameFigures[], FrameFigures[]] = [[], []];
  for (let round = 0; round <= size.rounds; round++) {
    await page.show('#/map');
    await delay(SETTLE);
    const dragged = await page.dragMap(size.span);
    await page.show('#/locks');
    await delay(SETTLE);
    const scrolled = await page.scrollList(size.span);
    const [mapRate, listRate] = [dragged, scrolled].map(({ perSecond }) => perSecond.toFixed(1));
    console.error(`  map ${mapRate}, list ${listRate} frames/s`);
    if (round === 0) continue;
    map.push(dragged);
    list.push(scrolled);
  }
  return { map, list };
}

/** Measures for each theft when a client of the stream has it, and when the page shows it. */
async function measureThefts(
  resources: Resources,
  page: MeasuredPage,
  { port, cookie, console }: ConsoleSession,
  crowd: ChildProgram,
  thefts: number,
): Promise<Pick<PageFigures, 'shownMs' | 'streamedMs'>> {
  await page.show('#/now');
  const path = console === 'merchant' ? '/v1/stream' : '/stream?only=locks';
  const stream = await StreamClient.open(resources, port, path, { cookie, host: `127.0.0.1:${port}` });
  await stream.until(({ name, data }) => name === 'snapshot' && data.last === true);
  const [shownMs, streamedMs]: [number[], number[]] = [[], []];
  for (let theft = 0; theft < thefts; theft++) {
    const from = stream.events.length;
    const { name, acked_at_ms: ackedAtMs } = await crowd.ask<Theft>('theft');
    const event = await stream.until(({ data }) => data.name === name && data.trouble === 'theft', from);
    // Both clocks are of this machine; the stream's is monotonic.
    streamedMs.push(event.atMs + (systemClock.now() - monotonicMs()) - ackedAtMs);
    shownMs.push((await page.troubleShownAt(name)) - ackedAtMs);
    await delay(BETWEEN_THEFTS);
  }
  stream.close();
  return { shownMs, streamedMs };
}

/** Goes from screen to screen, and moves the map and the list a little. */
async function usePage(page: MeasuredPage, span: Milliseconds): Promise<void> {
  const endsAtMs = monotonicMs() + span;
  for (let turn = 0; monotonicMs() < endsAtMs; turn++) {
    const screen = SCREENS[turn % SCREENS.length] ?? '';
    await page.show(screen);
    if (screen === '#/map') await page.dragMap(Seconds(1));
    if (screen === '#/locks') await page.scrollList(Seconds(1));
    await delay(Math.min(SCREEN_SPAN, Math.max(endsAtMs - monotonicMs(), 0)));
  }
}
