/** Follows the gateway's events for the log of a page while a view is shown, through the worker that all tabs share. */
import { useEffect, useState } from 'preact/hooks';
import { monotonicMs, Seconds } from '../../../../proto/clock.js';
import type { LiveMessage, LiveState } from './live-locks.js';
import type { TailLog } from './tail-log.js';

/** The stream of events without the locks. */
const EVENT_STREAM = '/stream?only=events';
/** The gap of a reload or a look at another screen that is worth a note. */
const MIN_GAP = Seconds(2);

/** When each log was last followed, in the page's monotonic time. */
const leftAtMs = new WeakMap<TailLog, number>();

/** Whether the page follows the events. The component is drawn again when the log has changed. */
export function useTail(workerUrl: string, log: TailLog): LiveState {
  const [, setVersion] = useState(0);
  const [state, setState] = useState<LiveState>('connecting');
  useEffect(() => {
    noteGap(log);
    const { port } = new SharedWorker(workerUrl, { type: 'module', name: `lockgate ${EVENT_STREAM}` });
    port.onmessage = ({ data }: MessageEvent<LiveMessage>) => {
      if (data.type === 'state') {
        if (data.state === 'interrupted') log.note('The stream was interrupted. Events may be missing here.');
        setState(data.state);
      } else if (data.type === 'tail') {
        log.add(data.batch);
        port.postMessage({ type: 'taken' });
        setVersion((before) => before + 1);
      }
    };
    port.postMessage({ type: 'follow', path: EVENT_STREAM });
    const leave = (): void => {
      leftAtMs.set(log, monotonicMs());
      port.postMessage({ type: 'bye' });
    };
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, [workerUrl, log]);
  return state;
}

function noteGap(log: TailLog): void {
  const left = leftAtMs.get(log);
  if (left === undefined || log.view.length === 0) return;
  const gapMs = monotonicMs() - left;
  if (gapMs >= MIN_GAP) log.note(`Not followed for ${Math.round(gapMs / Seconds(1))} s.`);
}
