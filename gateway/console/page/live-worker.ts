/**
 * The worker that all tabs of a browser share. It opens one stream of live data for all of them, since a browser opens
 * only six connections to a server, and passes changes on to the tabs a few times a second. The locks and the
 * operators' events are two streams, so a separate instance of this worker runs for each.
 */
import { type Milliseconds, Seconds, systemClock } from '../../../proto/clock.js';
import { type LiveChange, LiveLocks, type LiveMessage, type LiveState } from './live/live-locks.js';
import { readChange } from './live/read-change.js';
import { TailOutbox } from './live/tail-outbox.js';

/** How long changes are collected before the tabs get them. */
const BATCH_SPAN: Milliseconds = 250;
/** The wait before a stream that failed is opened again. `EventSource` tries again by itself while it can. */
const RETRY_AFTER = Seconds(2);

/** Maximum number of events in a batch; more are only counted. */
const MAX_BATCH_EVENTS = 5_000;

/** The open tabs, each with what waits for it. */
const tabs = new Map<MessagePort, TailOutbox>();
let locks = new LiveLocks();
let state: LiveState = 'connecting';
let source: EventSource | null = null;
/** The changes of locks that the tabs will get next. */
let batch: LiveChange[] = [];
/** The gateway's events that the tabs will get next, as JSON, and how many were left out. */
let events: string[] = [];
let skipped = 0;
let isBatchDue = false;

/** A message from a tab: the path of the stream to follow, that it has taken events, or that it is being closed. */
type TabMessage =
  | { readonly type: 'follow'; readonly path: string }
  | { readonly type: 'taken' }
  | { readonly type: 'bye' };

addEventListener('connect', (event) => {
  const [tab] = (event as MessageEvent).ports;
  if (tab === undefined) return;
  tab.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data.type === 'bye') tabs.delete(tab);
    else if (data.type === 'taken') tabs.get(tab)?.noteTaken();
    else welcome(tab, data.path);
    // The stream ends with the last tab.
    if (tabs.size > 0) return;
    close();
    state = 'connecting';
  };
});

/**
 * Sends a new tab the present state, and follows the stream if it is not followed yet. All tabs name the same path,
 * since each path has an instance of this worker.
 */
function welcome(tab: MessagePort, path: string): void {
  tabs.set(tab, new TailOutbox());
  post(tab, { type: 'state', state });
  post(tab, { type: 'changes', changes: [locks.asSnapshot()] });
  if (source === null || state === 'ended') follow(path);
}

function follow(path: string): void {
  close();
  setState('connecting');
  const opened = new EventSource(path);
  source = opened;
  for (const type of ['snapshot', 'lock', 'removed'] as const)
    opened.addEventListener(type, ({ data }: MessageEvent<string>) => {
      setState('live');
      addChange(readChange(type, data));
    });
  opened.addEventListener('event', ({ data }: MessageEvent<string>) => addEvent(data));
  opened.addEventListener('skipped', ({ data }: MessageEvent<string>) => {
    skipped += JSON.parse(data).events;
    scheduleFlush();
  });
  opened.onopen = () => setState('open');
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

/** Ends the stream, and forgets all locks: the next session may be another merchant's. */
function close(): void {
  source?.close();
  source = null;
  locks = new LiveLocks();
  batch = [];
}

function addChange(change: LiveChange): void {
  locks.apply(change);
  batch.push(change);
  // The tabs show nothing before they have the whole snapshot, so it does not wait.
  if (change.type === 'snapshot' && change.last) flush();
  else scheduleFlush();
}

function addEvent(json: string): void {
  setState('live');
  if (events.length < MAX_BATCH_EVENTS) events.push(json);
  else skipped += 1;
  scheduleFlush();
}

function scheduleFlush(): void {
  if (!isBatchDue) systemClock.after(BATCH_SPAN, flush);
  isBatchDue = true;
}

function flush(): void {
  isBatchDue = false;
  const changes = batch;
  const tail = { events, skipped };
  batch = [];
  events = [];
  skipped = 0;
  for (const [tab, outbox] of tabs) {
    if (changes.length > 0) post(tab, { type: 'changes', changes });
    const offered = tail.events.length + tail.skipped > 0 ? outbox.offer(tail) : null;
    if (offered !== null) post(tab, { type: 'tail', batch: offered });
  }
}

function setState(next: LiveState): void {
  if (next === state) return;
  state = next;
  for (const tab of tabs.keys()) post(tab, { type: 'state', state });
}

function post(tab: MessagePort, message: LiveMessage): void {
  tab.postMessage(message);
}
