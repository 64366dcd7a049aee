/**
 * All locks on a map, and in a list beside it. The chosen lock, whose recent track is shown, is marked in both; the
 * page's address names it.
 */

import type { JSX } from 'preact';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { Hours } from '../../../../proto/clock.js';
import { useApi } from '../api/console-api.js';
import { type Route, routeTo } from '../app/route.js';
import { runClock } from '../app/run-clock.js';
import { setQuery } from '../app/use-route.js';
import { useLive } from '../live/use-live.js';
import { LockMap } from '../map/lock-map.js';
import { Age } from '../view/age.js';
import { lockName, NoLocks, PresenceBadge, TroubleBadge } from '../view/parts.js';
import { useAnswer } from '../view/use-answer.js';

/** How much of the chosen lock's track is shown. */
const TRACK_SPAN = Hours(2);
/** The locks beside the map: those in trouble first. */
const MAX_LISTED = 200;

export function MapScreen({ route }: { readonly route: Route }): JSX.Element {
  const { locks, state, version } = useLive();
  const chosen = locks.find(route.query.lock ?? '') ?? null;
  const element = useRef<HTMLDivElement>(null);
  const map = useRef<LockMap | null>(null);
  const track = useTrack(chosen?.mac_addr ?? null, chosen?.received_at ?? null);
  useEffect(() => {
    if (element.current === null) return;
    const drawn = new LockMap(element.current, (mac) => setQuery({ lock: mac }));
    map.current = drawn;
    return () => drawn.remove();
  }, []);
  useEffect(() => map.current?.show(locks.sorted), [locks, version]);
  useEffect(() => map.current?.choose(chosen, track), [chosen, track]);
  return (
    <section class="screen map-screen" aria-label="Map">
      <div class="map" ref={element} />
      <aside class="map-list" aria-label="Locks on the map">
        <button type="button" onClick={() => map.current?.fit()}>
          Show all
        </button>
        {chosen !== null && (
          <a class="chosen-lock" href={routeTo('lock', [chosen.mac_addr])}>
            Open the lock
          </a>
        )}
        {locks.size === 0 && state === 'live' && <NoLocks />}
        <ul>
          {locks.sorted.slice(0, MAX_LISTED).map((lock) => (
            <li key={lock.mac_addr} class={lock.mac_addr === chosen?.mac_addr ? 'is-chosen' : ''}>
              <button type="button" class="quiet" onClick={() => setQuery({ lock: lock.mac_addr })}>
                {lockName(lock)}
              </button>
              <TroubleBadge lock={lock} /> <PresenceBadge lock={lock} />
              <p class="hint">
                {lock.position === null ? (
                  'no position yet'
                ) : (
                  <>
                    ± {lock.position.uncertainty} m, <Age date={lock.position.date} />
                  </>
                )}
              </p>
            </li>
          ))}
        </ul>
      </aside>
    </section>
  );
}

const NO_TRACK: readonly (readonly [number, number])[] = [];

/**
 * The recent positions of a lock, oldest first, as latitude and longitude; none without a lock.
 *
 * @param version a change of it (a new message of the lock) loads them again
 */
function useTrack(mac: string | null, version: string | null): readonly (readonly [number, number])[] {
  const api = useApi();
  const load = useCallback(async () => {
    if (mac === null || version === null) return NO_TRACK;
    const from = new Date(runClock.now() - TRACK_SPAN).toISOString();
    const { geometry } = await api.track(mac, { from });
    if (geometry === null || geometry.type !== 'LineString') return NO_TRACK;
    return geometry.coordinates.map(([longitude, latitude]) => [latitude, longitude] as const);
  }, [api, mac, version]);
  return useAnswer(load).answer ?? NO_TRACK;
}
