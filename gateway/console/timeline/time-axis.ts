/**
 * The axis of a timeline: converts times to horizontal positions, and draws the axis with labels at round times, which
 * are from a millisecond to many days apart. Times are UTC, as in the gateway's sentences, and the axis says so. Pure.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import { describeTime } from '../../../proto/power/judge/words.js';
import { pathShape, type Shape, textShape } from './shapes.js';
import type { TimeRange } from './timeline-data.js';

/** The possible steps between two times of the axis. Beyond the last, a step is twice the one before. */
const STEPS: readonly Milliseconds[] = [
  // Milliseconds.
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map(Seconds),
  ...[1, 2, 5, 10, 15, 30].map(Minutes),
  ...[1, 2, 3, 6, 12].map(Hours),
  Days(1),
];
/** The least distance between two times, and between two dates, in the drawing's units. */
const TIME_WIDTH = 90;
const DATE_WIDTH = 130;
const ZONE = 'UTC';

/** Converts times to horizontal positions. */
export class TimeAxis {
  readonly range: TimeRange;
  /** The positions of the range's start and end, in the drawing's units. */
  readonly left: number;
  readonly right: number;

  constructor(range: TimeRange, left: number, right: number) {
    this.range = range;
    this.left = left;
    this.right = right;
  }

  /** The horizontal position of a time, to a tenth; that of the nearer end if the time is outside the range. */
  x(atMs: number): number {
    const { fromMs, toMs } = this.range;
    const fraction = toMs > fromMs ? (atMs - fromMs) / (toMs - fromMs) : 0;
    const position = this.left + Math.min(Math.max(fraction, 0), 1) * (this.right - this.left);
    return Math.round(position * 10) / 10;
  }

  isShown(atMs: number): boolean {
    return atMs >= this.range.fromMs && atMs <= this.range.toMs;
  }

  /** A line with times below it, and below them the dates: that of the start, and each new one. */
  shapes(top: number): Shape[] {
    const { fromMs, toMs } = this.range;
    // The steps are at least as long as the time that a label covers.
    const step = stepFor(((toMs - fromMs) / (this.right - this.left)) * TIME_WIDTH);
    const start = textShape('time', this.left, top + 30, `${dateText(fromMs)} ${ZONE}`, 'start');
    const shapes = [pathShape('axis', `M${this.left} ${top}H${this.right}`), start];
    let shownDate = dateText(fromMs);
    let freeFrom = this.left + DATE_WIDTH;
    for (let atMs = Math.ceil(fromMs / step) * step; atMs <= toMs; atMs += step) {
      const x = this.x(atMs);
      shapes.push(pathShape('axis', `M${x} ${top}v4`));
      const anchor = x - this.left < TIME_WIDTH / 2 ? 'start' : this.right - x < TIME_WIDTH / 2 ? 'end' : 'middle';
      const hasDates = step >= Days(1);
      shapes.push(textShape('time', x, top + 16, hasDates ? dateText(atMs) : timeText(atMs, step), anchor));
      if (hasDates || dateText(atMs) === shownDate || x < freeFrom || this.right - x < DATE_WIDTH / 2) continue;
      shownDate = dateText(atMs);
      freeFrom = x + DATE_WIDTH;
      shapes.push(textShape('time', x, top + 30, shownDate, 'middle'));
    }
    return shapes;
  }
}

/** The smallest step that is not below a span. */
function stepFor(least: Milliseconds): Milliseconds {
  const step = STEPS.find((each) => each >= least);
  if (step !== undefined) return step;
  let days = Days(2);
  while (days < least) days *= 2;
  return days;
}

/** The time of day with as many digits as a step needs: `07:00`, `07:00:05` or `07:00:05.25`. */
function timeText(atMs: number, step: Milliseconds): string {
  // How many decimals of a second a step has: none, a tenth, a hundredth or a thousandth.
  const decimals = [Seconds(1), 100, 10, 1].findIndex((unit) => step % unit === 0);
  const fractionLength = decimals > 0 ? '.'.length + decimals : 0;
  const end = step % Minutes(1) === 0 ? 'hh:mm'.length : 'hh:mm:ss'.length + fractionLength;
  const [, time = ''] = describeTime(atMs).split('T');
  return time.slice(0, end);
}

/** The date, such as `2026-11-20`; a number of milliseconds for a time outside the years 1970–9999. */
function dateText(atMs: number): string {
  const [date = ''] = describeTime(Math.round(atMs)).split('T');
  return date;
}
