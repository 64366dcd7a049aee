/**
 * The live events of the console's page (console.md, screen "Live"): the number of lines is bounded, a filter keeps
 * rare lines, and a paused log does not change. A worker shared by the browser's tabs sends each tab batches of events;
 * for a tab that accepts none it holds only a few. Tested without a browser. A finding is the gateway's objection to a
 * ping; an event `circuit` says that a webhook URL fails or works again.
 */
import t from 'tap';
import { readTailFilter, type TailNames } from '../../../gateway/console/page/live/tail-filter.js';
import { MAX_LINES, TailLog } from '../../../gateway/console/page/live/tail-log.js';
import { TailOutbox } from '../../../gateway/console/page/live/tail-outbox.js';
import type { EventJson } from '../../../gateway/console/wording/event-text.js';

const MAC = 'A4:C1:38:F0:E1:D2';
const OTHER_MAC = 'A4:C1:38:F0:E1:D3';

/** The first lock is called "Blue bike" and is Amber's; URL 7 is Birch's. */
const NAMES: TailNames = {
  lockName: (mac) => (mac === MAC ? 'Blue bike' : null),
  merchantOf: ({ mac, url_id }) => (mac === MAC ? 'Amber' : url_id === 7 ? 'Birch' : undefined),
};

/** The event of a lock's ping, as JSON. */
function pingEvent(mac: string, reason: string, findings: readonly object[] = []): string {
  const ping = { ping_type: 'gps', reason, lock_state: 'locked', battery_percent: 80 };
  return JSON.stringify({ at: '2026-11-20T06:00:00.000Z', mac, event: 'ping', source: 'lock', ping, findings });
}

const CIRCUIT = JSON.stringify({
  at: '2026-11-20T06:00:01.000Z',
  event: 'circuit',
  url_id: 7,
  state: 'open',
  why: 'ten failures',
});

/** A log with the filter that the page's address has as its query. */
function logWith(query: Readonly<Record<string, string>>): TailLog {
  const log = new TailLog();
  log.select(readTailFilter(query), NAMES);
  return log;
}

/** What the log shows, newest first: the kind of each event, or the note. */
function shown(log: TailLog): string[] {
  return log.view.map((line) => ('note' in line ? line.note : String(line.event.event)));
}

/** The MACs of the shown events, newest first. */
function macs(log: TailLog): unknown[] {
  return log.view.map((line) => ('event' in line ? line.event.mac : null));
}

t.test(
  'lines are shown newest first, findings after their ping, and a note about skipped events above the batch',
  async (t) => {
    const log = logWith({});
    const finding = { rule: 'battery-jump', severity: 'warning', message: 'jumped', uplink: null };
    log.add({ events: [pingEvent(MAC, 'REASON_THEFT', [finding]), 'no JSON', CIRCUIT], skipped: 0 });
    log.add({ events: [pingEvent(OTHER_MAC, 'REASON_THEFT')], skipped: 1_200 });
    t.same(shown(log), ['1,200 skipped: they came too fast', 'ping', 'circuit', 'finding', 'ping']);
  },
);

t.test('a filter selects by lock, merchant, kind, reason and words', async (t) => {
  const events = [pingEvent(MAC, 'REASON_THEFT'), pingEvent(OTHER_MAC, 'REASON_STATE_PING'), CIRCUIT];
  const selectedBy = (query: Readonly<Record<string, string>>): unknown[] => {
    const log = logWith(query);
    log.add({ events, skipped: 0 });
    return log.view.map((line) => ('event' in line ? (line.event.mac ?? line.event.event) : null));
  };
  t.same(selectedBy({ lock: 'blue' }), [MAC], 'a part of the name');
  t.same(selectedBy({ lock: 'e1:d3' }), [OTHER_MAC], 'a part of the MAC');
  t.same(selectedBy({ merchant: 'Amber' }), [MAC]);
  t.same(selectedBy({ merchant: 'Birch' }), ['circuit'], 'by the webhook URL');
  t.same(selectedBy({ kind: 'circuit' }), ['circuit']);
  t.same(selectedBy({ reason: 'REASON_STATE_PING' }), [OTHER_MAC]);
  t.same(selectedBy({ search: 'ten HOOK' }), ['circuit'], 'each word, in any order');
  t.same(selectedBy({ search: 'ten ping' }), []);
  t.same(selectedBy({ lock: 'blue', reason: 'REASON_STATE_PING' }), [], 'all conditions hold');
});

t.test('the number of lines is bounded, and a rare selected line outlives thousands of others', async (t) => {
  const log = logWith({ reason: 'REASON_THEFT' });
  log.add({ events: [pingEvent(MAC, 'REASON_THEFT')], skipped: 0 });
  for (let batch = 0; batch < 4; batch++)
    log.add({
      events: Array.from({ length: MAX_LINES / 2 }, () => pingEvent(OTHER_MAC, 'REASON_STATE_PING')),
      skipped: 0,
    });
  t.same(macs(log), [MAC]);
  log.select(readTailFilter({ search: 'theft' }), NAMES);
  t.same(macs(log), [MAC], 'still with another filter that selects it');
  log.select(readTailFilter({}), NAMES);
  t.equal(log.view.length, MAX_LINES);
});

t.test('a paused log stays as it is, counts what comes, and shows it afterwards', async (t) => {
  const log = logWith({ kind: 'ping' });
  log.add({ events: [pingEvent(MAC, 'REASON_THEFT')], skipped: 0 });
  log.pause();
  const before = log.view;
  log.add({ events: [pingEvent(OTHER_MAC, 'REASON_THEFT'), CIRCUIT], skipped: 0 });
  t.equal(log.view, before, 'the same array');
  t.equal(log.added, 1, 'of two new events the filter selects one');
  log.select(readTailFilter({}), NAMES);
  t.same(macs(log), [MAC], 'another filter selects among the lines of the pause');
  log.resume();
  t.same(shown(log), ['circuit', 'ping', 'ping']);
  t.equal(log.added, 0);
});

t.test('a tab that accepts nothing gets eight batches, then learns how many events it missed', async (t) => {
  const outbox = new TailOutbox();
  const batch = { events: ['{}', '{}'], skipped: 1 };
  for (let n = 0; n < 8; n++) t.same(outbox.offer(batch), batch);
  t.equal(outbox.offer(batch), null);
  t.equal(outbox.offer(batch), null);
  outbox.noteTaken();
  // The two batches that were not sent had two events and one skipped event each; this batch has one skipped too.
  t.same(outbox.offer(batch), { events: ['{}', '{}'], skipped: 7 });
  t.equal(outbox.offer(batch), null, 'eight wait again');
});

t.test('a kind that the page does not know is shown as JSON', async (t) => {
  const event: EventJson = { at: '2026-11-20T06:00:00.000Z', event: 'of-tomorrow', why: 'new' };
  const log = logWith({ search: 'of-tomorrow' });
  log.add({ events: [JSON.stringify(event)], skipped: 0 });
  t.match(log.view, [{ event }]);
});
