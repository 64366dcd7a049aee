/**
 * Answers that are odd, and sockets that are gone, byte by byte: what counts is what HTTP says of them (RFC 9112), and
 * what is no fault of the receiver's is not held against it. The clock stands still: nothing here waits for a limit.
 */

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import t from 'tap';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { type AttemptResult, attemptDelivery } from '../../../gateway/webhooks/sending/attempt.js';
import { makeGuardedAgents } from '../../../gateway/webhooks/sending/guarded-agents.js';
import { ManualClock } from '../../../proto/clock.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

interface RawReceiver {
  /** Makes one attempt. */
  readonly attempt: () => Promise<AttemptResult>;
  /** The number of running time limits. */
  readonly pending: () => number;
  /** The number of connections to the receiver. */
  readonly connections: () => number;
  /** The number of complete requests. */
  readonly requests: () => number;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A receiver that does as it is told with each request; `number` counts those on one connection, from 1. */
async function rawReceiver(test: Teardown, take: (socket: Socket, number: number) => void): Promise<RawReceiver> {
  let [connections, requests] = [0, 0];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    let [text, number] = ['', 0];
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      text += piece.toString('latin1');
      if (!text.endsWith('{}')) return;
      text = '';
      requests += 1;
      take(socket, ++number);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const agents = makeGuardedAgents([parseRange('127.0.0.0/8')]);
  const clock = new ManualClock(0);
  test.teardown(() => {
    agents.http.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    attempt: () => {
      const { signal } = new AbortController();
      return attemptDelivery({ url, headers: {}, body: '{}' }, agents, clock, signal);
    },
    pending: () => clock.pending,
    connections: () => connections,
    requests: () => requests,
  };
}

/** Answers that are complete, whatever else there is: status, and what is kept of the body. */
const COMPLETE: readonly [string, string, number, string][] = [
  ['a body after a 204', 'HTTP/1.1 204 No Content\r\n\r\nsurprise', 204, ''],
  ['a 204 that announces a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 8\r\n\r\nsurprise', 204, ''],
  ['more than was announced', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nsurprise', 200, 'su'],
  ['something after the last chunk', `HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n!`, 500, ''],
  ['informational answers before it', `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${OK}`, 200, 'ok'],
  ['trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n', 200, 'ok'],
  [
    'another protocol, which nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    101,
    '',
  ],
];

t.test('a complete answer counts, whatever bytes follow it', async (t) => {
  for (const [what, bytes, status, answer] of COMPLETE)
    await t.test(what, async (t) => {
      const receiver = await rawReceiver(t, (socket) => socket.write(bytes));
      // The second request uses the same socket or a new one. It must not read bytes left from the first answer.
      for (const _ of [1, 2]) {
        const error = status < 300 && status >= 200 ? null : `the receiver answered ${status}`;
        t.match(await receiver.attempt(), { status, answer, error });
      }
      t.equal(receiver.requests(), 2, 'each was sent once');
      t.equal(receiver.pending(), 0, 'no time limit is left running');
    });
});

t.test('a closed idle socket is not a failure of the receiver', async (t) => {
  for (const leave of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    const receiver = await rawReceiver(t, (socket, number) => (number === 1 ? socket.write(OK) : leave(socket)));
    for (const connections of [1, 2, 3]) {
      t.match(await receiver.attempt(), { status: 200, error: null });
      t.equal(receiver.connections(), connections);
    }
    // All idle sockets may be closed at once, such as after a restart of the receiver.
    const many = await Promise.all(Array.from({ length: 16 }, receiver.attempt));
    const again = await Promise.all(Array.from({ length: 16 }, receiver.attempt));
    for (const result of [...many, ...again]) t.match(result, { status: 200 });
    t.equal(receiver.pending(), 0);
  }
});

t.test('a new socket that is cut off is a failure, and is tried once', async (t) => {
  const receiver = await rawReceiver(t, (socket) => socket.resetAndDestroy());
  t.match(await receiver.attempt(), { status: null, error: 'the receiver reset the connection' });
  t.equal(receiver.requests(), 1);
});

t.test('an answer that is cut off is a failure, also on an idle socket, and the request is not repeated', async (t) => {
  const receiver = await rawReceiver(t, (socket, number) => {
    if (number === 1) socket.write(OK);
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok');
  });
  t.match(await receiver.attempt(), { status: 200 });
  t.match(await receiver.attempt(), { status: null, error: 'the receiver reset the connection' });
  t.equal(receiver.requests(), 2);
});
