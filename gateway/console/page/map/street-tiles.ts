/**
 * Street tiles, which the gateway has from where its operator says (`--map-tiles`). They cover the coasts, which show
 * only until the tiles are there; everything else on a map lies over the tiles. This file is loaded only where tiles
 * are set.
 */
import * as L from 'leaflet';
import type { StreetTiles } from './street-settings.js';

/** A browser opens six connections to an origin. The page's own calls need some while a tile server is slow. */
const MAX_LOADING_TILES = 3;

/** Adds the tiles, and a note in a corner of the map that says whose they are. */
export function addStreetTiles(map: L.Map, { url, attribution }: StreetTiles, maxZoom: number): void {
  new PatientTiles(url, { maxZoom }).addTo(map);
  const note = document.createElement('p');
  note.className = 'map-attribution';
  note.textContent = attribution;
  map.getContainer().append(note);
}

/** Leaflet's layer of images, which loads a few of them at a time. */
class PatientTiles extends L.TileLayer {
  /** Images with the functions that begin to load them, in the order in which Leaflet wants them. */
  readonly #waiting = new Map<HTMLElement, () => void>();
  readonly #loading = new Set<HTMLElement>();

  constructor(url: string, options: L.TileLayerOptions) {
    super(url, options);
    // An image that Leaflet has given up will not be loaded, or does not count any more.
    this.on('tileunload tileabort', (event) => this.#leave((event as L.TileEvent).tile));
  }

  override createTile(place: L.Coords, done: L.DoneCallback): HTMLElement {
    const image = document.createElement('img');
    image.alt = '';
    image.onload = () => {
      this.#leave(image);
      done(undefined, image);
    };
    image.onerror = () => {
      this.#leave(image);
      done(new Error('no tile'), image);
    };
    const address = this.getTileUrl(place);
    this.#waiting.set(image, () => {
      image.src = address;
    });
    this.#loadNext();
    return image;
  }

  #leave(image: HTMLElement): void {
    this.#waiting.delete(image);
    this.#loading.delete(image);
    this.#loadNext();
  }

  #loadNext(): void {
    for (const [image, load] of this.#waiting) {
      if (this.#loading.size >= MAX_LOADING_TILES) return;
      this.#waiting.delete(image);
      this.#loading.add(image);
      load();
    }
  }
}
