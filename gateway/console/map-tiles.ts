/**
 * The street tiles of the pages' maps: images of a tile server that the operator names (`--map-tiles`). Without them
 * the pages load nothing from another origin. The values end up in the pages' HTML and Content-Security-Policy, so what
 * could break out of either is refused here. Pure.
 */

/** A tile server. */
export interface MapTiles {
  /** The address of a tile, with `{z}`, `{x}` and `{y}` for its zoom and place. */
  readonly url: string;
  /** The only foreign origin whose images the pages may load. */
  readonly origin: string;
  /** Whose map it is, shown on the map. */
  readonly attribution: string;
}

/** A host with its port, such as `tiles.example:8443`; no comma or semicolon, which would end a rule of the policy. */
const HOST = /^[\w.:[\]-]+$/;
/**
 * What follows the origin, such as `/{z}/{x}/{y}.png`, without characters that end an attribute of the HTML or a rule
 * of the policy.
 */
const PATH = /^\/[^\s"'<>\\#;]*$/;
/** What Leaflet replaces; `{r}` is `@2x` on a fine screen. */
const PLACEHOLDERS = ['{z}', '{x}', '{y}', '{r}'];

/**
 * The tile server of the two settings; undefined if the address is no http or https URL with `{z}`, `{x}` and `{y}`.
 *
 * @param attribution empty for the server's host
 */
export function readMapTiles(address: string, attribution: string): MapTiles | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, origin, host, username, password } = new URL(address);
  // Taken from the text, since a parsed URL has its braces escaped.
  const path = address.replace(/^\w+:\/\/[^/?#]*/, '');
  const placeholders: readonly string[] = path.match(/\{[^}]*\}/g) ?? [];
  const isComplete = ['{z}', '{x}', '{y}'].every((each) => placeholders.includes(each));
  const isKnown = placeholders.every((each) => PLACEHOLDERS.includes(each));
  const isWeb = /^https?:$/.test(protocol) && username === '' && password === '';
  if (!isWeb || !HOST.test(host) || !PATH.test(path) || !isComplete || !isKnown) return undefined;
  return { url: `${origin}${path}`, origin, attribution: attribution.trim() || host };
}
