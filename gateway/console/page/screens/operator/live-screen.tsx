/** The gateway's events as they happen, as `lockgate tail` shows them: newest first, filtered, paused, as JSON. */
import type { JSX } from 'preact';
import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import { gatewayApi } from '../../api/operator-gateway.js';
import { useKeys } from '../../app/keys.js';
import type { Route } from '../../app/route.js';
import { setQuery } from '../../app/use-route.js';
import type { LiveState } from '../../live/live-locks.js';
import { isOpenFilter, readTailFilter, type TailFilter, type TailNames } from '../../live/tail-filter.js';
import { MAX_LINES, type TailLine, type TailLog } from '../../live/tail-log.js';
import { useLive } from '../../live/use-live.js';
import { useTail } from '../../live/use-tail.js';
import { Badge, Empty, type Tone } from '../../view/parts.js';
import { useAnswer } from '../../view/use-answer.js';
import { useNarrow } from '../../view/use-narrow.js';
import { VirtualList } from '../../view/virtual-list.js';
import { EventDialog } from './event-dialog.js';
import { LiveFilter } from './live-filter.js';
import { TailRow } from './tail-row.js';

const ROW_PIXELS = 30;
const NARROW_ROW_PIXELS = 54;
const NO_FILTER = { lock: '', merchant: '', kind: '', reason: '', search: '' };

interface LiveScreenProps {
  readonly route: Route;
  readonly workerUrl: string;
  /** Outlives the screen, so that a look at a lock does not lose the lines. */
  readonly log: TailLog;
}

export function LiveScreen({ route, workerUrl, log }: LiveScreenProps): JSX.Element {
  const merchants = useAnswer(useCallback(gatewayApi.merchants, []));
  const names = useTailNames();
  const filter = readTailFilter(route.query);
  log.select(filter, names);
  const state = useTail(workerUrl, log);
  const [, redraw] = useState(0);
  const [opened, setOpened] = useState<TailLine | null>(null);
  // After a pause or a clearing, a new key makes a new list, which starts at its top.
  const [listKey, setListKey] = useState(0);
  const search = useRef<HTMLInputElement>(null);
  const isNarrow = useNarrow();
  const actions = useMemo(() => {
    const pause = (): void => {
      if (log.isPaused) return;
      log.pause();
      redraw((before) => before + 1);
    };
    const resume = (): void => {
      log.resume();
      setListKey((before) => before + 1);
    };
    return { pause, toggle: () => (log.isPaused ? resume() : pause()), focus: () => search.current?.focus() };
  }, [log]);
  useKeys(useMemo(() => ({ p: actions.toggle, '/': actions.focus }), [actions]));
  const lines = log.view;
  const open = (line: TailLine): void => {
    if (!('event' in line)) return;
    actions.pause();
    setOpened(line);
  };
  return (
    <section class="screen fill live" aria-labelledby="live-title">
      <header class="screen-head">
        <h1 id="live-title">Live</h1>
        <StreamState state={state} log={log} />
        <button type="button" onClick={actions.toggle} aria-pressed={log.isPaused} title="Key: p">
          {log.isPaused ? 'Go on' : 'Pause'}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            log.clear();
            setListKey((before) => before + 1);
          }}
        >
          Clear
        </button>
      </header>
      <LiveFilter filter={filter} merchants={merchants.answer?.merchants ?? []} searchField={search} />
      {lines.length === 0 ? (
        <NoLines state={state} filter={filter} />
      ) : (
        <VirtualList
          key={listKey}
          items={lines}
          rowPixels={isNarrow ? NARROW_ROW_PIXELS : ROW_PIXELS}
          keyOf={({ id }) => String(id)}
          label="Events"
          onOpen={open}
          onBrowse={actions.pause}
          row={(line) => <TailRow line={line} names={names} />}
        />
      )}
      {opened !== null && 'event' in opened && (
        <EventDialog event={opened.source} names={names} onClose={() => setOpened(null)} />
      )}
    </section>
  );
}

/** The names of locks and merchants: events have the MAC of a lock, or the id of a webhook URL. */
function useTailNames(): TailNames {
  const { locks } = useLive();
  const { answer } = useAnswer(useCallback(gatewayApi.urls, []));
  return useMemo(() => {
    const merchantOfUrl = new Map(answer?.webhooks.map(({ id, merchant }) => [id, merchant]));
    return {
      lockName: (mac) => locks.find(mac)?.name ?? null,
      merchantOf: ({ merchant, mac, url_id: urlId }) => {
        if (typeof merchant === 'string') return merchant;
        return typeof mac === 'string' ? locks.find(mac)?.merchant : merchantOfUrl.get(Number(urlId));
      },
    };
  }, [locks, answer]);
}

const STATES: Readonly<Record<LiveState, readonly [Tone, string]>> = {
  connecting: ['quiet', 'connecting …'],
  open: ['good', 'live'],
  live: ['good', 'live'],
  interrupted: ['warn', 'interrupted; the page connects again by itself'],
  ended: ['bad', 'the session has ended: log in again'],
};

function StreamState({ state, log }: { readonly state: LiveState; readonly log: TailLog }): JSX.Element {
  const [tone, text] = STATES[state];
  const isLive = state === 'open' || state === 'live';
  return (
    <span class="stream-state" data-stream={state}>
      {isLive && log.isPaused ? (
        <Badge tone="warn">paused, {log.added.toLocaleString('en-US')} new</Badge>
      ) : (
        <Badge tone={tone}>{text}</Badge>
      )}{' '}
      <span class="hint">
        {log.view.length.toLocaleString('en-US')} shown, {MAX_LINES.toLocaleString('en-US')} at most
      </span>
    </span>
  );
}

function NoLines({ state, filter }: { readonly state: LiveState; readonly filter: TailFilter }): JSX.Element {
  if (!isOpenFilter(filter))
    return (
      <Empty title="No event matches yet">
        <p>Events that match appear here as they happen.</p>
        <button type="button" onClick={() => setQuery(NO_FILTER)}>
          Show all events
        </button>
      </Empty>
    );
  if (state === 'connecting') return <Empty title="Connecting …" />;
  return (
    <Empty title="Nothing has happened yet">
      <p>
        Pings, commands, deliveries and changes appear here as they happen. To see some without a lock, run{' '}
        <code>lockgate sim run</code>.
      </p>
    </Empty>
  );
}
