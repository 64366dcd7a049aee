/** The header `traceparent` of webhooks (W3C Trace Context): a trace for each event, a parent for each attempt. */
import t from 'tap';
import { traceId, traceParent } from '../../../../gateway/webhooks/payload/trace-context.js';
import { callOperator } from '../../../helpers/cli/operator-call.js';
import { testBytes, testMac, waitForEvents } from '../../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  readDeliveries,
  setUpWebhooks,
} from '../../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';

/** Version 00, a trace id and a parent id that are not all zeros, and the flag `sampled`. */
const VALID = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;
const MAC = testMac();

t.test('ids are the start of hashes, and each part of an attempt changes the parent id', async (t) => {
  // From `printf %s evt_1 | sha256sum`, and `printf %s 'evt_1 2 3 4' | sha256sum`.
  const attempt = { eventId: 'evt_1', urlId: 2, number: 3, atMs: 4 };
  t.equal(traceId('evt_1'), '7d4e5a76eae6d8c165410ac19fe67565');
  t.equal(traceParent(attempt), '00-7d4e5a76eae6d8c165410ac19fe67565-07fee22c3855ae3d-01');
  const others = [{ urlId: 3 }, { number: 4 }, { atMs: 5 }, { eventId: 'evt_2' }].map((change) => {
    return traceParent({ ...attempt, ...change });
  });
  for (const other of others) t.match(other, VALID);
  t.equal(new Set([traceParent(attempt), ...others]).size, 5);
});

t.test('all attempts at an event have one trace id, and each a parent id of its own', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  const second = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: second.url });
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await connectedLock(t, gateway, MAC);
  const failed = waitForEvents(gateway, 'delivery', 3);
  await lock.send(testBytes(1));
  await second.waitForRequests(1);
  await receiver.waitForRequests(1);
  await advanceToNextTimer(clock);
  await failed;
  const sent = [...receiver.requests, ...second.requests].map(({ headers }) => String(headers.traceparent));
  t.equal(sent.length, 3, 'two attempts at one URL, one at the other');
  for (const each of sent) t.match(each, VALID);
  const id = String(receiver.requests[0]?.json.event_id);
  t.same(new Set(sent.map((each) => each.split('-')[1])), new Set([traceId(id)]));
  t.equal(new Set(sent.map((each) => each.split('-')[2])).size, 3);

  await eventually('the attempts are recorded', async () => {
    return (await readDeliveries(gateway)).flatMap(({ attempts }) => attempts).length === 3;
  });
  const { body } = await callOperator(gateway, 'GET', `/deliveries?url=${urlId}`);
  const [delivery] = (body as { deliveries: { attempts: { traceparent: string }[] }[] }).deliveries;
  t.same(
    delivery?.attempts.map(({ traceparent }) => traceparent),
    sent.slice(0, 2),
    'the list has the same',
  );
});

t.test('a test webhook has a trace of its own, and a custom header can’t replace it', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  await connectedLock(t, gateway, MAC);
  const { eventId } = await gateway.webhooks.tester.test(MAC);
  const [request] = receiver.requests;
  t.match(request?.headers.traceparent, VALID);
  t.equal(String(request?.headers.traceparent).split('-')[1], traceId(eventId));
  const url = 'http://127.0.0.1:1/';
  await t.rejects(gateway.accounts.addWebhookUrl({ url, headers: { TraceParent: '00-1-1-00' } }), {
    code: 'input-header',
  });
});
