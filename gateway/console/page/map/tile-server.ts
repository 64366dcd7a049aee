/** The tile server of the page's maps, which the page's HTML names if the operator has set one (`--map-tiles`). */

/** A tile server, as the page's HTML names it. */
export interface StreetTiles {
  /** The address of a tile, with `{z}`, `{x}` and `{y}`. */
  readonly url: string;
  readonly attribution: string;
}

/** The name of Leaflet's pane (a layer of the map) for the coasts; the style sheet places it below the tiles. */
export const COAST_PANE = 'coast';

/** The tile server of this page; null if there is none. */
export function streetTiles(): StreetTiles | null {
  const { mapTiles = '', mapAttribution = '' } = document.getElementById('app')?.dataset ?? {};
  return mapTiles === '' ? null : { url: mapTiles, attribution: mapAttribution };
}
