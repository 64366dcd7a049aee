/**
 * A map of locks: thousands of points move without a stutter. A point's colour is the lock's state, a ring a theft, a
 * line the recent track of the chosen lock. A faint point has an old position. Circles show how uncertain positions
 * are: that of the chosen lock, and when the reader looks closely, those of all locks in view.
 */
import * as L from 'leaflet';
import { Hours } from '../../../../proto/clock.js';
import type { Lock, Position } from '../api/shapes.js';
import { runClock } from '../app/run-clock.js';
import { BaseMap, type ColourName, colour } from './base-map.js';

/** The radius of a point, and that of a chosen or stolen lock's point. */
const POINT_PIXELS = 6;
const CHOSEN_PIXELS = 9;
/** The zoom at which a chosen lock is shown. */
const STREET_ZOOM = 15;
/** From this zoom on, every lock in view has its circle; the number of circles is limited. */
const CIRCLES_FROM_ZOOM = 14;
const MAX_CIRCLES = 300;
/** An older position is drawn faintly: a lock sends one a day, and this leaves it two hours more. */
const OLD_AFTER = Hours(26);
const FRESH_OPACITY = 0.95;
const OLD_OPACITY = 0.4;

export class LockMap {
  readonly #base: BaseMap;
  readonly #map: L.Map;
  readonly #points = new Map<string, L.CircleMarker>();
  readonly #onChoose: (mac: string) => void;
  #locks: readonly Lock[] = [];
  #circles: L.Circle[] = [];
  #chosen: Lock | null = null;
  #track: L.Polyline | null = null;
  /** Whether the map was moved to the locks: only the first ones move it by themselves. */
  #isFitted = false;
  /** Points stay where they are while the reader drags the map: drawing thousands anew would interrupt it. */
  #isDragged = false;

  /** @param onChoose called with the MAC of a clicked point */
  constructor(element: HTMLElement, onChoose: (mac: string) => void) {
    this.#onChoose = onChoose;
    this.#base = new BaseMap(element, () => this.#restyle());
    this.#map = this.#base.leaflet;
    this.#map.on('dragstart', () => {
      this.#isDragged = true;
    });
    this.#map.on('moveend', () => this.#endMove());
  }

  /** Shows these locks; those without a position are left out. Points that are there already move. */
  show(locks: readonly Lock[]): void {
    this.#locks = locks;
    if (this.#isDragged) return;
    const shown = new Set<string>();
    for (const lock of locks) {
      if (lock.position === null) continue;
      shown.add(lock.mac_addr);
      this.#place(lock, lock.position);
    }
    for (const [mac, point] of this.#points)
      if (!shown.has(mac)) {
        point.remove();
        this.#points.delete(mac);
      }
    if (!this.#isFitted && this.#points.size > 0) this.fit();
    this.#drawCircles();
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
    const before = this.#chosen;
    this.#chosen = lock;
    if (before !== null && before.mac_addr !== lock?.mac_addr && before.position !== null)
      this.#place(before, before.position);
    this.#track?.remove();
    this.#drawCircles();
    if (lock?.position == null) return;
    const path = track.map(([latitude, longitude]): L.LatLngTuple => [latitude, longitude]);
    this.#track = L.polyline(path, { color: colour('--accent'), weight: 3 }).addTo(this.#map);
    this.#place(lock, lock.position);
    if (before?.mac_addr !== lock.mac_addr)
      this.#map.setView(placeOf(lock.position), Math.max(this.#map.getZoom(), STREET_ZOOM));
  }

  remove(): void {
    this.#base.remove();
  }

  #endMove(): void {
    const wasDragged = this.#isDragged;
    this.#isDragged = false;
    if (wasDragged) this.show(this.#locks);
    else this.#drawCircles();
  }

  #place(lock: Lock, position: Position): void {
    const style = this.#styleOf(lock, position);
    const known = this.#points.get(lock.mac_addr);
    if (known !== undefined) {
      const { lat, lng } = known.getLatLng();
      if (lat !== position.latitude || lng !== position.longitude) known.setLatLng(placeOf(position));
      const { color, fillColor, fillOpacity, radius } = known.options;
      const isSame = color === style.color && fillColor === style.fillColor && fillOpacity === style.fillOpacity;
      if (!isSame || radius !== style.radius) known.setStyle(style);
      return;
    }
    const point = L.circleMarker(placeOf(position), style).addTo(this.#map);
    point.on('click', () => this.#onChoose(lock.mac_addr));
    this.#points.set(lock.mac_addr, point);
  }

  #styleOf({ mac_addr, trouble, presence }: Lock, { date }: Position): L.CircleMarkerOptions {
    const isTheft = trouble === 'theft';
    // A ring says that the lock is stolen; inside the ring the point has the colour of the lock's presence.
    const fill = COLOURS[trouble] ?? COLOURS[presence] ?? '--quiet';
    const radius = mac_addr === this.#chosen?.mac_addr || isTheft ? CHOSEN_PIXELS : POINT_PIXELS;
    const isOld = date === null || runClock.now() - Date.parse(date) > OLD_AFTER;
    const ring = colour(isTheft ? '--theft' : '--surface');
    const fillOpacity = isOld ? OLD_OPACITY : FRESH_OPACITY;
    return { radius, color: ring, weight: isTheft ? 4 : 1, fillColor: colour(fill), fillOpacity };
  }

  #drawCircles(): void {
    for (const each of this.#circles) each.remove();
    const style = { color: colour('--accent'), weight: 1, fillOpacity: 0.12, interactive: false };
    this.#circles = this.#circledPositions().map((position) =>
      L.circle(placeOf(position), { radius: position.uncertainty, ...style }).addTo(this.#map),
    );
  }

  /** The positions whose uncertainty is drawn. */
  #circledPositions(): Position[] {
    const chosen = this.#chosen?.position ?? null;
    if (this.#map.getZoom() < CIRCLES_FROM_ZOOM) return chosen === null ? [] : [chosen];
    const view = this.#map.getBounds();
    const positions: Position[] = [];
    for (const { position } of this.#locks) {
      if (position !== null && view.contains(placeOf(position))) positions.push(position);
      if (positions.length === MAX_CIRCLES) break;
    }
    return positions;
  }

  #restyle(): void {
    for (const lock of this.#locks) if (lock.position !== null) this.#place(lock, lock.position);
    this.#track?.setStyle({ color: colour('--accent') });
    this.#drawCircles();
  }
}

function placeOf({ latitude, longitude }: Position): L.LatLngTuple {
  return [latitude, longitude];
}

/** The colour of a point by what is wrong with the lock, else by its presence. */
const COLOURS: Readonly<Record<string, ColourName>> = {
  late: '--bad',
  'low-battery': '--warn',
  online: '--good',
};
