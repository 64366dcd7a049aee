/**
 * A map of one lock's positions over a span of time: a line from the oldest to the newest, a point for each, and around
 * it a circle of its uncertainty. The newest is the largest; the selected one has another colour.
 */
import * as L from 'leaflet';
import { BaseMap, colour } from './base-map.js';

/** The radius of a point, and that of the newest or the selected one. */
const POINT_PIXELS = 4;
const NEWEST_PIXELS = 8;
/** The zoom at which a single position is shown. */
const STREET_ZOOM = 16;
/** Older positions are fainter, down to this opacity. */
const MIN_OPACITY = 0.25;

export interface PathPlace {
  /** The event id of its ping. */
  readonly id: string;
  /** When the lock was there, RFC 3339. */
  readonly date: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly uncertaintyMeters: number;
}

export class PathMap {
  readonly #base: BaseMap;
  readonly #onSelect: (id: string) => void;
  #drawn: L.Path[] = [];
  #shown: readonly PathPlace[] = [];
  #selected: string | null = null;

  /** @param onSelect called with the event id of a clicked position */
  constructor(element: HTMLElement, onSelect: (id: string) => void) {
    this.#onSelect = onSelect;
    this.#base = new BaseMap(element, () => this.#draw());
  }

  /** @param places oldest first @param selected the id of one of them */
  show(places: readonly PathPlace[], selected: string | null): void {
    const isSamePath = areSame(places, this.#shown);
    this.#shown = places;
    this.#selected = selected;
    this.#draw();
    if (!isSamePath) this.#fit();
  }

  remove(): void {
    this.#base.remove();
  }

  #draw(): void {
    for (const each of this.#drawn) each.remove();
    const [accent, theft, surface] = [colour('--accent'), colour('--theft'), colour('--surface')];
    const path = this.#shown.map(({ latitude, longitude }): L.LatLngTuple => [latitude, longitude]);
    this.#drawn = [L.polyline(path, { color: accent, weight: 2, opacity: 0.6, interactive: false })];
    const newest = this.#shown.length - 1;
    for (const [index, place] of this.#shown.entries()) {
      const isSelected = place.id === this.#selected;
      const main = isSelected ? theft : accent;
      const opacity = isSelected ? 1 : MIN_OPACITY + (1 - MIN_OPACITY) * ((index + 1) / this.#shown.length);
      const around = { color: main, weight: 1, opacity: opacity / 2, fillOpacity: opacity / 10, interactive: false };
      const center: L.LatLngTuple = [place.latitude, place.longitude];
      const radius = index === newest || isSelected ? NEWEST_PIXELS : POINT_PIXELS;
      const point = L.circleMarker(center, {
        radius,
        color: surface,
        weight: 1,
        fillColor: main,
        fillOpacity: opacity,
      });
      point.on('click', () => this.#onSelect(place.id));
      this.#drawn.push(L.circle(center, { radius: place.uncertaintyMeters, ...around }), point);
    }
    for (const each of this.#drawn) each.addTo(this.#base.leaflet);
  }

  #fit(): void {
    if (this.#shown.length === 0) return;
    const bounds = L.latLngBounds(this.#shown.map(({ latitude, longitude }): L.LatLngTuple => [latitude, longitude]));
    this.#base.leaflet.fitBounds(bounds.pad(0.15), { maxZoom: STREET_ZOOM, animate: false });
  }
}

function areSame(a: readonly PathPlace[], b: readonly PathPlace[]): boolean {
  return a.length === b.length && a.every(({ id }, index) => id === b[index]?.id);
}
