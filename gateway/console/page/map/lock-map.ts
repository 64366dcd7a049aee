/**
 * A map of locks, drawn by Leaflet on a canvas: thousands of points move without a stutter. A point's colour is the
 * lock's state, a ring a theft, a circle the uncertainty of a chosen lock's position, a line its recent track.
 */
import * as L from 'leaflet';
import type { Lock } from '../api/shapes.js';
import { coastFor } from './coast.js';

const POINT_PIXELS = 6;
const CHOSEN_PIXELS = 9;
/** The zoom at which a chosen lock is shown. */
const STREET_ZOOM = 15;
const MAX_ZOOM = 19;
/** The whole world, for an account without positions. */
const WORLD: L.LatLngBoundsLiteral = [
  [-55, -160],
  [70, 170],
];

/** The custom properties of the style sheet that the canvas uses. */
type ColourName =
  | '--good'
  | '--bad'
  | '--warn'
  | '--theft'
  | '--quiet'
  | '--accent'
  | '--land'
  | '--line'
  | '--surface';

export class LockMap {
  readonly #map: L.Map;
  readonly #points = new Map<string, L.CircleMarker>();
  readonly #onChoose: (mac: string) => void;
  #coast: L.GeoJSON | null = null;
  #coastZoom = -1;
  #chosen: string | null = null;
  #uncertainty: L.Circle | null = null;
  #track: L.Polyline | null = null;
  #isFitted = false;

  /** @param onChoose called with the MAC of a clicked point */
  constructor(element: HTMLElement, onChoose: (mac: string) => void) {
    this.#onChoose = onChoose;
    this.#map = L.map(element, { preferCanvas: true, zoomControl: true, maxZoom: MAX_ZOOM, attributionControl: false });
    this.#map.fitBounds(WORLD);
    L.control.scale().addTo(this.#map);
    this.#map.on('zoomend', () => void this.#drawCoast());
    void this.#drawCoast();
  }

  /** Shows these locks; those without a position are left out. Points that are there already move. */
  show(locks: readonly Lock[]): void {
    const shown = new Set<string>();
    for (const lock of locks) {
      if (lock.position === null) continue;
      shown.add(lock.mac_addr);
      this.#place(lock, [lock.position.latitude, lock.position.longitude]);
    }
    for (const [mac, point] of this.#points)
      if (!shown.has(mac)) {
        point.remove();
        this.#points.delete(mac);
      }
    if (!this.#isFitted && this.#points.size > 0) this.fit();
  }

  /** Moves the map so that all locks are in it. */
  fit(): void {
    const places = [...this.#points.values()].map((point) => point.getLatLng());
    if (places.length === 0) return;
    this.#isFitted = true;
    this.#map.fitBounds(L.latLngBounds(places).pad(0.1), { maxZoom: STREET_ZOOM });
  }

  /**
   * Marks a lock and shows where it is.
   *
   * @param lock null for none
   * @param track its recent positions, oldest first, as latitude and longitude
   */
  choose(lock: Lock | null, track: readonly (readonly [number, number])[]): void {
    const isOther = this.#chosen !== (lock?.mac_addr ?? null);
    this.#chosen = lock?.mac_addr ?? null;
    this.#uncertainty?.remove();
    this.#track?.remove();
    if (lock?.position == null) return;
    const place: L.LatLngTuple = [lock.position.latitude, lock.position.longitude];
    const accent = colour('--accent');
    this.#track = L.polyline(
      track.map(([latitude, longitude]): L.LatLngTuple => [latitude, longitude]),
      {
        color: accent,
        weight: 3,
      },
    ).addTo(this.#map);
    this.#uncertainty = L.circle(place, {
      radius: lock.position.uncertainty,
      color: accent,
      weight: 1,
      fillOpacity: 0.12,
      interactive: false,
    }).addTo(this.#map);
    this.#place(lock, place);
    if (isOther) this.#map.setView(place, Math.max(this.#map.getZoom(), STREET_ZOOM));
  }

  /** To be called when the element has another size. */
  resized(): void {
    this.#map.invalidateSize();
  }

  remove(): void {
    this.#map.remove();
  }

  #place(lock: Lock, place: L.LatLngTuple): void {
    const style = this.#styleOf(lock);
    const known = this.#points.get(lock.mac_addr);
    if (known !== undefined) {
      const { lat, lng } = known.getLatLng();
      if (lat !== place[0] || lng !== place[1]) known.setLatLng(place);
      if (known.options.color !== style.color || known.options.radius !== style.radius) known.setStyle(style);
      return;
    }
    const point = L.circleMarker(place, style).addTo(this.#map);
    point.on('click', () => this.#onChoose(lock.mac_addr));
    this.#points.set(lock.mac_addr, point);
  }

  #styleOf({ mac_addr, trouble, presence }: Lock): L.CircleMarkerOptions {
    const isTheft = trouble === 'theft';
    const fill = COLOURS[trouble] ?? COLOURS[presence] ?? '--quiet';
    const radius = mac_addr === this.#chosen || isTheft ? CHOSEN_PIXELS : POINT_PIXELS;
    const ring = isTheft ? '--theft' : '--surface';
    return { radius, color: colour(ring), weight: isTheft ? 4 : 1, fillColor: colour(fill), fillOpacity: 0.95 };
  }

  async #drawCoast(): Promise<void> {
    const zoom = this.#map.getZoom();
    const countries = await coastFor(zoom).catch(() => null);
    if (countries === null || (this.#coast !== null && this.#coastZoom >= zoom)) return;
    this.#coast?.remove();
    const style = { color: colour('--line'), weight: 1, fillColor: colour('--land'), fillOpacity: 1 };
    this.#coast = L.geoJSON(countries, { style, interactive: false }).addTo(this.#map);
    this.#coast.bringToBack();
    this.#coastZoom = zoom;
  }
}

/** The colour of a point by what is wrong with the lock, else by its presence. */
const COLOURS: Readonly<Record<string, ColourName>> = {
  theft: '--theft',
  late: '--bad',
  'low-battery': '--warn',
  online: '--good',
};

/** The value of a colour of the style sheet, since a canvas knows no custom properties. */
function colour(name: ColourName): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
