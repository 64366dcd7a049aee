/** The place of a tile: its zoom, and its column and row in the usual scheme of square web maps. Pure. */

/** A tile. The map at zoom `z` has 2^z columns from west to east and as many rows from north to south. */
export interface TilePlace {
  readonly z: number;
  readonly x: number;
  readonly y: number;
  /** Whether it is for a screen with two pixels for one. */
  readonly isFine: boolean;
}

/** No map of streets goes deeper. */
export const MAX_TILE_ZOOM = 22;
const FINE = '@2x';

/** The tile that the three parts of a path name, such as `12`, `2103` and `1346` or `1346@2x`; undefined if none. */
export function readTilePlace({ z, x, y }: Readonly<Record<string, string | undefined>>): TilePlace | undefined {
  const row = y?.endsWith(FINE) ? y.slice(0, -FINE.length) : y;
  const zoom = wholeNumber(z, MAX_TILE_ZOOM);
  if (zoom === undefined) return undefined;
  const last = 2 ** zoom - 1;
  const [column, line] = [wholeNumber(x, last), wholeNumber(row, last)];
  if (column === undefined || line === undefined) return undefined;
  return { z: zoom, x: column, y: line, isFine: row !== y };
}

/** The name of a tile, the same for the same tile. */
export function tileName({ z, x, y, isFine }: TilePlace): string {
  return `${z}/${x}/${y}${isFine ? FINE : ''}`;
}

/** A tile server's address of a tile. */
export function tileAddress(url: string, { z, x, y, isFine }: TilePlace): string {
  const values: Readonly<Record<string, string>> = { z: `${z}`, x: `${x}`, y: `${y}`, r: isFine ? FINE : '' };
  return url.replace(/\{([zxyr])\}/g, (_, name: string) => values[name] ?? '');
}

/** Digits without a leading zero, so that a tile has one name only. */
function wholeNumber(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !/^(?:0|[1-9]\d{0,7})$/.test(text) || Number(text) > max) return undefined;
  return Number(text);
}
