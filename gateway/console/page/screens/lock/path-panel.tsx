/** A map of a lock's positions in a span of time, with the uncertainty and the age of the last one. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { TimeRange } from '../../../timeline/timeline-data.js';
import type { Ping } from '../../api/shapes.js';
import { PathMap, type PathPlace } from '../../map/path-map.js';
import { Age } from '../../view/age.js';
import { timeText } from '../../view/time-text.js';

interface PathProps {
  /** Newest first. */
  readonly pings: readonly Ping[];
  readonly range: TimeRange;
  /** The event id of the selected ping. */
  readonly selected: string | null;
  readonly onSelect: (id: string) => void;
}

export function PathPanel({ pings, range, selected, onSelect }: PathProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const map = useRef<PathMap | null>(null);
  // The map is made once, but must call the newest function.
  const select = useRef(onSelect);
  select.current = onSelect;
  const { fromMs, toMs } = range;
  const places = useMemo(() => placesOf(pings, { fromMs, toMs }), [pings, fromMs, toMs]);
  useEffect(() => {
    if (element.current === null) return;
    const drawn = new PathMap(element.current, (id) => select.current(id));
    map.current = drawn;
    return () => drawn.remove();
  }, []);
  useEffect(() => map.current?.show(places, selected), [places, selected]);
  return (
    <section class="card path" aria-label="Positions in the shown time" data-places={places.length}>
      <div class="map" ref={element} />
      <PathText places={places} selected={selected} />
    </section>
  );
}

function PathText({ places, selected }: { readonly places: readonly PathPlace[]; readonly selected: string | null }) {
  const named = places.find(({ id }) => id === selected);
  const place = named ?? places.at(-1);
  if (place === undefined) return <p class="hint">No position in this time.</p>;
  const count = places.length === 1 ? '1 position' : `${places.length} positions`;
  return (
    <p class="hint">
      {count}; the {named === undefined ? 'last' : 'selected'} one ± {place.uncertaintyMeters} m, {timeText(place.date)}{' '}
      (<Age date={place.date} />)
    </p>
  );
}

/**
 * The positions of the pings that were received in a span of time, by the time at which the lock was there, oldest
 * first. A ping that the lock buffered was received later than it was made.
 */
function placesOf(pings: readonly Ping[], { fromMs, toMs }: TimeRange): PathPlace[] {
  const places: PathPlace[] = [];
  for (const { event_id: id, received_at, date, latitude, longitude, uncertainty } of pings) {
    const atMs = Date.parse(received_at);
    if (latitude === undefined || longitude === undefined || uncertainty === undefined) continue;
    if (atMs < fromMs || atMs > toMs) continue;
    places.push({ id, date, latitude, longitude, uncertaintyMeters: uncertainty });
  }
  return places.sort((a, b) => Date.parse(a.date) - Date.parse(b.date));
}
