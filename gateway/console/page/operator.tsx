/** The console: the page of the operators' port. A one-time link opens its session; its role decides what it may do. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { DATA_FOLDER_TOKEN_NAME } from '../wording/audit-text.js';
import { ApiProvider } from './api/console-api.js';
import { operatorApi } from './api/operator.js';
import type { OperatorSession } from './api/operator-shapes.js';
import type { Screen } from './app/screen.js';
import { Shell } from './app/shell.js';
import { type PageAddresses, startPage } from './app/start.js';
import { useSession } from './app/use-session.js';
import { LiveProvider, useLiveWorker } from './live/use-live.js';
import { DeliveriesScreen } from './screens/deliveries-screen.js';
import { LinkScreen, takeLink } from './screens/link-screen.js';
import { LockScreen } from './screens/lock-screen.js';
import { LocksScreen } from './screens/locks-screen.js';
import { MapScreen } from './screens/map-screen.js';
import { NowScreen } from './screens/now-screen.js';
import { gatewayScreens } from './screens/operator/gateway-screens.js';
import { TraceScreen } from './screens/trace-screen.js';
import { Action } from './view/parts.js';

/** The stream of locks without events: there are many events, and only one screen shows them. */
const LOCK_STREAM = '/stream?only=locks';

function Console({ liveWorker, traceWorker }: PageAddresses): JSX.Element | null {
  const worker = useLiveWorker(liveWorker, LOCK_STREAM);
  const { session, read, end } = useSession(operatorApi.session);
  const [link, setLink] = useState(takeLink);
  // If a link is opened in a tab that shows this page, only the address's fragment changes: the page is not loaded.
  useEffect(() => {
    const take = (): void => setLink((before) => takeLink() ?? before);
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
  const sessionId = session?.id;
  // Screens remember events, which another session must not see: each session gets screens of its own.
  const screens = useMemo(
    () => [...screensOf(traceWorker), ...gatewayScreens(liveWorker)],
    [traceWorker, liveWorker, sessionId],
  );
  const showConsole = (): void => {
    setLink(null);
    read();
  };
  if (link !== null) return <LinkScreen key={link} token={link} hasSession={Boolean(session)} onLogin={showConsole} />;
  // The page stays empty until the gateway has said whether there is a session.
  if (session === undefined) return null;
  if (session === null) return <LinkScreen token={null} hasSession={false} onLogin={showConsole} />;
  return (
    <ApiProvider value={operatorApi}>
      <LiveProvider worker={worker} path={LOCK_STREAM} onSessionEnded={end} onRestored={read}>
        <Shell title="Operator" screens={screens} account={<Account session={session} onEnd={end} />} />
      </LiveProvider>
    </ApiProvider>
  );
}

function screensOf(traceWorker: string): readonly Screen[] {
  return [
    { name: 'now', title: 'Now', key: 'n', isListed: true, view: NowScreen },
    { name: 'locks', title: 'Locks', key: 'l', isListed: true, view: LocksScreen },
    { name: 'map', title: 'Map', key: 'm', isListed: true, view: MapScreen },
    { name: 'lock', title: 'Lock', key: '', isListed: false, view: LockScreen },
    { name: 'deliveries', title: 'Deliveries', key: 'd', isListed: true, view: DeliveriesScreen },
    { name: 'trace', title: 'Trace', key: 't', isListed: true, view: () => <TraceScreen workerUrl={traceWorker} /> },
  ];
}

/** Who is logged in. The token in the data folder has no name that people gave it. */
function Account({ session, onEnd }: { readonly session: OperatorSession; readonly onEnd: () => void }): JSX.Element {
  return (
    <>
      <span class="hint">
        {DATA_FOLDER_TOKEN_NAME.test(session.token) ? 'operator' : session.token} ({session.role})
      </span>
      <Action tone="quiet" act={() => operatorApi.logOut().then(onEnd)}>
        Log out
      </Action>
    </>
  );
}

startPage((addresses) => <Console {...addresses} />);
