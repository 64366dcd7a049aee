/**
 * Draws a plan as an SVG chart: connections and pings per second by hour of the day. The viewer's preference selects
 * light or dark colours; a viewer without media queries shows light colours.
 */
import type { HourSize, Sizing } from '../../../../firmware-sim/plan/sizing.js';

/** All lengths are in pixels. */
const WIDTH = 860;
const LEFT_MARGIN = 84;
const RIGHT_MARGIN = 20;
const TOP_MARGIN = 84;
const PANEL_HEIGHT = 190;
const PANEL_GAP = 56;
const BOTTOM_MARGIN = 52;
const HEIGHT = TOP_MARGIN + 2 * PANEL_HEIGHT + PANEL_GAP + BOTTOM_MARGIN;
/** The widths of the bars, in hours of the time axis. The mean's bar is drawn inside the peak's bar. */
const PEAK_BAR_HOURS = 0.72;
const MEAN_BAR_HOURS = 0.36;
/** The approximate number of grid lines of a diagram. */
const GRID_LINES = 4;
const MAX_TITLE_LETTERS = 110;
/** Relative tolerance for rounding errors of floating-point division. */
const ROUNDING_TOLERANCE = 1e-9;

const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 16px; font-weight: 600 }
    .page { fill: #ffffff }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .peak { fill: #a8c7fa }
    .mean { fill: #0b57d0 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .page { fill: #0d1117 }
      .grid { stroke: #3d444d }
      .peak { fill: #264a7d }
      .mean { fill: #8ab4f8 }
    }
`;

/** One of the two diagrams of the chart. */
interface Panel {
  readonly title: string;
  /** The y coordinate of its upper edge, in the units of the SVG. */
  readonly top: number;
  readonly mean: (hour: HourSize) => number;
  readonly peak: (hour: HourSize) => number;
}

const PANELS: readonly Panel[] = [
  {
    title: 'Connections at once',
    top: TOP_MARGIN,
    mean: ({ connected }) => connected.value,
    peak: ({ connectedPeak }) => connectedPeak,
  },
  {
    title: 'Pings a second (peak: over 60 s)',
    top: TOP_MARGIN + PANEL_HEIGHT + PANEL_GAP,
    mean: ({ uplinksPerSecond }) => uplinksPerSecond,
    peak: ({ uplinksPerSecondPeak }) => uplinksPerSecondPeak,
  },
];

/** The SVG document. `title` describes the run; it may contain any text that a user typed. */
export function planSvg({ hours, locks }: Sizing, title: string): string {
  const size = `${WIDTH} ${HEIGHT}`;
  const heading = `Load of ${locks.toLocaleString('en-US')} locks on a gateway, by hour of the day`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size}" ${sizeOf(WIDTH, HEIGHT)} role="img">`,
    `  <title>${xmlText(heading)}</title>`,
    `  <style>${STYLE}  </style>`,
    `  <rect class="page" ${sizeOf(WIDTH, HEIGHT)}/>`,
    `  <text class="title" x="${LEFT_MARGIN}" y="28">${xmlText(heading)}</text>`,
    `  <text x="${LEFT_MARGIN}" y="48">${xmlText(shortenTitle(title))}</text>`,
    ...legend(),
    ...PANELS.flatMap((panel) => panelLines(panel, hours)),
    ...hourLabels(hours),
    '</svg>',
    '',
  ].join('\n');
}

/** The legend at the upper right: a square of 12 pixels for each kind of bar, and its name. */
function legend(): string[] {
  const x = WIDTH - RIGHT_MARGIN - 150;
  const y = TOP_MARGIN - 24;
  return [
    `  <rect class="mean" x="${x}" y="${y}" width="12" height="12"/>`,
    `  <text x="${x + 18}" y="${y + 10}">mean</text>`,
    `  <rect class="peak" x="${x + 76}" y="${y}" width="12" height="12"/>`,
    `  <text x="${x + 94}" y="${y + 10}">peak</text>`,
  ];
}

function panelLines({ title, top, mean, peak }: Panel, hours: readonly HourSize[]): string[] {
  const step = niceStep(Math.max(...hours.map((hour) => Math.max(peak(hour), mean(hour)))) / GRID_LINES);
  const maxValue = step * Math.ceil(Math.max(...hours.map(peak), ...hours.map(mean), step) / step - ROUNDING_TOLERANCE);
  const yOf = (value: number): number => top + PANEL_HEIGHT * (1 - value / maxValue);
  const lines = [`  <text x="${LEFT_MARGIN}" y="${top - 10}">${xmlText(title)}</text>`];
  for (let tick = 0; tick * step <= maxValue * (1 + ROUNDING_TOLERANCE); tick += 1) {
    const y = round(yOf(tick * step));
    lines.push(`  <line class="grid" x1="${LEFT_MARGIN}" y1="${y}" x2="${WIDTH - RIGHT_MARGIN}" y2="${y}"/>`);
    lines.push(`  <text x="${LEFT_MARGIN - 8}" y="${y + 4}" text-anchor="end">${tickText(tick * step)}</text>`);
  }
  for (const hour of hours) {
    lines.push(barOf('peak', hour.hour, PEAK_BAR_HOURS, peak(hour), yOf));
    lines.push(barOf('mean', hour.hour, MEAN_BAR_HOURS, mean(hour), yOf));
  }
  return lines;
}

function barOf(name: string, hour: number, widthHours: number, value: number, yOf: (value: number) => number): string {
  const hourWidth = (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / 24;
  const x = LEFT_MARGIN + hourWidth * (hour + (1 - widthHours) / 2);
  const height = yOf(0) - yOf(value);
  return `  <rect class="${name}" x="${round(x)}" y="${round(yOf(value))}" ${sizeOf(hourWidth * widthHours, height)}/>`;
}

function sizeOf(width: number, height: number): string {
  return `width="${round(width)}" height="${round(height)}"`;
}

function hourLabels(hours: readonly HourSize[]): string[] {
  const hourWidth = (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / 24;
  const labels = PANELS.flatMap(({ top }) => {
    return hours.map(({ hour }) => {
      const x = round(LEFT_MARGIN + hourWidth * (hour + 0.5));
      const label = String(hour).padStart(2, '0');
      return `  <text x="${x}" y="${top + PANEL_HEIGHT + 16}" text-anchor="middle">${label}</text>`;
    });
  });
  const middle = (LEFT_MARGIN + WIDTH - RIGHT_MARGIN) / 2;
  return [...labels, `  <text x="${middle}" y="${HEIGHT - 14}" text-anchor="middle">hour of the day (UTC)</text>`];
}

/** The smallest number of the form 1, 2 or 5 times a power of ten that is at least `min`. */
function niceStep(min: number): number {
  if (min <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(min));
  return ([1, 2, 5, 10].find((times) => times * power >= min * (1 - ROUNDING_TOLERANCE)) ?? 10) * power;
}

/** A value of the axis; six digits leave out the rounding errors of floating-point numbers. */
function tickText(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 6 });
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function shortenTitle(text: string): string {
  const letters = [...text];
  return letters.length <= MAX_TITLE_LETTERS ? text : `${letters.slice(0, MAX_TITLE_LETTERS - 1).join('')}…`;
}

/** Escapes a text for XML, and replaces control characters, which XML does not allow. */
function xmlText(text: string): string {
  return text
    .replace(/\p{Cc}/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
