/** The current address of the page as a hook: components that use it are drawn again when the address changes. */
import { useEffect, useState } from 'preact/hooks';
import { parseRoute, type Route } from './route.js';

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return route;
}
