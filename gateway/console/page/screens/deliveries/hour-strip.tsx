/**
 * The last 24 hours of a webhook URL as a strip of bars, one for each hour. A bar shows how many events were delivered,
 * below that how many wait, and at the bottom how many were given up. A sign above a bar marks an hour with failed
 * attempts.
 */
import type { JSX } from 'preact';
import type { DeliveryHour } from '../../api/shapes.js';
import { timeText } from '../../view/time-text.js';
import { partHeights } from './part-heights.js';

/** Sizes in pixels. */
const HEIGHT = 34;
const BAR_WIDTH = 6;
const GAP = 2;
/** The space above the bars for the signs of failed attempts. */
const SIGNS_HEIGHT = 6;
/** A count that is not zero is at least this high. */
const MIN_BAR = 2;

/** The parts of a bar, from the bottom. */
const PARTS = ['dead', 'waiting', 'delivered'] as const;

export function HourStrip({ hours }: { readonly hours: readonly DeliveryHour[] }): JSX.Element {
  const highest = Math.max(1, ...hours.map(totalOf));
  const width = hours.length * (BAR_WIDTH + GAP);
  return (
    <svg class="hours" role="img" aria-label={describe(hours)} width={width} height={HEIGHT + SIGNS_HEIGHT}>
      {hours.map((hour, index) => (
        <Bar key={hour.from} hour={hour} x={index * (BAR_WIDTH + GAP)} highest={highest} />
      ))}
    </svg>
  );
}

interface BarProps {
  readonly hour: DeliveryHour;
  readonly x: number;
  /** The count of the highest bar. */
  readonly highest: number;
}

function Bar({ hour, x, highest }: BarProps): JSX.Element {
  let bottom = HEIGHT + SIGNS_HEIGHT;
  const heights = partHeights(
    PARTS.map((part) => (hour[part] / highest) * HEIGHT),
    { height: HEIGHT, minimum: MIN_BAR },
  );
  const parts = PARTS.flatMap((part, index) => {
    const height = heights[index] ?? 0;
    if (height === 0) return [];
    bottom -= height;
    return [<rect key={part} class={part} x={x} y={bottom} width={BAR_WIDTH} height={height} />];
  });
  return (
    <g>
      <title>{hourText(hour)}</title>
      <rect class="empty-hour" x={x} y={SIGNS_HEIGHT} width={BAR_WIDTH} height={HEIGHT} />
      {parts}
      {/* A triangle that points down at the bar. */}
      {hour.failed_attempts > 0 && (
        <path class="failed" d={`M${x} 0h${BAR_WIDTH}l${-BAR_WIDTH / 2} ${SIGNS_HEIGHT - 1}z`} />
      )}
    </g>
  );
}

function totalOf({ delivered, dead, waiting }: DeliveryHour): number {
  return delivered + dead + waiting;
}

function hourText({ from, delivered, failed_attempts, dead, waiting, estimated }: DeliveryHour): string {
  const about = estimated ? 'about ' : '';
  const failed = `${failed_attempts} failed attempt${failed_attempts === 1 ? '' : 's'}`;
  const counts = `${delivered} delivered, ${waiting} waiting, ${dead} given up, ${failed}`;
  return `from ${timeText(from)}: ${about}${counts}`;
}

function describe(hours: readonly DeliveryHour[]): string {
  const sum = (count: (hour: DeliveryHour) => number): number => hours.reduce((total, hour) => total + count(hour), 0);
  const [delivered, waiting, dead] = [
    sum((each) => each.delivered),
    sum((each) => each.waiting),
    sum((each) => each.dead),
  ];
  return `The last ${hours.length} hours: ${delivered} delivered, ${waiting} waiting, ${dead} given up.`;
}
