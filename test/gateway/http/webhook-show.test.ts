/** `GET /webhooks/{id}` and its `hours` of the operators' interface: the figures agree with what the receiver got. */
import t from 'tap';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { eventually, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

t.test('a URL is shown with success rate, backlog, last error and next attempt', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const show = async () => (await callOperator(gateway, 'GET', `/webhooks/${urlId}`)).body as Record<string, unknown>;
  t.match(await show(), {
    id: urlId,
    events: ['ping'],
    backlog: { behind: 0, pending: 0, oldest_seconds: null },
    next_attempt_at: null,
    last_day: { attempts: 0, success_rate: null, p95_ms: null, last_error: null },
  });
  // Every fourth attempt fails.
  let answered = 0;
  receiver.answer = (_request, response) => void response.writeHead(answered++ % 4 === 3 ? 503 : 204).end();
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 8; sequence += 1) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(8);
  await eventually(
    'the outcomes are stored',
    async () => ((await show()) as { last_day: { attempts: number } }).last_day.attempts === 8,
  );
  t.match(await show(), {
    circuit: 'closed',
    // “behind”: events that the URL's worker has not read; “pending”: those that wait for a retry.
    backlog: { behind: 0, pending: 2, dead: 0, oldest_seconds: Number },
    next_attempt_at: String,
    last_day: { success_rate: 0.75, p95_ms: Number, last_success_at: String, last_error: { status: 503 } },
  });
  const { body } = await callOperator(gateway, 'GET', `/webhooks/${urlId}/hours`);
  const { hours } = body as { hours: readonly Readonly<Record<string, unknown>>[] };
  t.equal(hours.length, 24, 'an entry for each hour');
  // If an hour ends during the test, the events are in the hour before.
  const counts = { delivered: 6, waiting: 2, dead: 0, failed_attempts: 2, estimated: false };
  t.ok(
    hours.some((hour) => Object.entries(counts).every(([name, count]) => hour[name] === count)),
    JSON.stringify(hours.slice(-2)),
  );
  for (const path of ['/webhooks/99', '/webhooks/99/hours'])
    t.equal((await callOperator(gateway, 'GET', path)).status, 404, path);
});
