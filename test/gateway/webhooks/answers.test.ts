/**
 * Single attempts at receivers that answer in unusual ways or close connections: the gateway reads answers as RFC 9112
 * says, and a closed idle connection does not count as a failure of the receiver. The receivers write raw bytes. The
 * clock is frozen, so no time limit is reached.
 */
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import t from 'tap';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { type AttemptResult, attemptDelivery } from '../../../gateway/webhooks/sending/attempt.js';
import { GuardedConnections } from '../../../gateway/webhooks/sending/guarded-connections.js';
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

const OK_ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/**
 * Starts a receiver that calls `onRequest` for each request; `number` counts the requests of one connection, from 1.
 */
async function rawReceiver(test: Teardown, onRequest: (socket: Socket, number: number) => void): Promise<RawReceiver> {
  let [connections, requests] = [0, 0];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    let [text, number] = ['', 0];
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      // The body of each request is `{}`.
      if (!text.endsWith('{}')) return;
      text = '';
      requests += 1;
      onRequest(socket, ++number);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const guarded = new GuardedConnections([parseRange('127.0.0.0/8')]);
  const clock = new ManualClock(0);
  test.teardown(() => {
    guarded.closeIdle();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    attempt: () => {
      const { signal } = new AbortController();
      return attemptDelivery({ url, headers: {}, body: '{}' }, guarded, clock, signal);
    },
    pending: () => clock.pending,
    connections: () => connections,
    requests: () => requests,
  };
}

/** Complete answers with unusual bytes around them. `storedBody` is the part of the body that the gateway stores. */
const COMPLETE: readonly [name: string, bytes: string, status: number, storedBody: string][] = [
  ['a body after a 204', 'HTTP/1.1 204 No Content\r\n\r\nsurprise', 204, ''],
  ['a 204 that announces a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 8\r\n\r\nsurprise', 204, ''],
  ['more than was announced', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nsurprise', 200, 'su'],
  ['something after the last chunk', `HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n!`, 500, ''],
  [
    'informational answers before it',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${OK_ANSWER}`,
    200,
    'ok',
  ],
  ['trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n', 200, 'ok'],
  [
    'a switch to another protocol, which the gateway did not request',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    101,
    '',
  ],
];

t.test('a complete answer counts, whatever bytes are around it', async (t) => {
  for (const [name, bytes, status, storedBody] of COMPLETE)
    await t.test(name, async (t) => {
      const receiver = await rawReceiver(t, (socket) => socket.write(bytes));
      // The second request uses the same socket or a new one. It must not read bytes left from the first answer.
      for (const _ of [1, 2]) {
        const error = status < 300 && status >= 200 ? null : `the receiver answered ${status}`;
        t.match(await receiver.attempt(), { status, answer: storedBody, error });
      }
      t.equal(receiver.requests(), 2, 'each request was sent once');
      t.equal(receiver.pending(), 0, 'no time limit is left running');
    });
});

t.test('a closed idle socket is not a failure of the receiver', async (t) => {
  for (const close of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    // A connection closes at its second request, which the gateway then sends again on a new connection.
    const receiver = await rawReceiver(t, (socket, number) => (number === 1 ? socket.write(OK_ANSWER) : close(socket)));
    for (const connections of [1, 2, 3]) {
      t.match(await receiver.attempt(), { status: 200, error: null });
      t.equal(receiver.connections(), connections);
    }
    // All idle sockets may be closed at once, such as after a restart of the receiver.
    const firstResults = await Promise.all(Array.from({ length: 16 }, receiver.attempt));
    const secondResults = await Promise.all(Array.from({ length: 16 }, receiver.attempt));
    for (const result of [...firstResults, ...secondResults]) t.match(result, { status: 200 });
    t.equal(receiver.pending(), 0);
  }
});

t.test('a new connection that is cut off is a failure, and the request is sent once', async (t) => {
  const receiver = await rawReceiver(t, (socket) => socket.resetAndDestroy());
  t.match(await receiver.attempt(), { status: null, error: 'the receiver reset the connection' });
  t.equal(receiver.requests(), 1);
});

t.test('an answer that is cut off is a failure, also on an idle socket, and the request is not repeated', async (t) => {
  const receiver = await rawReceiver(t, (socket, number) => {
    if (number === 1) socket.write(OK_ANSWER);
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok');
  });
  t.match(await receiver.attempt(), { status: 200 });
  t.match(await receiver.attempt(), { status: null, error: 'the receiver reset the connection' });
  t.equal(receiver.requests(), 2);
});
