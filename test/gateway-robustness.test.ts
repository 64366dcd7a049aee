/**
 * What wears a gateway down or keeps it from ending, one case each.
 */
import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { parseRange } from '../gateway/webhooks/address-rule.js';
import { attemptDelivery } from '../gateway/webhooks/attempt.js';
import { makeGuardedAgents } from '../gateway/webhooks/guarded-agents.js';
import { systemClock } from '../proto/clock.js';

t.test('a delivery leaves nothing behind, and can be cut off', async (t) => {
  let answers = true;
  let arrived: () => void = () => undefined;
  const server = createServer((request, response) => {
    request.resume().on('end', () => (answers ? response.writeHead(204).end() : arrived()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise<void>((resolve) => server.closeAllConnections() ?? server.close(() => resolve())));
  const agents = makeGuardedAgents([parseRange('127.0.0.0/8')]);
  t.teardown(() => agents.http.destroy());
  const cut = new AbortController();
  const request = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, headers: {}, body: '{}' };
  const attempt = () => attemptDelivery(request, agents, systemClock, cut.signal);

  for (let round = 0; round < 5; round += 1) t.equal((await attempt()).status, 204);
  t.same(getEventListeners(cut.signal, 'abort'), [], 'no listener of a delivery that has ended');

  answers = false;
  const hanging = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const under = attempt();
  await hanging;
  cut.abort();
  t.match(await under, { status: null, error: /stopping/ }, 'one under way ends at once');
  t.match(await attempt(), { status: null }, 'and none begins any more');
});
