/** The axis of a timeline: converts times to horizontal positions, and draws the axis with its times. Pure. */
import { Minutes } from '../../../proto/clock.js';
import { describeTime } from '../../../proto/power/judge/words.js';
import { pathShape, type Shape, textShape } from './shapes.js';
import type { TimeRange } from './timeline-data.js';

/** The space between two times of the axis. */
const AXIS_MARK_WIDTH = 190;
const MIN_AXIS_MARKS = 2;

/** Converts times to horizontal positions. */
export class TimeAxis {
  readonly range: TimeRange;
  readonly left: number;
  readonly right: number;

  constructor(range: TimeRange, left: number, right: number) {
    this.range = range;
    this.left = left;
    this.right = right;
  }

  /** The horizontal position of a time; that of the nearer end if the time is outside the range. */
  x(atMs: number): number {
    const { fromMs, toMs } = this.range;
    const fraction = toMs > fromMs ? (atMs - fromMs) / (toMs - fromMs) : 0;
    return Math.round((this.left + Math.min(Math.max(fraction, 0), 1) * (this.right - this.left)) * 10) / 10;
  }

  isShown(atMs: number): boolean {
    return atMs >= this.range.fromMs && atMs <= this.range.toMs;
  }

  shapes(top: number): Shape[] {
    const { fromMs, toMs } = this.range;
    const markCount = Math.max(MIN_AXIS_MARKS, Math.floor((this.right - this.left) / AXIS_MARK_WIDTH) + 1);
    const hasSeconds = toMs - fromMs < Minutes(markCount);
    const shapes = [pathShape('axis', `M${this.left} ${top}H${this.right}`)];
    for (let mark = 0; mark < markCount; mark += 1) {
      const atMs = fromMs + (mark / (markCount - 1)) * (toMs - fromMs);
      const anchor = mark === 0 ? 'start' : mark === markCount - 1 ? 'end' : 'middle';
      const time = describeTime(Math.round(atMs))
        .replace('T', ' ')
        .slice(0, hasSeconds ? 'YYYY-MM-DD hh:mm:ss'.length : 'YYYY-MM-DD hh:mm'.length);
      shapes.push(
        pathShape('axis', `M${this.x(atMs)} ${top}v4`),
        textShape('time', this.x(atMs), top + 16, time, anchor),
      );
    }
    return shapes;
  }
}
