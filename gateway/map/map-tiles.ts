/**
 * The setting `--map-tiles`: where the gateway gets the street tiles of the pages' maps. Pure. The address may carry a
 * key in its query, so it is shown to operators without it, and never to a page.
 */

/** A tile server. */
export interface TileServerAddress {
  /** The address of a tile, with `{z}`, `{x}` and `{y}` for its zoom and place, and perhaps `{r}`. */
  readonly url: string;
  /** Whose map it is, shown on the map. */
  readonly attribution: string;
}

/** What is replaced in the address; `{r}` is `@2x` for a fine screen. */
const PLACEHOLDERS = ['{z}', '{x}', '{y}', '{r}'];
/** What follows the origin, such as `/{z}/{x}/{y}.png`. A fragment would not be sent. */
const PATH = /^\/[^\s\\#]*$/;

/**
 * The tile server of the two settings; undefined if the address is no http or https URL with `{z}`, `{x}` and `{y}`.
 *
 * @param attribution empty for the server's host
 */
export function readMapTiles(address: string, attribution: string): TileServerAddress | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, origin, host, username, password } = new URL(address);
  // Taken from the text, since a parsed URL has its braces escaped.
  const path = address.replace(/^\w+:\/\/[^/?#]*/, '');
  const placeholders: readonly string[] = path.match(/\{[^}]*\}/g) ?? [];
  const isComplete = ['{z}', '{x}', '{y}'].every((each) => placeholders.includes(each));
  const isKnown = placeholders.every((each) => PLACEHOLDERS.includes(each));
  const isWeb = /^https?:$/.test(protocol) && username === '' && password === '';
  if (!isWeb || !PATH.test(path) || !isComplete || !isKnown || /[{}]/.test(host)) return undefined;
  return { url: `${origin}${path}`, attribution: attribution.trim() || host };
}
