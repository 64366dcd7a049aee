/** What the HTML of the pages says about the map, to anybody: nothing secret. */

/** The path below which the operators' and the merchants' port serve tiles, to those who are logged in. */
export const TILES_PATH = '/console/tiles';

/** The path at which both of these ports serve the lines of streets, to those who are logged in. */
export const STREETS_PATH = '/console/streets';

export interface MapNote {
  /** The address of a tile as Leaflet takes it, on the page's own origin; empty without tiles. */
  readonly tiles: string;
  /** Whose map the tiles are; empty without tiles. */
  readonly attribution: string;
  /** The address of the lines of streets; empty without. */
  readonly streets: string;
}

/** The note without streets. */
export const NO_STREETS: MapNote = { tiles: '', attribution: '', streets: '' };
