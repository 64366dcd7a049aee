/**
 * The worker that a browser's tabs share (gateway/console/page/live-worker.ts), without a browser: this test plays the
 * browser's globals, the tabs and the stream. What one session has shown never reaches the next, which may be another
 * merchant's.
 */
import t from 'tap';
import type { LiveMessage } from '../../../gateway/console/page/live/live-locks.js';
import { finishWork } from '../../helpers/live/live-site.js';

/** The stream, as browsers open it; the test sends its events. */
class PlayedSource {
  static readonly CLOSED = 2;
  /** All that were opened, in order. */
  static readonly opened: PlayedSource[] = [];
  readonly path: string;
  readyState = 1;
  onerror: () => void = () => undefined;
  readonly #listeners = new Map<string, (event: { readonly data: string }) => void>();

  constructor(path: string) {
    this.path = path;
    PlayedSource.opened.push(this);
  }

  addEventListener(type: string, listener: (event: { readonly data: string }) => void): void {
    this.#listeners.set(type, listener);
  }

  close(): void {
    this.readyState = PlayedSource.CLOSED;
  }

  /** Sends an event to the worker. */
  send(type: string, data: unknown): void {
    this.#listeners.get(type)?.({ data: JSON.stringify(data) });
  }
}

/** A tab: what it got from the worker. */
class Tab {
  readonly got: LiveMessage[] = [];
  /** Set by the worker when the tab connects. */
  onmessage: (event: { readonly data: unknown }) => void = () => undefined;

  postMessage(message: LiveMessage): void {
    this.got.push(message);
  }

  say(data: unknown): void {
    this.onmessage({ data });
  }

  /** The MACs of all locks that the tab was ever told about. */
  get macs(): string[] {
    const changes = this.got.flatMap((message) => (message.type === 'changes' ? message.changes : []));
    return changes.flatMap((change) => (change.type === 'snapshot' ? change.locks.map((lock) => lock.mac_addr) : []));
  }
}

/** Loaded by its address, since its types are those of a browser. */
const WORKER = new URL('../../../gateway/console/page/live-worker.js', import.meta.url);
const AMBER_MAC = 'A4:C1:38:00:00:01';
const BIRCH_MAC = 'A4:C1:38:00:00:02';

function snapshotOf(mac_addr: string) {
  return { part: 1, last: true, locks: [{ mac_addr, name: null, trouble: 'none', presence: 'online' }] };
}

/** What the worker does when a tab connects to it; the worker sets it when it is loaded. */
let onConnect: (event: { readonly ports: readonly Tab[] }) => void = () => undefined;

function openTab(): Tab {
  const tab = new Tab();
  onConnect({ ports: [tab] });
  tab.say({ type: 'follow', path: '/v1/stream' });
  return tab;
}

t.before(async () => {
  // Other files' tests run in this process too, and need the real ones back.
  const { EventSource, addEventListener, fetch } = globalThis as Record<string, unknown>;
  t.teardown(() => void Object.assign(globalThis, { EventSource, addEventListener, fetch }));
  Object.assign(globalThis, {
    EventSource: PlayedSource,
    addEventListener: (_type: 'connect', listener: typeof onConnect) => {
      onConnect = listener;
    },
    fetch: async () => ({ status: 401 }),
  });
  await import(WORKER.href);
});

t.test('a session after the last tab was closed starts without the former one’s locks', async (t) => {
  const first = openTab();
  PlayedSource.opened.at(-1)?.send('snapshot', snapshotOf(AMBER_MAC));
  t.same(first.macs, [AMBER_MAC]);
  const second = openTab();
  t.same(second.macs, [AMBER_MAC], 'a second tab of the session has them at once');
  t.equal(PlayedSource.opened.length, 1, 'over the stream that is open');

  first.say({ type: 'bye' });
  second.say({ type: 'bye' });
  t.equal(PlayedSource.opened[0]?.readyState, PlayedSource.CLOSED);
  const next = openTab();
  t.same(next.macs, []);
  PlayedSource.opened.at(-1)?.send('snapshot', snapshotOf(BIRCH_MAC));
  t.same(next.macs, [BIRCH_MAC]);
  next.say({ type: 'bye' });
});

t.test('a session after one that ended starts without its locks, though its tab stayed open', async (t) => {
  const ended = openTab();
  const source = PlayedSource.opened.at(-1);
  source?.send('snapshot', snapshotOf(AMBER_MAC));
  source?.close();
  source?.onerror();
  // The worker asks whether the session goes on; the answer is 401.
  await finishWork();
  t.same(ended.got.at(-1), { type: 'state', state: 'ended' });
  const next = openTab();
  t.same(next.macs, []);
  for (const tab of [ended, next]) tab.say({ type: 'bye' });
});
