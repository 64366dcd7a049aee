/**
 * The rows of a timeline that show deliveries, one for each webhook URL: a line from the receipt of an event to its
 * last attempt, a tick for each failed attempt before that, and a mark at the end. A delivered event is a filled dot, a
 * failed one a cross, a waiting one a ring. Pure.
 */
import { ROW_HEIGHT, type Row } from './row.js';
import { pathShape, type Shape, selectable } from './shapes.js';
import type { TimeAxis } from './time-axis.js';
import type { TimelineData, TimelineDelivery } from './timeline-data.js';

/** The maximum number of rows; further URLs share the last row. */
const MAX_ROWS = 4;
/** A shorter line, in the drawing's units, would be hidden by the marks at its ends. */
const MIN_LINE_LENGTH = 6;

export function deliveryRows({ deliveries }: TimelineData, axis: TimeAxis): Row[] {
  const targets = [...new Set(deliveries.map(({ target }) => target))];
  const shown = targets.length > MAX_ROWS ? targets.slice(0, MAX_ROWS - 1) : targets;
  const rows = shown.map((target) => rowOf(targets.length === 1 ? 'deliveries' : `to ${target}`, [target]));
  if (shown.length < targets.length) rows.push(rowOf('to other URLs', targets.slice(shown.length)));
  return rows;

  function rowOf(name: string, rowTargets: readonly string[]): Row {
    const ofRow = deliveries.filter(({ target }) => rowTargets.includes(target));
    const shapes = (top: number): Shape[] => ofRow.flatMap((each) => deliveryShapes(each, axis, top + ROW_HEIGHT / 2));
    return { name, height: ROW_HEIGHT, shapes };
  }
}

function deliveryShapes(delivery: TimelineDelivery, axis: TimeAxis, y: number): Shape[] {
  const { fromMs, attempts, outcome, id, title } = delivery;
  const endMs = outcome === 'open' ? Math.max(axis.range.toMs, fromMs) : (attempts.at(-1)?.atMs ?? fromMs);
  if (endMs < axis.range.fromMs || fromMs > axis.range.toMs) return [];
  const [start, end] = [axis.x(fromMs), axis.x(endMs)];
  const shapes: Shape[] = [];
  if (end - start >= MIN_LINE_LENGTH) shapes.push(pathShape(`wait ${outcome}`, `M${start} ${y}H${end}`));
  const failed = attempts.filter(({ isGood, atMs }) => !isGood && axis.isShown(atMs) && atMs < endMs);
  for (const { atMs } of failed) shapes.push(pathShape('failed-attempt', `M${axis.x(atMs)} ${y - 4}v8`));
  // The mark of a waiting delivery is at its event: the end of its line moves with the present time.
  const markMs = outcome === 'open' ? fromMs : endMs;
  if (!axis.isShown(markMs)) return shapes;
  return [...shapes, selectable({ ...markOf(outcome, axis.x(markMs), y), title }, 'delivery', id)];
}

function markOf(outcome: TimelineDelivery['outcome'], x: number, y: number): Shape {
  const className = `delivery ${outcome}`;
  if (outcome === 'bad') return pathShape(className, `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`);
  return { kind: 'circle', className, attributes: { cx: x, cy: y, r: 4 } };
}
