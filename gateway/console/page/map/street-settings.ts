/** The streets of the page’s maps, which the page’s HTML names if the operator has set them. */

/** Street tiles, as the page's HTML names them. */
export interface StreetTiles {
  /** The address of a tile on this origin, with `{z}`, `{x}` and `{y}`. */
  readonly url: string;
  readonly attribution: string;
}

/** The name of Leaflet's pane (a layer of the map) for the coasts; the style sheet places it below the tiles. */
export const COAST_PANE = 'coast';

/** The street tiles of this page; null if there are none. */
export function streetTiles(): StreetTiles | null {
  const { mapTiles = '', mapAttribution = '' } = document.getElementById('app')?.dataset ?? {};
  return mapTiles === '' ? null : { url: mapTiles, attribution: mapAttribution };
}

/** The name of Leaflet's pane for lines of streets; the style sheet places it below the locks. */
export const STREETS_PANE = 'streets';

/** The address of the lines of streets of this page (`--map-streets`); empty if there are none. */
export function streetsAddress(): string {
  return document.getElementById('app')?.dataset.mapStreets ?? '';
}
