/** The console: the page of the operators' port. A one-time link opens its session; the role decides what is allowed. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { operatorApi } from './api/operator.js';
import type { OperatorSession } from './api/operator-shapes.js';
import type { Screen } from './app/screen.js';
import { Shell } from './app/shell.js';
import { type PageAddresses, startPage } from './app/start.js';
import { useSession } from './app/use-session.js';
import { LiveProvider } from './live/use-live.js';
import { LinkScreen, takeLink } from './screens/link-screen.js';
import { LocksScreen } from './screens/locks-screen.js';
import { TraceScreen } from './screens/trace-screen.js';
import { Action } from './view/parts.js';

/** The locks alone: the events of all locks are many, and only one screen shows them. */
const LOCK_STREAM = '/stream?only=locks';

function Console({ liveWorker, traceWorker }: PageAddresses): JSX.Element | null {
  const { session, read, end } = useSession(operatorApi.session);
  const [link, setLink] = useState(takeLink);
  const screens = useMemo(() => screensOf(traceWorker), [traceWorker]);
  const goOn = (): void => {
    setLink(null);
    read();
  };
  if (link !== null) return <LinkScreen token={link} hasSession={Boolean(session)} onLogin={goOn} />;
  if (session === undefined) return null;
  if (session === null) return <LinkScreen token={null} hasSession={false} onLogin={goOn} />;
  return (
    <LiveProvider workerUrl={liveWorker} path={LOCK_STREAM} onEnded={end}>
      <Shell title="Operator" screens={screens} account={<Account session={session} onEnd={end} />} />
    </LiveProvider>
  );
}

function screensOf(traceWorker: string): readonly Screen[] {
  return [
    { name: 'locks', title: 'Locks', key: 'l', isListed: true, view: LocksScreen },
    { name: 'trace', title: 'Trace', key: 't', isListed: true, view: () => <TraceScreen workerUrl={traceWorker} /> },
  ];
}

function Account({ session, onEnd }: { readonly session: OperatorSession; readonly onEnd: () => void }): JSX.Element {
  return (
    <>
      <span class="hint">
        {session.token} ({session.role})
      </span>
      <Action tone="quiet" act={() => operatorApi.logOut().then(onEnd)}>
        Log out
      </Action>
    </>
  );
}

startPage((addresses) => <Console {...addresses} />);
