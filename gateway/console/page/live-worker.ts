/**
 * The worker that all tabs of a browser share. It holds one stream of live data for all of them, since a browser opens
 * only six connections to a server, and passes changes on a few times a second.
 */
import { type Milliseconds, Seconds, systemClock } from '../../../proto/clock.js';
import { type LiveChange, LiveLocks, type LiveMessage, type LiveState } from './live/live-locks.js';
import { readChange } from './live/read-change.js';

/** How long changes are collected before the tabs get them. */
const BATCH_SPAN: Milliseconds = 250;
/** The wait before a stream that failed is opened again. `EventSource` tries again by itself while it can. */
const RETRY_AFTER = Seconds(2);

const tabs = new Set<MessagePort>();
const locks = new LiveLocks();
let state: LiveState = 'connecting';
let source: EventSource | null = null;
let batch: LiveChange[] = [];
let isBatchDue = false;

/** A message from a tab: the path of the stream to follow, or that the tab is being closed. */
type TabMessage = { readonly type: 'follow'; readonly path: string } | { readonly type: 'bye' };

addEventListener('connect', (event) => {
  const [tab] = (event as MessageEvent).ports;
  if (tab === undefined) return;
  tabs.add(tab);
  tab.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data.type === 'bye') tabs.delete(tab);
    else welcome(tab, data.path);
    if (tabs.size === 0) close();
  };
});

function welcome(tab: MessagePort, path: string): void {
  post(tab, { type: 'state', state });
  post(tab, { type: 'changes', changes: [locks.asSnapshot()] });
  if (source === null || state === 'ended') follow(path);
}

function follow(path: string): void {
  close();
  setState('connecting');
  const opened = new EventSource(path);
  source = opened;
  const take = (type: LiveChange['type']) => (event: MessageEvent<string>) => {
    setState('live');
    add(readChange(type, event.data));
  };
  opened.addEventListener('snapshot', take('snapshot'));
  opened.addEventListener('lock', take('lock'));
  opened.addEventListener('removed', take('removed'));
  opened.onerror = () => void recover(opened, path);
}

/** After an error the browser tries again by itself, unless the gateway refused the stream. */
async function recover(opened: EventSource, path: string): Promise<void> {
  if (opened !== source) return;
  setState('interrupted');
  if (opened.readyState !== EventSource.CLOSED) return;
  const answer = await fetch('/console/session').catch(() => null);
  if (opened !== source) return;
  if (answer?.status === 401) {
    close();
    setState('ended');
  } else systemClock.after(RETRY_AFTER, () => opened === source && follow(path));
}

function close(): void {
  source?.close();
  source = null;
}

function add(change: LiveChange): void {
  locks.apply(change);
  batch.push(change);
  if (!isBatchDue) systemClock.after(BATCH_SPAN, flush);
  isBatchDue = true;
}

function flush(): void {
  isBatchDue = false;
  const changes = batch;
  batch = [];
  for (const tab of tabs) post(tab, { type: 'changes', changes });
}

function setState(next: LiveState): void {
  if (next === state) return;
  state = next;
  for (const tab of tabs) post(tab, { type: 'state', state });
}

function post(tab: MessagePort, message: LiveMessage): void {
  tab.postMessage(message);
}
