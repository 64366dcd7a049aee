/**
 * Draws one lock's timeline as an SVG: a band of its power states, a row of marks for each reason of its pings, and a
 * row of its findings. Marks differ in shape as well as in colour. Pure.
 */
import { Minutes } from '../../../../../proto/clock.js';
import { describeSpan, describeTime } from '../../../../../proto/power/judge/words.js';
import { POWER_MODEL, type StateRow } from '../../../../../proto/power/model.js';
import { escapeXml } from '../../../../terminal/xml-text.js';
import type { FindingJson } from '../findings/finding-json.js';
import type { LockTimeline } from './timelines.js';

/** Where the time axis starts and ends, in units of the drawing. */
const AXIS_LEFT = 210;
const AXIS_RIGHT = 990;
const WIDTH = 1000;
const BAND_HEIGHT = 26;
const ROW_HEIGHT = 18;
const TOP = 8;
/** The width of a character of a state's name; the name is shown only if it fits into its band. */
const UNITS_PER_CHARACTER = 8;
/** The number of times written below the axis. */
const AXIS_MARKS = 5;
/** The maximum number of rows of pings; further reasons share the last row. */
const MAX_REASON_ROWS = 12;

/** The time that a chart covers, ms since the epoch. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The SVG. @param id unique in the page */
export function lockChart(lock: LockTimeline, findings: readonly FindingJson[], range: TimeRange, id: string): string {
  const reasons = [...new Set(lock.pings.map(({ reason }) => reason))].sort();
  const rows = reasons.length > MAX_REASON_ROWS ? [...reasons.slice(0, MAX_REASON_ROWS - 1), 'other reasons'] : reasons;
  const findingsTop = TOP + BAND_HEIGHT + rows.length * ROW_HEIGHT;
  const axisTop = findingsTop + ROW_HEIGHT + 4;
  const parts = [
    `<svg role="img" aria-labelledby="${id}-t ${id}-d" viewBox="0 0 ${WIDTH} ${axisTop + 22}">`,
    `<title id="${id}-t">Timeline of ${escapeXml(lock.mac)}</title>`,
    `<desc id="${id}-d">${escapeXml(describeChart(lock, findings, range))}</desc>`,
    label(TOP + BAND_HEIGHT - 8, 'state'),
    ...stateBands(lock, range),
    ...rows.map((reason, index) =>
      label(TOP + BAND_HEIGHT + (index + 1) * ROW_HEIGHT - 4, reason.replace('REASON_', '')),
    ),
    ...lock.pings.map(({ atMs, reason }) => {
      const row = Math.min(rows.indexOf(reason) === -1 ? rows.length - 1 : rows.indexOf(reason), rows.length - 1);
      const y = TOP + BAND_HEIGHT + row * ROW_HEIGHT + 4;
      return `<rect class="ping" x="${xOf(atMs, range) - 1}" y="${y}" width="2" height="${ROW_HEIGHT - 6}"/>`;
    }),
    label(findingsTop + ROW_HEIGHT - 4, 'findings'),
    ...findings.map((finding) => findingMark(finding, findingsTop + ROW_HEIGHT / 2, range)),
    ...timeAxis(axisTop, range),
    '</svg>',
  ];
  return parts.join('\n');
}

/** The horizontal position of a time. */
function xOf(atMs: number, { fromMs, toMs }: TimeRange): number {
  const fraction = toMs > fromMs ? (atMs - fromMs) / (toMs - fromMs) : 0;
  return Math.round((AXIS_LEFT + Math.min(Math.max(fraction, 0), 1) * (AXIS_RIGHT - AXIS_LEFT)) * 10) / 10;
}

function label(y: number, text: string): string {
  return `<text class="label" x="${AXIS_LEFT - 8}" y="${y}" text-anchor="end">${escapeXml(text)}</text>`;
}

function stateBands({ states }: LockTimeline, range: TimeRange): string[] {
  return states.map(({ atMs, row }, index) => {
    const endMs = states[index + 1]?.atMs ?? range.toMs;
    const start = xOf(atMs, range);
    const width = Math.max(xOf(endMs, range) - start, 0.5);
    const span = `${row.state} from ${describeTime(atMs)} for ${describeSpan(endMs - atMs)}: ${describeAllowed(row)}`;
    const place = `x="${start}" y="${TOP}" width="${width}" height="${BAND_HEIGHT - 4}"`;
    const rect = `<rect class="state ${row.state}" ${place}/>`;
    const isShown = width > row.state.length * UNITS_PER_CHARACTER;
    const text = isShown ? `<text class="name" x="${start + 5}" y="${TOP + 15}">${row.state}</text>` : '';
    return `<g><title>${escapeXml(span)}</title>${rect}${text}</g>`;
  });
}

/** A violation is a filled triangle, a warning an open circle. */
function findingMark({ at, line, rule, severity }: FindingJson, y: number, range: TimeRange): string {
  const x = xOf(at === null ? range.fromMs : Date.parse(at), range);
  const shape =
    severity === 'violation'
      ? `<path class="violation" d="M${x - 6} ${y - 5}h12l-6 11z"/>`
      : `<circle class="warning" cx="${x}" cy="${y}" r="5"/>`;
  return `<g><title>${escapeXml(`${severity} ${rule}, line ${line}`)}</title>${shape}</g>`;
}

function timeAxis(y: number, range: TimeRange): string[] {
  const hasSeconds = range.toMs - range.fromMs < Minutes(AXIS_MARKS);
  const parts = [`<path class="axis" d="M${AXIS_LEFT} ${y}H${AXIS_RIGHT}"/>`];
  for (let mark = 0; mark < AXIS_MARKS; mark += 1) {
    const atMs = range.fromMs + (mark / (AXIS_MARKS - 1)) * (range.toMs - range.fromMs);
    const anchor = mark === 0 ? 'start' : mark === AXIS_MARKS - 1 ? 'end' : 'middle';
    const text = describeTime(Math.round(atMs))
      .replace('T', ' ')
      .slice(0, hasSeconds ? 'YYYY-MM-DD hh:mm:ss'.length : 'YYYY-MM-DD hh:mm'.length);
    parts.push(`<path class="axis" d="M${xOf(atMs, range)} ${y}v4"/>`);
    parts.push(`<text class="time" x="${xOf(atMs, range)}" y="${y + 16}" text-anchor="${anchor}">${text}</text>`);
  }
  return parts;
}

/** The chart in a sentence or two, for a screen reader. */
function describeChart(lock: LockTimeline, findings: readonly FindingJson[], range: TimeRange): string {
  const states = [...new Set(lock.states.map(({ row }) => row.state))].join(', ');
  const span = `From ${describeTime(range.fromMs)} to ${describeTime(range.toMs)}.`;
  return `${span} States: ${states}. ${lock.pingCount} pings and ${findings.length} findings; the tables list them.`;
}

/** What the model lets a lock do in a state. */
export function describeAllowed(row: StateRow): string {
  const allowed = [
    row.theft && 'theft pings',
    row.period && 'daily pings',
    row.stateChange && 'state-change pings',
    row.cellOnInRide && 'pings in a ride',
    row.rideTracking && 'ride tracking if it is switched on',
    row.commands && 'commands',
    row.connectionKept === 'always' && 'a connection that is always kept',
    row.connectionKept === 'in-window' && 'a connection that is kept in the high window',
  ].filter((each) => each !== false);
  return allowed.length === 0 ? 'allows nothing' : `allows ${allowed.join(', ')}`;
}

/** The states of the model with what they allow, as rows of a table. */
export function modelRows(): string[] {
  return POWER_MODEL.states.map((row) => {
    const square = `<rect class="state ${row.state}" width="10" height="10"/>`;
    const swatch = `<svg class="swatch" aria-hidden="true" viewBox="0 0 10 10">${square}</svg>`;
    const allowed = escapeXml(describeAllowed(row).replace('allows ', ''));
    return `<tr><th scope="row">${swatch} ${row.state}</th><td>${allowed}</td></tr>`;
  });
}
