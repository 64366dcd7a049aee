/**
 * A map with coasts, borders and names of towns, or with street tiles, drawn by Leaflet on a canvas: what all maps of
 * the pages have in common. It follows the size of its element and the colours of the page.
 */
import * as L from 'leaflet';
import { type Milliseconds, systemClock } from '../../../../proto/clock.js';
import { coastFor } from './coast.js';
import type { DrawnStreets } from './street-lines.js';
import { COAST_PANE, type StreetTiles, streetsAddress, streetTiles } from './street-settings.js';
import { showTownNames } from './town-names.js';

const MAX_ZOOM = 19;
/** After this many milliseconds, no animation of Leaflet is running. */
const ANIMATION_END: Milliseconds = 300;
/** The whole world, shown until there is something to show. */
const WORLD: L.LatLngBoundsLiteral = [
  [-55, -160],
  [70, 170],
];

/** The custom properties of the style sheet that maps use. */
export type ColourName =
  | '--good'
  | '--bad'
  | '--warn'
  | '--theft'
  | '--quiet'
  | '--accent'
  | '--land'
  | '--line'
  | '--street'
  | '--surface';

/** The colours that were read from the style sheet, which takes long: a map asks for two colours for each lock. */
const readColours = new Map<ColourName, string>();

/** The value of a colour of the style sheet, since a canvas knows no custom properties. */
export function colour(name: ColourName): string {
  const known = readColours.get(name);
  if (known !== undefined) return known;
  const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  readColours.set(name, value);
  return value;
}

export class BaseMap {
  readonly leaflet: L.Map;
  readonly #sizes: ResizeObserver;
  readonly #colours: MutationObserver;
  readonly #systemDarkness = matchMedia('(prefers-color-scheme: dark)');
  readonly #restyle: () => void;
  #coast: readonly L.Polygon[] = [];
  /** The zoom for which the coasts were loaded; -1 before. */
  #coastZoom = -1;
  readonly #tiles = streetTiles();
  readonly #lines = streetsAddress();
  /** Streets lie above the coasts, which otherwise share a canvas with the locks. */
  readonly #hasStreets = this.#tiles !== null || this.#lines !== '';
  #streets: DrawnStreets | null = null;
  #isRemoved = false;

  /** @param restyle draws what is on the map in the present colours; called when they have changed */
  constructor(element: HTMLElement, restyle: () => void) {
    // The colours may have changed while no map was shown.
    readColours.clear();
    this.leaflet = L.map(element, { preferCanvas: true, maxZoom: MAX_ZOOM, attributionControl: false });
    this.leaflet.fitBounds(WORLD);
    L.control.scale({ imperial: false }).addTo(this.leaflet);
    if (this.#hasStreets) this.leaflet.createPane(COAST_PANE);
    if (this.#tiles === null) showTownNames(this.leaflet);
    else void this.#addTiles(this.#tiles);
    if (this.#lines !== '') void this.#drawStreets(this.#lines);
    this.leaflet.on('zoomend', () => void this.#drawCoast());
    void this.#drawCoast();
    this.#restyle = () => {
      readColours.clear();
      for (const country of this.#coast) country.setStyle(coastStyle());
      this.#streets?.restyle(colour('--street'));
      restyle();
    };
    this.#sizes = new ResizeObserver(() => this.leaflet.invalidateSize());
    this.#sizes.observe(element);
    this.#colours = new MutationObserver(this.#restyle);
    this.#colours.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    this.#systemDarkness.addEventListener('change', this.#restyle);
  }

  remove(): void {
    this.#isRemoved = true;
    this.#sizes.disconnect();
    this.#colours.disconnect();
    this.#systemDarkness.removeEventListener('change', this.#restyle);
    // What Leaflet has begun (frames, the end of an animated zoom) must still find the map.
    systemClock.after(ANIMATION_END, () => this.leaflet.remove());
  }

  async #addTiles(tiles: StreetTiles): Promise<void> {
    const { addStreetTiles } = await import('./street-tiles.js');
    if (!this.#isRemoved) addStreetTiles(this.leaflet, tiles, MAX_ZOOM);
  }

  async #drawStreets(address: string): Promise<void> {
    const { drawStreets } = await import('./street-lines.js');
    if (!this.#isRemoved) this.#streets = drawStreets(this.leaflet, address, colour('--street'));
  }

  async #drawCoast(): Promise<void> {
    const zoom = this.leaflet.getZoom();
    // Without coasts the map still shows the locks; the next zoom tries again.
    const countries = await coastFor(zoom).catch(() => null);
    // Coasts that were loaded for a closer look are fine enough for this zoom too.
    if (countries === null || this.#isRemoved || this.#coastZoom >= zoom) return;
    for (const country of this.#coast) country.remove();
    const below = this.#hasStreets ? { pane: COAST_PANE } : {};
    const style = { ...coastStyle(), ...below, interactive: false };
    // Leaflet changes no points, but its types don't say so.
    this.#coast = countries.map((country) => L.polygon(country as L.LatLngTuple[][][], style).addTo(this.leaflet));
    for (const country of this.#coast) country.bringToBack();
    this.#coastZoom = zoom;
  }
}

function coastStyle(): L.PathOptions {
  return { color: colour('--line'), weight: 1, fillColor: colour('--land'), fillOpacity: 1 };
}
