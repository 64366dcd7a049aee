/**
 * A hook that loads an answer of the gateway's HTTP interface for a view, and reloads it on demand or regularly. While
 * nobody can see the page, it reloads nothing by itself: many consoles are open all day behind other tabs. Once the
 * page is seen again, it loads at once what it missed.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiFailure } from '../api/http.js';
import { repeat } from './repeat.js';
import { usePageVisible } from './use-page-visible.js';

/** The newest answer, null before the first. It stays while a newer one is loaded, and if loading fails. */
export interface Loaded<Answer> {
  readonly answer: Answer | null;
  /** Why the last call failed; null if it did not. */
  readonly failure: ApiFailure | null;
  readonly reload: () => void;
}

/**
 * @param load makes the call; a new function drops the answer and makes a new call, so wrap it in `useCallback`
 * @param everyMs how often to load it again while the page can be seen; undefined for never
 * @param version a change of it loads the answer again, while the last one stays
 */
export function useAnswer<Answer>(
  load: () => Promise<Answer>,
  everyMs?: number,
  version: string | number = '',
): Loaded<Answer> {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const newestCall = useRef(0);
  const reload = useCallback(() => {
    newestCall.current += 1;
    const call = newestCall.current;
    load().then(
      (loaded) => {
        if (call !== newestCall.current) return;
        setAnswer(loaded);
        setFailure(null);
      },
      (error: unknown) => call === newestCall.current && setFailure(asFailure(error)),
    );
  }, [load]);
  useEffect(() => {
    setAnswer(null);
    reload();
  }, [reload]);
  const isVisible = usePageVisible();
  // After another load the next regular one is not due yet.
  useEffect(
    () => (everyMs === undefined || !isVisible ? undefined : repeat(everyMs, reload)),
    [reload, everyMs, version, isVisible],
  );
  const wasHidden = useRef(false);
  const loadedVersion = useRef(version);
  useEffect(() => {
    if (!isVisible) {
      wasHidden.current = true;
      return;
    }
    const isRegularDue = wasHidden.current && everyMs !== undefined;
    if (isRegularDue || loadedVersion.current !== version) reload();
    wasHidden.current = false;
    loadedVersion.current = version;
  }, [reload, version, isVisible, everyMs]);
  // An answer that comes after the view was closed changes nothing.
  useEffect(
    () => () => {
      newestCall.current = -1;
    },
    [],
  );
  return { answer, failure, reload };
}

/** The error as a failure that a view can show; an error in the page's own code becomes `internal`. */
export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure(0, 'internal', error instanceof Error ? error.message : String(error));
}
