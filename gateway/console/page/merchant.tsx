/** The dashboard: the page of the merchants' port. Users with a dashboard role log in; the role decides the screens. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { ApiProvider } from './api/console-api.js';
import { merchantApi } from './api/merchant.js';
import type { Session } from './api/shapes.js';
import type { Screen } from './app/screen.js';
import { Shell } from './app/shell.js';
import { type PageAddresses, startPage } from './app/start.js';
import { useSession } from './app/use-session.js';
import { LiveProvider, useLiveWorker } from './live/use-live.js';
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

/** The stream of the merchant's locks. */
const LOCK_STREAM = '/v1/stream';

function Dashboard({ liveWorker, traceWorker }: PageAddresses): JSX.Element | null {
  const worker = useLiveWorker(liveWorker, LOCK_STREAM);
  const { session, read, end } = useSession(merchantApi.session);
  const [invitation, setInvitation] = useState(takeInvitation);
  const screens = useMemo(() => (session ? screensOf(session, traceWorker) : []), [session, traceWorker]);
  // A person with an invitation's link is no user yet, and has no session.
  if (invitation !== null) {
    const accepted = (): void => {
      setInvitation(null);
      read();
    };
    return <InvitationScreen token={invitation} onLogin={accepted} />;
  }
  // The page stays empty until the gateway has said whether there is a session.
  if (session === undefined) return null;
  if (session === null) return <LoginScreen onLogin={read} />;
  return (
    <ApiProvider value={merchantApi}>
      <LiveProvider worker={worker} path={LOCK_STREAM} onSessionEnded={end} onRestored={read}>
        <Shell title={session.merchant} screens={screens} account={<Account session={session} onEnd={end} />} />
      </LiveProvider>
    </ApiProvider>
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
