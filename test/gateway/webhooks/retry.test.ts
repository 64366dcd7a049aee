/**
 * The retry schedule (interfaces.md §3) for each way in which a receiver can fail. The clock is manual, so the test
 * waits in real time only for the network.
 */
import type { ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  setUpWebhooks,
  type WebhookSetup,
} from '../../helpers/gateway/webhook-setup.js';
import { testCertificate } from '../../helpers/mqtt/test-certificates.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/** The waits after each failed attempt (docs/webhooks.md, "Answer"); after the last attempt the delivery is dead. */
const WAITS = [Seconds(5), Minutes(5), Minutes(30), Hours(2), Hours(5), Hours(10), Hours(10)];
const MAC = testMac();
/** The time limit of an attempt (docs/webhooks.md, "Answer"). */
const ATTEMPT_LIMIT = Seconds(15);
const GIGABYTE = 1e9;

/** A way in which a receiver can fail. */
interface FailureCase {
  readonly name: string;
  readonly answer: Answer;
  readonly status: number | null;
  readonly error: RegExp;
  /** The waits, if they differ from the schedule. */
  readonly waits?: readonly number[];
  /** Called during an attempt: advances the clock to the attempt's end. */
  readonly duringAttempt?: (setup: WebhookSetup) => void;
}

/** The responses of the receiver that writes a byte a second, while they are open. */
const openResponses = new Set<ServerResponse>();

/** Advances the clock to the attempt's time limit. @throws Error if the attempt ends before */
function passLimit({ clock }: WebhookSetup): void {
  clock.advance(ATTEMPT_LIMIT - 1);
  if (clock.pending === 0) throw new Error('the attempt was cut before its time');
  clock.advance(1);
}

/** Writes a byte a second until the attempt's time limit. */
function dripUntilLimit({ clock }: WebhookSetup): void {
  for (let second = 1; second <= 15; second++) {
    for (const response of openResponses) response.write('x');
    clock.advance(Seconds(1));
  }
}

/** Writes a gigabyte, as long as the client reads. */
function flood(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  let remainingBytes = GIGABYTE;
  const writeUntilFull = (): void => {
    while (!response.destroyed && remainingBytes > 0) {
      remainingBytes -= chunk.length;
      if (!response.write(chunk)) return;
    }
  };
  response.on('drain', writeUntilFull);
  writeUntilFull();
}

const FAILURE_CASES: readonly FailureCase[] = [
  {
    name: '500',
    answer: (_request, response) => void response.writeHead(500).end('sorry'),
    status: 500,
    error: /answered 500/,
  },
  {
    name: '503 with a Retry-After of ten minutes',
    answer: (_request, response) => void response.writeHead(503, { 'retry-after': '600' }).end(),
    status: 503,
    error: /answered 503/,
    waits: WAITS.map((wait) => Math.max(wait, Minutes(10))),
  },
  {
    name: 'a redirect',
    answer: (_request, response) => void response.writeHead(301, { location: '/elsewhere' }).end(),
    status: 301,
    error: /answered 301/,
  },
  {
    name: 'no answer',
    answer: () => undefined,
    status: null,
    error: /no complete answer within 15 s/,
    duringAttempt: passLimit,
  },
  {
    name: 'a reset',
    answer: (_request, response) => void response.socket?.resetAndDestroy(),
    status: null,
    error: /reset/,
  },
  {
    name: 'a 500 with a gigabyte of body',
    answer: (_request, response) => {
      response.writeHead(500, { 'content-length': String(GIGABYTE) });
      flood(response);
    },
    status: 500,
    error: /answered 500/,
  },
  {
    name: 'a byte a second',
    answer: (_request, response) => {
      response.writeHead(200);
      response.write('x');
      openResponses.add(response);
      response.on('close', () => openResponses.delete(response));
    },
    status: null,
    error: /no complete answer within 15 s/,
    duringAttempt: dripUntilLimit,
  },
];

for (const failure of FAILURE_CASES) {
  t.test(`the retry schedule is followed if the answer is ${failure.name}`, async (t) => {
    const setup = await setUpWebhooks(t);
    const { clock, gateway, receiver } = setup;
    receiver.answer = failure.answer;
    const waits = failure.waits ?? WAITS;
    const lock = await connectedLock(t, gateway, MAC);
    let attempted = waitForEvents(gateway, 'delivery', 1);
    await lock.send(testBytes(1));
    // After the last attempt there is no wait.
    for (const [index, wait] of [...waits, null].entries()) {
      const number = index + 1;
      await receiver.waitForRequests(number);
      failure.duringAttempt?.(setup);
      const outcome = wait === null ? 'dead' : 'pending';
      const nextAttemptAtMs = wait === null ? null : clock.now() + wait;
      t.match(await attempted, [{ number, status: failure.status, error: failure.error, outcome, nextAttemptAtMs }]);
      if (wait === null) break;
      attempted = waitForEvents(gateway, 'delivery', 1);
      await eventually('the retry is planned', () => clock.nextDueMs === nextAttemptAtMs);
      clock.advance(wait - 1);
      t.equal(receiver.requests.length, number, 'no attempt is made earlier');
      clock.advance(1);
    }
    t.equal(receiver.requests.length, 8, 'there is no ninth attempt');
    await eventually('nothing is planned any more', () => clock.pending === 0);
    await eventually('nothing is held open', () => openResponses.size === 0);
  });
}

t.test('each wait varies randomly by at most a tenth', async (t) => {
  for (const [random, factor] of [
    [0, 0.9],
    [0.999999999, 1.1],
  ] as const) {
    const { clock, gateway, receiver } = await setUpWebhooks(t, {}, { random: () => random });
    receiver.answer = (_request, response) => void response.writeHead(500).end();
    const lock = await connectedLock(t, gateway, MAC);
    const waitsMs: number[] = [];
    gateway.events.on('delivery', ({ nextAttemptAtMs }) => waitsMs.push((nextAttemptAtMs ?? 0) - clock.now()));
    await lock.send(testBytes(1));
    for (let retry = 1; retry <= 7; retry++) {
      await eventually('an attempt', () => waitsMs.length === retry);
      await advanceToNextTimer(clock);
    }
    await eventually('the last one', () => waitsMs.length === 8);
    t.same(
      waitsMs.slice(0, 7),
      WAITS.map((wait) => Math.round(wait * factor)),
    );
  }
});

t.test('a 410 makes the delivery dead and disables the URL', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const lock = await connectedLock(t, gateway, MAC);
  const disabled = waitForEvents(gateway, 'url-disabled', 1);
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  t.match(await attempted, [{ number: 1, status: 410, outcome: 'dead', nextAttemptAtMs: null }]);
  t.match(await disabled, [{ urlId, why: /410/ }]);
  t.match(await gateway.store.webhooks.find(urlId), { state: 'disabled' });
  clock.advance(Hours(48));
  await lock.send(testBytes(2));
  t.equal(receiver.requests.length, 1, 'nothing is sent after the 410');
  t.equal(clock.pending, 0, 'nothing is planned');
});

t.test('a 200 with a gigabyte of body is cut off and counts as a success', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const closed = new Promise<number>((resolve) => {
    receiver.answer = (_request, response) => {
      const { socket } = response;
      response.writeHead(200, { 'content-length': String(GIGABYTE) });
      response.on('close', () => resolve(socket?.bytesWritten ?? 0));
      flood(response);
    };
  });
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await (await connectedLock(t, gateway, MAC)).send(testBytes(1));
  t.match(await attempted, [{ number: 1, status: 200, outcome: 'delivered' }]);
  t.ok((await closed) < GIGABYTE / 20, 'only the buffers of two sockets were sent, not a gigabyte');
});

t.test('the retry schedule is followed if TLS fails: an untrusted certificate, and a server without TLS', async (t) => {
  for (const open of [startSelfSigned, startWithoutTls]) {
    const { clock, gateway, urlId } = await setUpWebhooks(t);
    const server = await open(t);
    await gateway.webhooks.settings.set(urlId, { url: server.url });
    const lock = await connectedLock(t, gateway, MAC);
    let attempted = waitForEvents(gateway, 'delivery', 1);
    await lock.send(testBytes(1));
    for (const [index, wait] of [...WAITS, null].entries()) {
      const outcome = wait === null ? 'dead' : 'pending';
      const nextAttemptAtMs = wait === null ? null : clock.now() + wait;
      t.match(await attempted, [{ number: index + 1, status: null, error: server.error, outcome, nextAttemptAtMs }]);
      if (wait === null) break;
      attempted = waitForEvents(gateway, 'delivery', 1);
      await advanceToNextTimer(clock);
    }
    t.equal(server.requests(), 0, 'no request was sent');
  }
});

/** A receiver to which no TLS connection succeeds. */
interface FailingServer {
  readonly url: string;
  /** The error of an attempt at it. */
  readonly error: RegExp;
  readonly requests: () => number;
}

/** Its certificate is signed by no authority. */
async function startSelfSigned(test: Teardown): Promise<FailingServer> {
  let requests = 0;
  const certificate = await testCertificate();
  const server = createTlsServer(certificate, (_request, response) => {
    requests += 1;
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return { url, error: /self-signed certificate/, requests: () => requests };
}

/** Its URL says https, but it speaks plain HTTP. */
async function startWithoutTls(test: Teardown): Promise<FailingServer> {
  const receiver: TestReceiver = await testReceiver(test);
  const url = receiver.url.replace('http:', 'https:');
  return { url, error: /./, requests: () => receiver.requests.length };
}
