/**
 * Whether the page has an open session, asked again and again. The answers also set the page's copy of the run's clock.
 */
import { useCallback, useEffect, useState } from 'preact/hooks';
import { Minutes, Seconds, systemClock } from '../../../../proto/clock.js';
import type { ApiFailure } from '../api/http.js';
import { repeat } from '../view/repeat.js';
import { runClock } from './run-clock.js';

/**
 * How often the page asks for the time of locks, and whether its session is still open. The stream of locks ends with
 * the session, so the page mostly knows that earlier; and the time runs on as fast as before while the gateway runs.
 */
const ASK_EVERY = Minutes(1);
/** When the page asks for the second time: only two readings show how fast the run's clock runs. */
const SECOND_READING_AFTER = Seconds(2);

/** A page's session, as the gateway last answered. */
export interface SessionState<Session> {
  /** Undefined until the gateway has answered; null if there is none. */
  readonly session: Session | null | undefined;
  /** Asks the gateway now. */
  readonly read: () => void;
  /** Tells the page that its session has ended, without a call. */
  readonly end: () => void;
}

/** @param ask makes the call; the same function each time */
export function useSession<Session>(
  ask: () => Promise<{ readonly session: Session; readonly now: string }>,
): SessionState<Session> {
  const [session, setSession] = useState<Session | null | undefined>(undefined);
  const read = useCallback((): void => {
    ask().then(
      ({ session: open, now }) => {
        runClock.set(Date.parse(now));
        // The same object while the session lasts, so that the page is not drawn again for each answer.
        setSession((before) => before ?? open);
      },
      // Without an answer, or with another refusal, the session may still be open.
      ({ status }: ApiFailure) => (status === 401 ? setSession(null) : undefined),
    );
  }, [ask]);

  useEffect(() => {
    read();
    const second = systemClock.after(SECOND_READING_AFTER, read);
    const stop = repeat(ASK_EVERY, read);
    return () => {
      second.cancel();
      stop();
    };
  }, [read]);
  const end = useCallback(() => setSession(null), []);
  return { session, read, end };
}
