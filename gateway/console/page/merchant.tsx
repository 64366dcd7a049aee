/** The dashboard: the page of the merchants' port. Users with a dashboard role log in; the role decides the screens. */
import type { JSX } from 'preact';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { Seconds, systemClock } from '../../../proto/clock.js';
import type { ApiFailure } from './api/http.js';
import { merchantApi } from './api/merchant.js';
import type { Session } from './api/shapes.js';
import { runClock } from './app/run-clock.js';
import type { Screen } from './app/screen.js';
import { Shell } from './app/shell.js';
import { type PageAddresses, startPage } from './app/start.js';
import { LiveProvider } from './live/use-live.js';
import { AccessScreen } from './screens/access-screen.js';
import { BillsScreen } from './screens/bills-screen.js';
import { DeliveriesScreen } from './screens/deliveries-screen.js';
import { InvitationScreen, takeInvitation } from './screens/invitation-screen.js';
import { LockScreen } from './screens/lock-screen.js';
import { LocksScreen } from './screens/locks-screen.js';
import { LoginScreen } from './screens/login-screen.js';
import { MapScreen } from './screens/map-screen.js';
import { NowScreen } from './screens/now-screen.js';
import { TraceScreen } from './screens/trace-screen.js';
import { Action } from './view/parts.js';
import { repeat } from './view/repeat.js';

/** How often the page asks for the time of locks, and whether its session is still open. */
const CLOCK_EVERY = Seconds(10);
const SECOND_READING_AFTER = Seconds(2);

/** The session: undefined until the gateway has answered, null if there is none. */
type SessionState = Session | null | undefined;

function Dashboard({ liveWorker, traceWorker }: PageAddresses): JSX.Element | null {
  const [session, setSession] = useState<SessionState>(undefined);
  const [invitation, setInvitation] = useState(takeInvitation);
  const read = useCallback(
    () =>
      merchantApi.session().then(
        ({ session: open, now }) => {
          runClock.set(Date.parse(now));
          setSession((before) => before ?? open);
        },
        ({ status }: ApiFailure) => (status === 401 ? setSession(null) : undefined),
      ),
    [],
  );
  // The first two readings show how fast the clock runs.
  useEffect(() => {
    void read();
    const second = systemClock.after(SECOND_READING_AFTER, () => void read());
    const stop = repeat(CLOCK_EVERY, () => void read());
    return () => {
      second.cancel();
      stop();
    };
  }, [read]);
  const end = useCallback(() => setSession(null), []);
  const screens = useMemo(() => (session ? screensOf(session, traceWorker) : []), [session, traceWorker]);
  if (invitation !== null) {
    const accepted = (): void => {
      setInvitation(null);
      void read();
    };
    return <InvitationScreen token={invitation} onLogin={accepted} />;
  }
  if (session === undefined) return null;
  if (session === null) return <LoginScreen onLogin={() => void read()} />;
  return (
    <LiveProvider workerUrl={liveWorker} path="/v1/stream" onEnded={end}>
      <Shell title={session.merchant} screens={screens} account={<Account session={session} onEnd={end} />} />
    </LiveProvider>
  );
}

/** The screens that a role may use. */
function screensOf(session: Session, traceWorker: string): readonly Screen[] {
  const isOwner = session.role === 'owner';
  const screens: readonly (Screen | false)[] = [
    { name: 'now', title: 'Now', key: 'n', isListed: true, view: NowScreen },
    { name: 'locks', title: 'Locks', key: 'l', isListed: true, view: LocksScreen },
    { name: 'map', title: 'Map', key: 'm', isListed: true, view: MapScreen },
    { name: 'lock', title: 'Lock', key: '', isListed: false, view: LockScreen },
    { name: 'deliveries', title: 'Deliveries', key: 'd', isListed: true, view: DeliveriesScreen },
    { name: 'trace', title: 'Trace', key: 't', isListed: true, view: () => <TraceScreen workerUrl={traceWorker} /> },
    {
      name: 'access',
      title: 'Keys and users',
      key: 'k',
      isListed: true,
      view: () => <AccessScreen session={session} />,
    },
    isOwner && { name: 'bills', title: 'Bills', key: 'b', isListed: true, view: BillsScreen },
  ];
  return screens.filter((screen) => screen !== false);
}

function Account({ session, onEnd }: { readonly session: Session; readonly onEnd: () => void }): JSX.Element {
  return (
    <>
      <span class="hint">
        {session.username} ({session.role})
      </span>
      <Action tone="quiet" act={() => merchantApi.logOut().then(onEnd)}>
        Log out
      </Action>
    </>
  );
}

startPage((addresses) => <Dashboard {...addresses} />);
