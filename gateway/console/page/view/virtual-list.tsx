/**
 * A list that draws only the rows in view, so that ten thousand rows scroll as smoothly as ten. `j` and `k` (or the
 * arrow keys) move through it, Enter opens a row.
 */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useKeys } from '../app/keys.js';

interface VirtualListProps<Item> {
  readonly items: readonly Item[];
  /** The height of every row. */
  readonly rowPixels: number;
  readonly keyOf: (item: Item) => string;
  /** Draws an item. While the row is in view, it is called again only for another item or if the function changes. */
  readonly row: (item: Item) => ComponentChildren;
  readonly onOpen: (item: Item) => void;
  /** Called when the reader moves through the list or scrolls away from its start. */
  readonly onBrowse?: () => void;
  /** For screen readers. */
  readonly label: string;
}

/** Rows that are drawn above and below the view, so that scrolling shows no gap. */
const MARGIN_ROWS = 8;
/** How many rows are drawn before the list has been measured. */
const FIRST_ROWS = 30;

export function VirtualList<Item>({
  items,
  rowPixels,
  keyOf,
  row,
  onOpen,
  onBrowse,
  label,
}: VirtualListProps<Item>): JSX.Element {
  const container = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [visible, setVisible] = useState(FIRST_ROWS);
  const [current, setCurrent] = useState(0);
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const measure = (): void => setVisible(Math.ceil(element.clientHeight / rowPixels));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [rowPixels]);
  const scroll = (): void => {
    const pixels = container.current?.scrollTop ?? 0;
    if (pixels > 0) onBrowse?.();
    setFirst(Math.floor(pixels / rowPixels));
  };
  const move = (to: number): void => {
    onBrowse?.();
    const index = Math.min(Math.max(to, 0), items.length - 1);
    setCurrent(index);
    const element = container.current;
    if (element === null) return;
    const top = index * rowPixels;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + rowPixels > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowPixels - element.clientHeight;
  };
  // `j` and `k` work wherever the focus is, and bring it into the list.
  const step = (rows: number): void => {
    container.current?.focus();
    move(current + rows);
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  const press = (event: KeyboardEvent): void => {
    const item = items[current];
    if (event.key === 'ArrowDown') move(current + 1);
    else if (event.key === 'ArrowUp') move(current - 1);
    else if (event.key === 'Home') move(0);
    else if (event.key === 'End') move(items.length - 1);
    else if (event.key === 'Enter' && item !== undefined) onOpen(item);
    else return;
    event.preventDefault();
  };
  const start = Math.max(first - MARGIN_ROWS, 0);
  const shown = items.slice(start, first + visible + MARGIN_ROWS);
  // A row that is out of view is no element, and can't be named.
  const currentItem = shown[current - start];
  return (
    <div
      class="list"
      ref={container}
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={currentItem === undefined ? undefined : rowId(label, keyOf(currentItem))}
      onScroll={scroll}
      onKeyDown={press}
    >
      <div class="list-space" role="presentation" style={{ height: `${items.length * rowPixels}px` }}>
        {shown.map((item, index) => {
          const position = start + index;
          const key = keyOf(item);
          return (
            // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names its current row
            // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens the current row
            <div
              key={key}
              id={rowId(label, key)}
              class="list-row"
              role="option"
              aria-selected={position === current}
              aria-setsize={items.length}
              aria-posinset={position + 1}
              style={{ top: `${position * rowPixels}px`, height: `${rowPixels}px` }}
              onClick={() => {
                setCurrent(position);
                onOpen(item);
              }}
            >
              <RowContent item={item} row={row} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface RowContentProps<Item> {
  readonly item: Item;
  readonly row: (item: Item) => ComponentChildren;
}

/** A row's content, made once per item: Preact does not draw again what is the same object as before. */
function RowContent<Item>({ item, row }: RowContentProps<Item>): ComponentChildren {
  return useMemo(() => row(item), [item, row]);
}

function rowId(label: string, key: string): string {
  return `${label}-${key}`.replaceAll(/[^\w-]/g, '_');
}
