/**
 * Draws a lock's timeline, and lets the reader change the shown time: drag over it to look closer, turn the wheel to
 * zoom, double-click (or press 0) to see everything, arrow keys to move. A click on a mark selects what it represents.
 */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Seconds } from '../../../../proto/clock.js';
import type { Shape } from '../../timeline/shapes.js';
import type { TimelineData, TimeRange } from '../../timeline/timeline-data.js';
import { layoutTimeline, type TimelineLayout } from '../../timeline/timeline-layout.js';

interface TimelineProps {
  readonly data: TimelineData;
  /** All of the time that the data covers. */
  readonly whole: TimeRange;
  /** The shown part of it. */
  readonly range: TimeRange;
  readonly onRange: (range: TimeRange) => void;
  /** Called with the part that the reader drags over, while the drag lasts, then with null. */
  readonly onBrush?: (range: TimeRange | null) => void;
  /** The selected item, such as `ping 12`; null if none is. */
  readonly selected: string | null;
  readonly onSelect: (item: string | null) => void;
}

/** The shortest time that can be shown. */
const MIN_SPAN = Seconds(10);
/** How much one turn of the wheel changes the shown time. */
const ZOOM_FACTOR = 1.25;
/** How much of the shown time an arrow key moves. */
const KEY_STEP = 0.2;
/** A shorter drag, in pixels, is a click. */
const MIN_DRAG_PIXELS = 5;
/** The width in pixels until the element is measured, and the least one that is drawn. */
const DEFAULT_WIDTH = 900;
const MIN_WIDTH = 200;

export function Timeline({ data, whole, range, onRange, onBrush, selected, onSelect }: TimelineProps): JSX.Element {
  const [container, width] = useWidth();
  const layout = useMemo(() => layoutTimeline(data, range, width), [data, range, width]);
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number } | null>(null);
  const positionOf = (event: MouseEvent): number =>
    event.clientX - (container.current?.getBoundingClientRect().left ?? 0);
  const show = (fromMs: number, toMs: number): void => onRange(limitRange({ fromMs, toMs }, whole));

  const startDrag = (event: MouseEvent): void => {
    if (event.button === 0) setDrag({ from: positionOf(event), to: positionOf(event) });
  };
  const moveDrag = (event: MouseEvent): void => {
    if (drag === null) return;
    const ends = [drag.from, positionOf(event)].sort((a, b) => a - b) as [number, number];
    setDrag({ ...drag, to: positionOf(event) });
    onBrush?.({ fromMs: timeAt(layout, range, ends[0]), toMs: timeAt(layout, range, ends[1]) });
  };
  const leaveDrag = (): void => {
    setDrag(null);
    onBrush?.(null);
  };
  const endDrag = (event: MouseEvent): void => {
    if (drag === null) return;
    leaveDrag();
    const ends = [drag.from, positionOf(event)].sort((a, b) => a - b) as [number, number];
    if (ends[1] - ends[0] >= MIN_DRAG_PIXELS) show(timeAt(layout, range, ends[0]), timeAt(layout, range, ends[1]));
    else onSelect((event.target as Element).closest('[data-item]')?.getAttribute('data-item') ?? null);
  };
  const zoom = (event: WheelEvent): void => {
    // A sideways swipe on a touchpad is left to the browser. Browsers report a pinch as a wheel event with ctrlKey.
    if (!event.ctrlKey && !event.altKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    const centre = timeAt(layout, range, positionOf(event));
    const factor = event.deltaY > 0 ? ZOOM_FACTOR : 1 / ZOOM_FACTOR;
    show(centre - (centre - range.fromMs) * factor, centre + (range.toMs - centre) * factor);
  };
  const press = (event: KeyboardEvent): void => {
    const step = (range.toMs - range.fromMs) * KEY_STEP;
    const changes: Readonly<Record<string, readonly [ofStart: number, ofEnd: number]>> = {
      ArrowLeft: [-step, -step],
      ArrowRight: [step, step],
      '+': [step, -step],
      '-': [-step, step],
    };
    const change = changes[event.key];
    if (event.key === '0') show(whole.fromMs, whole.toMs);
    else if (change !== undefined) show(range.fromMs + change[0], range.toMs + change[1]);
    else return;
    event.preventDefault();
  };
  return (
    <section
      class="timeline"
      ref={container}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys above move through the time
      tabIndex={0}
      aria-label={`Timeline of ${data.mac}`}
      onKeyDown={press}
    >
      <svg
        role="img"
        aria-label={layout.description}
        width={layout.width}
        height={layout.height}
        onMouseDown={startDrag}
        onMouseMove={moveDrag}
        onMouseUp={endDrag}
        onMouseLeave={leaveDrag}
        onDblClick={() => show(whole.fromMs, whole.toMs)}
        onWheel={zoom}
      >
        {layout.shapes.map((shape, index) => (
          <ShapeView key={index} shape={shape} isSelected={shape.item !== undefined && shape.item === selected} />
        ))}
        {drag !== null && (
          <rect
            class="brush"
            x={Math.min(drag.from, drag.to)}
            y={0}
            width={Math.abs(drag.to - drag.from)}
            height={layout.height}
          />
        )}
      </svg>
      <p class="hint">Pings have a row for each reason, shaded while the lock’s power state allows pings for it.</p>
    </section>
  );
}

function ShapeView({ shape, isSelected }: { readonly shape: Shape; readonly isSelected: boolean }): JSX.Element {
  const { kind: Kind, className, attributes, text, title, item } = shape;
  return (
    <Kind
      class={`${className}${isSelected ? ' selected' : ''}${item === undefined ? '' : ' selectable'}`}
      data-item={item}
      {...attributes}
    >
      {text}
      {title !== undefined && title !== '' && <title>{title}</title>}
    </Kind>
  );
}

/** The time at a horizontal position of the drawing. */
function timeAt({ left, right }: TimelineLayout, { fromMs, toMs }: TimeRange, x: number): number {
  return fromMs + ((x - left) / (right - left)) * (toMs - fromMs);
}

/** The part of a range that is within the whole time; at least {@link MIN_SPAN} long. */
function limitRange({ fromMs, toMs }: TimeRange, whole: TimeRange): TimeRange {
  const span = Math.min(Math.max(toMs - fromMs, MIN_SPAN), Math.max(whole.toMs - whole.fromMs, MIN_SPAN));
  const start = Math.min(Math.max(fromMs, whole.fromMs), Math.max(whole.toMs - span, whole.fromMs));
  return { fromMs: start, toMs: start + span };
}

/** A reference for an element, and its width in pixels, which follows the window. */
function useWidth() {
  const container = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(DEFAULT_WIDTH);
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(Math.floor(element.clientWidth), MIN_WIDTH)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [container, width] as const;
}
