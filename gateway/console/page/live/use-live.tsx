/** The live locks of a page as a hook, from the worker that all tabs share. */

import type { ComponentChildren } from 'preact';
import { createContext, type JSX } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';
import { LiveLocks, type LiveMessage, type LiveState } from './live-locks.js';

/** The page's locks. */
export interface Live {
  /** The same object always; its content changes. */
  readonly locks: LiveLocks;
  readonly state: LiveState;
  /** Another number after each change of {@link locks}. */
  readonly version: number;
}

const LiveContext = createContext<Live>({ locks: new LiveLocks(), state: 'connecting', version: 0 });

export function useLive(): Live {
  return useContext(LiveContext);
}

interface LiveProps {
  readonly worker: SharedWorker;
  /** The path of the stream, such as `/v1/stream`. */
  readonly path: string;
  /** Called when the stream has ended because the session has: the page must ask for a login. */
  readonly onSessionEnded: () => void;
  /** Called when the stream is open again after an interruption: another gateway may answer, with another clock. */
  readonly onRestored: () => void;
  readonly children: ComponentChildren;
}

/**
 * The worker that follows a stream for all tabs. A page starts it before it knows whether it has a session, so that the
 * worker is ready by then.
 */
export function useLiveWorker(workerUrl: string, path: string): SharedWorker {
  return useMemo(() => new SharedWorker(workerUrl, { type: 'module', name: `lockgate ${path}` }), [workerUrl, path]);
}

/** Follows the stream while it is shown. */
export function LiveProvider({ worker, path, onSessionEnded, onRestored, children }: LiveProps): JSX.Element {
  const locks = useMemo(() => new LiveLocks(), []);
  const [version, setVersion] = useState(0);
  const [state, setState] = useState<LiveState>('connecting');
  useEffect(() => {
    let isInterrupted = false;
    worker.port.onmessage = ({ data }: MessageEvent<LiveMessage>) => {
      if (data.type === 'state') {
        setState(data.state);
        if (data.state === 'ended') onSessionEnded();
        if (data.state === 'live' && isInterrupted) onRestored();
        isInterrupted = data.state === 'interrupted' || (isInterrupted && data.state !== 'live');
        return;
      }
      if (data.type !== 'changes') return;
      for (const change of data.changes) locks.apply(change);
      setVersion((before) => before + 1);
    };
    worker.port.postMessage({ type: 'follow', path });
    const leave = (): void => worker.port.postMessage({ type: 'bye' });
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, [worker, path, onSessionEnded, onRestored, locks]);
  const live = useMemo(() => ({ locks, state, version }), [locks, state, version]);
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
}
