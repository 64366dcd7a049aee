/**
 * The names of large towns on a map, larger towns first, so that a reader knows where it is without the internet. The
 * data (towns.geojson) has the 800 most populous towns of GeoNames (CC BY 4.0) that are 30 km apart, by population.
 */
import type * as L from 'leaflet';
import townsAddress from './towns.geojson';

/** The part of the GeoJSON that is read: the town at each point has the name at the same place of the list. */
interface Towns {
  readonly properties: { readonly names: readonly string[] };
  readonly geometry: { readonly coordinates: readonly (readonly [longitude: number, latitude: number])[] };
}

const MAX_SHOWN = 40;
/** Two names are at least so far apart, pixels. */
const GAP_X = 100;
const GAP_Y = 24;

let loaded: Promise<Towns> | undefined;

/** Shows the names on a map, whatever part of the world it shows. Without the data it shows none. */
export function showTownNames(map: L.Map): void {
  const pane = map.createPane('towns');
  pane.ariaHidden = 'true';
  // A failed call may be repeated by the next map.
  loaded ??= fetch(townsAddress).then((answer) => answer.json() as Promise<Towns>);
  loaded.then(
    (towns) => {
      const draw = (): void => pane.replaceChildren(...namesIn(map, towns));
      map.on('moveend', draw);
      // While a zoom is animated, the names would be in wrong places.
      map.on('zoomstart', () => pane.replaceChildren());
      draw();
    },
    () => {
      loaded = undefined;
    },
  );
}

/** An element for each name in the part of the world that the map shows. */
function namesIn(map: L.Map, { properties: { names }, geometry: { coordinates } }: Towns): HTMLElement[] {
  const view = map.getBounds();
  const shown: { readonly x: number; readonly y: number; readonly element: HTMLElement }[] = [];
  for (const [index, [longitude, latitude]] of coordinates.entries()) {
    if (!view.contains([latitude, longitude])) continue;
    const { x, y } = map.latLngToLayerPoint([latitude, longitude]);
    if (shown.some((other) => Math.abs(other.x - x) < GAP_X && Math.abs(other.y - y) < GAP_Y)) continue;
    const element = document.createElement('span');
    element.className = 'town';
    element.textContent = names[index] ?? '';
    element.style.translate = `${x}px ${y}px`;
    shown.push({ x, y, element });
    if (shown.length === MAX_SHOWN) break;
  }
  return shown.map(({ element }) => element);
}
