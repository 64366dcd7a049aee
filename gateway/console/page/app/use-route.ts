/** The current address of the page as a hook: components that use it are drawn again when the address changes. */
import { useEffect, useState } from 'preact/hooks';
import { parseRoute, type Route, routeTo } from './route.js';

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return route;
}

/** Changes the query of the current address without an entry in the browser's history. */
export function setQuery(change: Readonly<Record<string, string>>): void {
  const { screen, parts, query } = parseRoute(location.hash);
  history.replaceState(null, '', routeTo(screen, parts, { ...query, ...change }));
  // `replaceState` fires no event by itself, and `useRoute` waits for this one.
  dispatchEvent(new HashChangeEvent('hashchange'));
}
