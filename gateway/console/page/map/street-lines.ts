/**
 * Lines of streets (`--map-streets`) on a map, below everything else but the coasts. They have a canvas of their own,
 * so that drawing the locks does not draw them again, and they show from the zoom on at which a block is wider than a
 * line. This file is loaded only where lines are set.
 */

import type { MultiLineString } from 'geojson';
import * as L from 'leaflet';
import { STREETS_PANE } from './street-settings.js';

/** From this zoom on, where a block of 100 m has 9 pixels, streets are drawn. */
const FROM_ZOOM = 13;
/** Their width in pixels at this zoom, at the next one, and from the one after it on. */
const WIDTHS = [1, 2, 4] as const;

/** Streets on one map. */
export interface DrawnStreets {
  /** Draws them in another colour. */
  restyle(color: string): void;
}

let loaded: Promise<L.LatLngTuple[][]> | undefined;

/** Draws the streets on a map, whatever part of the world it shows. Without the data it draws none. */
export function drawStreets(map: L.Map, address: string, color: string): DrawnStreets {
  map.createPane(STREETS_PANE);
  const renderer = L.canvas({ pane: STREETS_PANE, padding: 0.5 });
  const streets = L.polyline([], { pane: STREETS_PANE, renderer, interactive: false, color, weight: weightAt(map) });
  const show = (): void => {
    const isShown = map.getZoom() >= FROM_ZOOM;
    if (!isShown) streets.remove();
    else if (!map.hasLayer(streets)) streets.addTo(map);
    if (isShown) streets.setStyle({ weight: weightAt(map) });
  };
  // A failed call may be repeated by the next map.
  loaded ??= load(address);
  loaded.then(
    (lines) => {
      streets.setLatLngs(lines);
      map.on('zoomend', show);
      show();
    },
    () => {
      loaded = undefined;
    },
  );
  return { restyle: (newColor) => void streets.setStyle({ color: newColor }) };
}

function weightAt(map: L.Map): number {
  return WIDTHS[Math.floor(map.getZoom()) - FROM_ZOOM] ?? WIDTHS[2];
}

async function load(address: string): Promise<L.LatLngTuple[][]> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the streets: the gateway answered ${answer.status}`);
  const { coordinates } = (await answer.json()) as MultiLineString;
  return coordinates.map((line) => line.map(([longitude = 0, latitude = 0]) => [latitude, longitude]));
}
