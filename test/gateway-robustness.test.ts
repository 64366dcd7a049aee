/**
 * What wears a gateway down or keeps it from ending, one case each.
 */
import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { startRunClock } from '../gateway/run-clock.js';
import { parseRange } from '../gateway/webhooks/address-rule.js';
import { attemptDelivery } from '../gateway/webhooks/attempt.js';
import { makeGuardedAgents } from '../gateway/webhooks/guarded-agents.js';
import { ManualClock, Seconds, systemClock } from '../proto/clock.js';

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

t.test('the run’s clock ends when it is stopped, a note under way or not', async (t) => {
  const waiting: (() => void)[] = [];
  let holds = false;
  let notes = 0;
  const store = {
    readFact: async () => null,
    readLastReceivedAtMs: async () => null,
    writeFact: async () => {
      notes += 1;
      if (holds) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
  const wallClock = new ManualClock();
  const kept = await startRunClock(store, 1, wallClock);
  t.equal(notes, 1, 'it is noted at once');
  holds = true;
  wallClock.advance(Seconds(60));
  t.equal(notes, 2, 'and later, one note after the other');
  const stopped = kept.stop();
  for (const resolve of waiting) resolve();
  await stopped;
  t.equal(notes, 3, 'and at the end');
  t.equal(wallClock.pending, 0, 'nothing is left that would keep the process going');
});
