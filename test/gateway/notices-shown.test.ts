/**
 * How notices are shown: over the operators' interface, as a metric, by `lockgate notices`, and in `tail`
 * (interfaces.md §4). A URL's circuit is open while the URL has failed many times and gets only single attempts.
 */
import got from 'got';
import t from 'tap';
import { noticeColumns } from '../../cli/commands/notices/notice-table.js';
import { eventLine } from '../../cli/commands/tail/event-line.js';
import { tableLines } from '../../cli/terminal/table.js';
import { agoText } from '../../cli/terminal/time-text.js';
import { ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { BEFORE_MONTH_END_MS } from '../helpers/gateway/usage-setup.js';
import { setUpWebhooks } from '../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';

const NOW = Date.UTC(2026, 10, 21, 9);

const dateBefore = (span: number): string => new Date(NOW - span).toISOString();

// Events of the gateway.
const disabled = (urlId: number) => ({ atMs: 0, urlId, why: 'gone' });
const circuit = (urlId: number, state: 'opened' | 'closed') => ({ atMs: 0, urlId, state, why: 'it answered 500' });

t.test('a gateway’s notices are shown over HTTP, in a metric and on the command line', async (t) => {
  const usageClock = new ManualClock(BEFORE_MONTH_END_MS);
  const { gateway, receiver, urlId } = await setUpWebhooks(t, {}, { usageClock });
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const disabledUrl = waitForEvents(gateway, 'url-disabled', 1);
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  await disabledUrl;
  // The month ends.
  usageClock.advance(Seconds(11));
  t.match((await callOperator(gateway, 'POST', '/usage/close', {})).status, 200);
  gateway.events.emit('circuit', circuit(9, 'opened'));
  const answer = await callOperator(gateway, 'GET', '/notices');
  const [first, second, third] = (answer.body as { notices: { id: number }[] }).notices;
  t.match(answer, { status: 200, body: { next_cursor: null, unread: 3 } });
  const byKind = async (kind: string) => (await callOperator(gateway, 'GET', `/notices?kind=${kind}`)).body;
  t.match(await byKind('url-disabled'), {
    notices: [{ subject: String(urlId), text: /disabled: the receiver answered 410/, count: 1, read_at: null }],
  });
  t.match(await byKind('statement'), { notices: [{ subject: `2099-11 ${MERCHANT}`, at: /^20.*Z$/ }] });
  const page = await callOperator(gateway, 'GET', '/notices?limit=2&unread=true');
  t.match(page.body, { notices: [{ id: first?.id }, { id: second?.id }], next_cursor: /^[\w-]+$/ });
  const { next_cursor: next } = page.body as { next_cursor: string };
  t.match((await callOperator(gateway, 'GET', `/notices?limit=2&unread=true&cursor=${next}`)).body, {
    notices: [{ id: third?.id }],
    next_cursor: null,
  });
  t.match((await callOperator(gateway, 'GET', '/notices?since=2100-01-01T00:00:00Z')).body, { notices: [] });
  const wrong = ['kind=x', 'limit=0', 'limit=1001', 'unread=1', 'since=x', 'cursor=1'];
  for (const query of wrong)
    t.match(
      await callOperator(gateway, 'GET', `/notices?${query}`),
      { status: 400, body: { detail: /expected/ } },
      query,
    );
  for (const body of [{}, { ids: [1], all: true }, { ids: [] }, { ids: ['1'] }])
    t.match(await callOperator(gateway, 'POST', '/notices/read', body), { status: 400 }, JSON.stringify(body));
  t.match(await callOperator(gateway, 'POST', '/notices/read', { ids: [77] }), { status: 404 });
  await gateway.webhooks.settings.set(urlId, { state: 'active' });
  t.match(await byKind('url-disabled'), { notices: [{ resolved_at: /^20.*Z$/ }] });
  const { body: figures } = await got(`http://127.0.0.1:${gateway.operatorPort}/metrics`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  t.match(figures, 'lockgate_notices_unread{kind="statement"} 1\n');
  t.match(figures, 'lockgate_notices_unread{kind="lock-late"} 0\n');
});

t.test('“lockgate notices” lists notices and marks them as read', async (t) => {
  const gateway = await testGateway(t);
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const run = (...args: string[]): Promise<CommandOutput> => runLockgate(['notices', ...args]);
  for (const urlId of [1, 2, 3]) gateway.events.emit('url-disabled', disabled(urlId));
  gateway.events.emit('url-changed', { atMs: 0, urlId: 2, state: 'active' });
  t.match(await run('read', '1', ...gatewayFlags), { exit: { code: 0 }, stdout: ['1 marked as read.'] });
  const listed = await run('--all', '--mark-read', ...gatewayFlags);
  t.match(listed.stdout, [
    /^ +ID +LAST +KIND +STATE +TIMES +WHAT$/,
    /^\* +3 +(now|\d+ s ago) +url-disabled +! open +1 +URL 3 is disabled: gone$/,
    /^\* +2 +(now|\d+ s ago) +url-disabled +✓ over +1 +URL 2/,
    /^ +1 +(now|\d+ s ago) +url-disabled +! open +1 +URL 1/,
  ]);
  t.match(listed.stderr, ['2 marked as read.']);
  const json = await run('--all', '--since', '1h', '--limit', '2', '--json', ...gatewayFlags);
  const notice = { id: 3, last_at: /^20.*Z$/, read_at: /^20.*Z$/, resolved_at: null };
  t.match(JSON.parse(json.stdout.join('')), { notices: [notice, { id: 2 }], unread: 0 });
  t.match(await run('read', '--all', '--json', ...gatewayFlags), { exit: { code: 0 }, stdout: ['{"read":0}'] });
  t.match(await run(...gatewayFlags), { exit: { code: 0 }, stdout: [], stderr: [/There are no unread notices/] });
  const none = await run('--all', '--kind', 'degraded', ...gatewayFlags);
  t.match(none, { exit: { code: 0 }, stdout: [], stderr: ['No notices match.'] });
  t.match(await run('--kind', 'x', ...gatewayFlags), {
    exit: { code: 2 },
    stderr: [/expected url-disabled, circuit-open/],
  });
  t.match(await run('--gateway', 'http://127.0.0.1:9', '--token', 'x'), { exit: { code: 3 }, stderr: [/no gateway/] });
});

t.test('tail shows a line for each write of notices', async (t) => {
  const line = eventLine({ at: dateBefore(0), event: 'notices', noted: 3, unread: 12 });
  t.match(line, /^09:00:00 .*new: 3; 12 unread: lockgate notices$/);
});

t.test('the table fits into 80 columns, and shows how long ago notices last occurred', async (t) => {
  t.same(
    [0, Seconds(59), Seconds(119), Minutes(2), Minutes(119), Minutes(180), Minutes(60 * 47), Minutes(60 * 48), -5].map(
      (span) => agoText(dateBefore(span), NOW),
    ),
    ['now', '59 s ago', '119 s ago', '2 min ago', '119 min ago', '3 h ago', '47 h ago', '2 d ago', 'now'],
  );
  const row = {
    ...{ id: 12_345, kind: 'url-disabled', subject: '3', text: `URL 3 is disabled: ${'why '.repeat(40)}`, count: 100 },
    ...{ at: dateBefore(Minutes(180)), last_at: dateBefore(Minutes(119)), read_at: null, resolved_at: null },
  };
  const lines = tableLines([row], noticeColumns(NOW), 80);
  t.ok(lines.every((line) => [...line].length <= 80));
  t.match(lines[1], /^\* {2}12345 {2}119 min ago {2}url-disabled {2}! open {2}URL 3 is disabled: why/);
  t.equal(lines.join(' ').match(/why/g)?.length, 40, 'the complete sentence is wrapped');
});
