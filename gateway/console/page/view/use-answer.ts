/** A hook that loads an answer of the gateway's HTTP interface for a view, and reloads it on demand or regularly. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiFailure } from '../api/http.js';
import { repeat } from './repeat.js';

/** The newest answer, null before the first. It stays while a newer one is loaded, and if loading fails. */
export interface Loaded<Answer> {
  readonly answer: Answer | null;
  /** Why the last call failed; null if it did not. */
  readonly failure: ApiFailure | null;
  readonly reload: () => void;
}

/**
 * @param load makes the call; a new function drops the answer and makes a new call, so wrap it in `useCallback`
 * @param everyMs how often to load it again; undefined for never
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
  // After another load the next regular one is not due yet.
  useEffect(() => (everyMs === undefined ? undefined : repeat(everyMs, reload)), [reload, everyMs, version]);
  const loadedVersion = useRef(version);
  useEffect(() => {
    if (loadedVersion.current !== version) reload();
    loadedVersion.current = version;
  }, [reload, version]);
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
