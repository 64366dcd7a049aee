/**
 * Lays out one lock's timeline as plain shapes: a band of its power states, its connections, a row of marks for each
 * ping reason, its commands, deliveries and findings, and an axis of time. Marks differ in shape as well as in
 * colour. The HTML report of `trace check` prints the shapes as an SVG (cli/commands/trace/check/html/lock-chart.ts);
 * the console's page draws them and reacts to clicks. The small numbers in the code are distances in the drawing's
 * units, chosen by eye. Pure.
 */
import { describeSpan, describeTime } from '../../../proto/power/judge/words.js';
import { allowsReason, describeAllowed } from './allowed.js';
import { deliveryRows } from './delivery-rows.js';
import { ROW_HEIGHT, type Row } from './row.js';
import { pathShape, type Shape, selectable, textShape } from './shapes.js';
import { TimeAxis } from './time-axis.js';
import type { TimelineData, TimelineFinding, TimelineSpan, TimeRange } from './timeline-data.js';

export interface TimelineLayout {
  readonly width: number;
  readonly height: number;
  /** The horizontal span of the time axis. */
  readonly left: number;
  readonly right: number;
  /** In the order of drawing: later shapes cover earlier ones. */
  readonly shapes: readonly Shape[];
  /** The chart in a sentence or two, for a screen reader. */
  readonly description: string;
}

/** The most space for the names of rows, if the drawing is wide enough. */
const MAX_LABEL_WIDTH = 210;
/** The widest that a character of a row's name is on average, and the space on both sides of the name. */
const LABEL_CHARACTER = 8.2;
const LABEL_PADDING = 14;
/** In a drawing narrower than this, the names of rows are above their rows. */
const NARROW_WIDTH = 640;
const MARGIN = 10;
const TOP = 8;
const BAND_HEIGHT = 26;
/** The axis with its times and dates. */
const AXIS_HEIGHT = 40;
/** The height of the name above a row of a narrow drawing. */
const NAME_HEIGHT = 14;
/** The widest that a character of a state's name is, in bold; the name is shown only if it fits into its band. */
const UNITS_PER_CHARACTER = 9;
/** The space on each side of the name. */
const NAME_PADDING = 5;
/** The maximum number of rows of pings; further reasons share the last row. */
const MAX_REASON_ROWS = 12;

/** Lays out the timeline for a drawing of this width. */
export function layoutTimeline(data: TimelineData, range: TimeRange, width: number): TimelineLayout {
  const isNarrow = width < NARROW_WIDTH;
  const left = isNarrow ? MARGIN : labelWidth(data, range);
  const axis = new TimeAxis(range, left, width - MARGIN);
  const shapes: Shape[] = [];
  let top = TOP;
  for (const row of rowsOf(data, axis)) {
    const nameHeight = isNarrow ? NAME_HEIGHT : 0;
    shapes.push(
      isNarrow
        ? textShape('label', left, top + NAME_HEIGHT, row.name, 'start')
        : textShape('label', left - 8, top + row.height / 2 + 4, row.name, 'end'),
    );
    shapes.push(...row.shapes(top + nameHeight));
    top += row.height + nameHeight;
  }
  shapes.push(...axis.shapes(top + 4));
  return {
    width,
    height: top + AXIS_HEIGHT,
    left,
    right: width - MARGIN,
    shapes,
    description: describeChart(data, range),
  };
}

/** The space that the longest name of a row needs. The names do not depend on the axis. */
function labelWidth(data: TimelineData, range: TimeRange): number {
  const lengths = rowsOf(data, new TimeAxis(range, 0, 1)).map(({ name }) => name.length);
  return Math.min(Math.ceil(Math.max(...lengths) * LABEL_CHARACTER) + LABEL_PADDING, MAX_LABEL_WIDTH);
}

function rowsOf(data: TimelineData, axis: TimeAxis): Row[] {
  return [
    { name: 'state', height: BAND_HEIGHT, shapes: (top) => stateBands(data, axis, top) },
    ...connectionRow(data, axis),
    ...pingRows(data, axis),
    ...spanRow('commands', 'command', data.commands, axis),
    ...deliveryRows(data, axis),
    { name: 'findings', height: ROW_HEIGHT, shapes: (top) => findingMarks(data, axis, top + ROW_HEIGHT / 2) },
  ];
}

function stateBands({ states }: TimelineData, axis: TimeAxis, top: number): Shape[] {
  return states.flatMap(({ atMs, row }, index) => {
    const endMs = states[index + 1]?.atMs ?? axis.range.toMs;
    if (endMs < axis.range.fromMs || atMs > axis.range.toMs) return [];
    const start = axis.x(atMs);
    const width = Math.max(axis.x(endMs) - start, 0.5);
    const title = `${row.state} from ${describeTime(atMs)} for ${describeSpan(endMs - atMs)}: ${describeAllowed(row)}`;
    const box = { x: start, y: top + 2, width, height: BAND_HEIGHT - 4 };
    const band: Shape = { kind: 'rect', className: `state ${row.state}`, attributes: box, title };
    const isNamed = width > row.state.length * UNITS_PER_CHARACTER + 2 * NAME_PADDING;
    return isNamed ? [band, textShape('name', start + NAME_PADDING, top + 17, row.state, 'start')] : [band];
  });
}

/** A row of bars; none if there are no spans at all. */
function spanRow(name: string, item: string, spans: readonly TimelineSpan[], axis: TimeAxis): Row[] {
  if (spans.length === 0) return [];
  const shapes = (top: number): Shape[] =>
    spans.flatMap(({ fromMs, toMs, outcome, id, title }) => {
      const endMs = toMs ?? axis.range.toMs;
      if (endMs < axis.range.fromMs || fromMs > axis.range.toMs) return [];
      const x = axis.x(fromMs);
      const box = { x, y: top + 5, width: Math.max(axis.x(endMs) - x, 3), height: ROW_HEIGHT - 10, rx: 2 };
      return [selectable({ kind: 'rect', className: `${item} ${outcome}`, attributes: box, title }, item, id)];
    });
  return [{ name, height: ROW_HEIGHT, shapes }];
}

/** The connections as bars, with a red stroke at the end of each that was not closed. */
function connectionRow({ connections }: TimelineData, axis: TimeAxis): Row[] {
  const lost = connections.filter(({ outcome, toMs }) => outcome === 'bad' && toMs !== null && axis.isShown(toMs));
  return spanRow('connected', 'connection', connections, axis).map((row) => {
    const shapes = (top: number): Shape[] => [
      ...row.shapes(top),
      ...lost.map(({ toMs }) => pathShape('connection-loss', `M${axis.x(toMs ?? 0)} ${top + 3}v${ROW_HEIGHT - 6}`)),
    ];
    return { ...row, shapes };
  });
}

/** Marks of the pings, each reason in a row, above the times in which the model allows them. */
function pingRows({ pings, states }: TimelineData, axis: TimeAxis): Row[] {
  const reasons = [...new Set(pings.map(({ reason }) => reason))].sort();
  const names =
    reasons.length > MAX_REASON_ROWS ? [...reasons.slice(0, MAX_REASON_ROWS - 1), 'other reasons'] : reasons;
  return names.map((name, index) => {
    const isLast = index === names.length - 1;
    const ofRow = pings.filter(({ reason }) => reason === name || (isLast && !names.includes(reason)));
    const marks = (top: number): Shape[] =>
      ofRow
        .filter(({ atMs }) => axis.isShown(atMs))
        .map(({ atMs, id, title }) => {
          const box = { x: axis.x(atMs) - 1, y: top + 4, width: 2, height: ROW_HEIGHT - 6 };
          return selectable({ kind: 'rect', className: 'ping', attributes: box, title }, 'ping', id);
        });
    const shapes = (top: number): Shape[] => [...allowedTimes(states, name, axis, top), ...marks(top)];
    return { name: name.replace('REASON_', ''), height: ROW_HEIGHT, shapes };
  });
}

/** The times in which the model lets the lock send pings of a reason. */
function allowedTimes(states: TimelineData['states'], reason: string, axis: TimeAxis, top: number): Shape[] {
  return states.flatMap(({ atMs, row }, index) => {
    const [start, end] = [axis.x(atMs), axis.x(states[index + 1]?.atMs ?? axis.range.toMs)];
    if (end <= start || !allowsReason(row, reason)) return [];
    const box = { x: start, y: top + 4, width: end - start, height: ROW_HEIGHT - 6 };
    return [{ kind: 'rect', className: 'allowed', attributes: box, title: `allowed in ${row.state}` }];
  });
}

/** A violation is a filled triangle, a warning an open circle. Violations are drawn last, so that none is hidden. */
function findingMarks({ findings }: TimelineData, axis: TimeAxis, y: number): Shape[] {
  const isViolation = ({ severity }: TimelineFinding): number => Number(severity === 'violation');
  return findings
    .filter(({ atMs }) => axis.isShown(atMs))
    .toSorted((a, b) => isViolation(a) - isViolation(b))
    .map(({ atMs, severity, id, title }) => {
      const x = axis.x(atMs);
      const shape: Shape =
        severity === 'violation'
          ? { kind: 'path', className: severity, attributes: { d: `M${x - 6} ${y - 5}h12l-6 11z` }, title }
          : { kind: 'circle', className: severity, attributes: { cx: x, cy: y, r: 5 }, title };
      return selectable(shape, 'finding', id);
    });
}

function describeChart({ states, pingCount, findings }: TimelineData, range: TimeRange): string {
  const names = [...new Set(states.map(({ row }) => row.state))].join(', ');
  const span = `From ${describeTime(range.fromMs)} to ${describeTime(range.toMs)}.`;
  return `${span} States: ${names}. ${pingCount} pings and ${findings.length} findings; the tables list them.`;
}
