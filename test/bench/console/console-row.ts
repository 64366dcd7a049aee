/**
 * Makes the bench's row `console` from what was measured of both pages of the console, the merchants' and the
 * operators'. No other system is a peer to compare them with, so each value is held only to fixed bounds. Pure, but it
 * reads the sizes of the files.
 */
import { loadPages } from '../../../gateway/console/pages.js';
import { Seconds } from '../../../proto/clock.js';
import { summarizeFigures } from '../measure.js';
import { atLeast, atMost, type BenchRow, type Comparison, notMeasured, withoutPeer } from '../row.js';
import type { FrameFigures } from './page-figures.js';
import type { ConsoleSize, PageFigures } from './page-run.js';

const MEGABYTE = 1e6;
const KILOBYTE = 1e3;
/** The first measure. It names the row's title, and without a browser the comparison that was not measured. */
const FRAMES = 'frames of map and list while they are moved';
/* As in every row, a floor is the required bound, even if it is a maximum; an aim is the desired one. */
const FRAMES_TARGETS = { floor: atLeast(50, 'a second'), aim: atLeast(58, 'a second') };
const [MAX_FIRST_VIEW, MAX_THEFT_DELAY] = [atMost(1_000, 'ms'), atMost(2_000, 'ms')];
const MAX_HEAP = atMost(150, 'MB');

/** The row where no browser can be driven: the sizes of the files alone. @param missing what is missing, a sentence */
export function consoleRowWithoutBrowser(missing: string): BenchRow {
  const none = { median: Number.NaN, minimum: Number.NaN, maximum: Number.NaN };
  const title = 'the pages in Chromium';
  return {
    name: 'console',
    title,
    unit: 'a second',
    rates: none,
    against: [notMeasured(FRAMES, FRAMES_TARGETS, missing), ...sizes()],
    details: [],
  };
}

/** The row of measured pages. */
export function consoleRow(size: ConsoleSize, pingsPerSecond: number, pages: readonly PageFigures[]): BenchRow {
  /** Both movements on each page. */
  const moved = pages.flatMap(({ name, map, list }) => [
    { name: `${name}, map dragged`, figures: map },
    { name: `${name}, list scrolled`, figures: list },
  ]);
  const [views, shownMs] = [pages.flatMap((page) => page.views), pages.flatMap((page) => page.shownMs)];
  const slowest = moved.reduce((one, other) => (perSecond(other.figures) < perSecond(one.figures) ? other : one));
  const heap = Math.max(...pages.map(({ heap }) => heap.page)) / MEGABYTE;
  return {
    name: 'console',
    title: `${FRAMES}, ${size.locks.toLocaleString('en')} locks`,
    unit: 'a second',
    rates: summarizeFigures(moved.flatMap(({ figures }) => figures.map((each) => each.perSecond))),
    against: [
      withoutPeer(perSecond(slowest.figures), 'a second', FRAMES_TARGETS, `the slowest: ${slowest.name}`),
      withoutPeer(median(views.map(({ allMs }) => allMs)), 'ms', { floor: MAX_FIRST_VIEW }, 'first view of all locks'),
      withoutPeer(heap, 'MB', { floor: MAX_HEAP }, `heap after ${size.heapAfter / Seconds(60)} min`),
      withoutPeer(Math.max(...shownMs), 'ms', { floor: MAX_THEFT_DELAY }, 'a theft is shown, the slowest'),
      ...sizes(),
    ],
    details: [
      `${size.moving.toLocaleString('en')} of the locks move, ${pingsPerSecond} pings a second; window 1280 × 800`,
      ...moved.map(({ name, figures }) => `${name}: ${framesText(figures)}`),
      ...pages.flatMap(pageDetails),
    ],
  };
}

/** The lines about one page below the table. */
function pageDetails({ name, views, heap, shownMs, streamedMs }: PageFigures): string[] {
  const spanText = (values: readonly number[]): string =>
    `median ${Math.round(median(values))}, slowest ${Math.round(Math.max(...values))} ms`;
  const [page, workers] = [heap.page, heap.workers].map((bytes) => (bytes / MEGABYTE).toFixed(1));
  return [
    `${name}: first locks after ${spanText(views.map(({ firstMs }) => firstMs))}, all after ` +
      `${spanText(views.map(({ allMs }) => allMs))}, of ${views.length} loads without a cache`,
    `${name}: a theft from its PUBACK until it is shown: ${spanText(shownMs)}; until it is in the stream: ` +
      `${spanText(streamedMs)}; of ${shownMs.length}`,
    `${name}: heap ${page} MB, its worker ${workers} MB`,
  ];
}

/** Frames a second, their times and the CPU time, in words. */
function framesText(figures: readonly FrameFigures[]): string {
  const medianOf = (figure: (each: FrameFigures) => number): number => median(figures.map(figure));
  const [p50, p95] = [medianOf((each) => each.p50Ms), medianOf((each) => each.p95Ms)];
  const times = `median ${p50.toFixed(1)}, p95 ${p95.toFixed(1)} ms`;
  const worst = Math.max(...figures.map(({ maxMs }) => maxMs)).toFixed(0);
  const busy = (100 * medianOf((each) => each.busyShare)).toFixed(0);
  return `${perSecond(figures).toFixed(1)} frames/s, ${times}, longest ${worst} ms; main thread ${busy} % of a core`;
}

function perSecond(figures: readonly FrameFigures[]): number {
  return median(figures.map((each) => each.perSecond));
}

function median(values: readonly number[]): number {
  return summarizeFigures(values).median;
}

/** The sizes of the pages' files, compressed by gzip. */
function sizes(): Comparison[] {
  const pages = loadPages();
  const kilobytes = (isWanted: (name: string) => boolean): number =>
    pages.names.filter(isWanted).reduce((sum, name) => sum + (pages.file(name)?.gzip.length ?? 0), 0) / KILOBYTE;
  const isCode = (name: string): boolean => /\.(js|css)$/.test(name);
  return [
    withoutPeer(kilobytes(isCode), 'KB', { floor: atMost(150, 'KB') }, 'scripts and styles, gzip'),
    withoutPeer(
      kilobytes((name) => isCode(name) || /\.(geo)?json$/.test(name)),
      'KB',
      { floor: atMost(300, 'KB') },
      'with the map’s data',
    ),
  ];
}
