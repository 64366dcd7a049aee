/**
 * Street tiles of the operator's tile server (`--map-tiles`). They cover the coasts, which show only until the tiles
 * are there; everything else on a map lies over the tiles. This file is loaded only where such a server is set.
 */
import * as L from 'leaflet';
import type { StreetTiles } from './tile-server.js';

/** Adds the tiles, and a note in a corner of the map that says whose they are. */
export function addStreetTiles(map: L.Map, { url, attribution }: StreetTiles, maxZoom: number): void {
  // Public tile servers want to know which site asks; the path of the page does not concern them.
  L.tileLayer(url, { maxZoom, referrerPolicy: 'strict-origin' }).addTo(map);
  const note = document.createElement('p');
  note.className = 'map-attribution';
  note.textContent = attribution;
  map.getContainer().append(note);
}
