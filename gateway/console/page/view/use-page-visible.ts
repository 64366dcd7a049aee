/** A hook that says whether anybody can see the page. */
import { useEffect, useState } from 'preact/hooks';

/** False while the page is in a tab behind others or in a minimized window. */
export function usePageVisible(): boolean {
  const [isVisible, setVisible] = useState(() => !document.hidden);
  useEffect(() => {
    const note = (): void => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', note);
    // It may have changed since the first drawing.
    note();
    return () => document.removeEventListener('visibilitychange', note);
  }, []);
  return isVisible;
}
