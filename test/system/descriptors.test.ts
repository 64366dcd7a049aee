/**
 * 400 locks connect to a gateway that may open only 200 files (quality.md §2, descriptors): operators can still
 * connect, locks are refused cleanly, nothing acknowledged is lost, and the gateway stops normally.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import { LOCKGATE, lockgateJson, Program } from '../helpers/cli/program.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { CONNACK_ACCEPTED, connectPacket, pubackHex, publishPacket, RawLock } from '../helpers/mqtt/raw-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const MAX_DESCRIPTORS = 200;
const LOCK_COUNT = 400;
/** More than {@link MAX_DESCRIPTORS}, so that the sockets of one port could use up all descriptors. */
const SILENT_SOCKETS_PER_PORT = 250;
/** CONNACK: server unavailable. */
const UNAVAILABLE = '20020003';

const skip = existsSync('/proc/self/fd') ? false : 'descriptors are counted in /proc, which only Linux has';

interface Setup {
  readonly serve: Program;
  readonly data: string;
  readonly port: number;
  readonly credentials: readonly { readonly user: string; readonly secret: string }[];
}

/** A `serve` with few descriptors on a folder where all the locks are registered. */
async function startServe(t: Test): Promise<Setup> {
  const data = tempFolder(t);
  const gateway = await openGateway(t, data);
  await gateway.accounts.addMerchant(MERCHANT);
  const macs = Array.from({ length: LOCK_COUNT }, (_, number) => testMac(number + 1));
  const { secrets } = await register(gateway.accounts, macs);
  await gateway.close();
  const flags = ['--data', data, '--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  const command = [process.execPath, LOCKGATE, 'serve', ...flags];
  const serve = new Program(t, 'sh', ['-c', `ulimit -n ${MAX_DESCRIPTORS}; exec "$@"`, 'sh', ...command]);
  const port = Number(/:(\d+)$/.exec(await serve.waitForLine(/mqtt:/))?.[1]);
  await serve.waitForLine(/Next:/);
  return { serve, data, port, credentials: macs.map((user, index) => ({ user, secret: secrets[index] as string })) };
}

type Accounts = Awaited<ReturnType<typeof openGateway>>['accounts'];

/** Registers locks. Returns their secrets, in the same order. */
async function register(accounts: Accounts, macs: readonly ReturnType<typeof testMac>[]) {
  const secrets = await Promise.all(macs.map(async (mac) => (await accounts.addDevice({ mac })).secret));
  return { secrets };
}

/** Connects with these credentials. `answer` is the CONNACK in hex, empty if the gateway just closed the connection. */
async function tryConnect(
  t: Test,
  port: number,
  credential: Setup['credentials'][number],
): Promise<{ lock: RawLock; answer: string }> {
  const lock = await RawLock.open(t, port);
  lock.write(connectPacket(credential));
  return { lock, answer: await lock.waitForAnswer() };
}

t.test('a gateway with 200 descriptors and 400 locks serves operators and loses no ping', { skip }, async (t) => {
  const { serve, data, port, credentials } = await startServe(t);
  t.match(await serve.waitForLine(/descriptors/, 'stderr'), /400 locks .* 200 .*ulimit -n/s, 'the start warns');
  const attempts = await Promise.all(credentials.map((credential) => tryConnect(t, port, credential)));
  const connected = attempts.filter(({ answer }) => answer === CONNACK_ACCEPTED).map(({ lock }) => lock);
  t.ok(
    connected.length >= MAX_DESCRIPTORS / 2 && connected.length < MAX_DESCRIPTORS,
    `${connected.length} locks are connected`,
  );
  // A single lock that connects later, not in a burst, gets an MQTT refusal.
  const late = await tryConnect(t, port, credentials[0] as Setup['credentials'][number]);
  t.ok([UNAVAILABLE, CONNACK_ACCEPTED].includes(late.answer), `the next lock receives ${JSON.stringify(late.answer)}`);
  for (const [index, lock] of connected.entries()) lock.write(publishPacket('up', testBytes(1), index + 1));
  for (const [index, lock] of connected.entries()) await lock.waitForHex(pubackHex(index + 1));

  const listCommand = ['device', 'list', '--limit', '1000', '--data', data];
  const { devices } = await lockgateJson<{ readonly devices: readonly unknown[] }>(listCommand);
  t.equal(devices.length, LOCK_COUNT, 'operators can connect');
  const { body } = await callOperator(data, '/status');
  const { open, limit } = (body as { readonly descriptors: Figures }).descriptors;
  t.equal(limit, MAX_DESCRIPTORS);
  // The locks' sockets and the gateway's files use most descriptors; the gateway reserves 32.
  t.ok(open > MAX_DESCRIPTORS * 0.7 && open <= MAX_DESCRIPTORS, `${open} descriptors are open`);
  const { text: figures } = await callOperator(data, '/metrics');
  t.match(figures, new RegExp(`^process_max_fds ${MAX_DESCRIPTORS}$`, 'm'));
  // From 140 to 199.
  t.match(figures, /^process_open_fds 1[4-9]\d$/m);
  const { notices } = await lockgateJson<{ readonly notices: readonly Notice[] }>(['notices', '--data', data]);
  const [notice] = notices.filter(({ kind }) => kind === 'descriptors');
  t.match(notice, { resolved_at: null, text: /^of the 200 descriptors/ });

  for (const { lock } of [...attempts, late]) lock.socket.destroy();
  await serve.waitForLine(/descriptors.*again|again.*descriptors/, 'stderr');
  const reconnected = await Promise.all(
    credentials.slice(0, MAX_DESCRIPTORS / 4).map((credential) => tryConnect(t, port, credential)),
  );
  t.ok(
    reconnected.every(({ answer }) => answer === CONNACK_ACCEPTED),
    'locks can connect again',
  );
  for (const { lock } of reconnected) lock.socket.destroy();
  serve.kill('SIGTERM');
  t.match(await serve.waitForExit(), { code: 0 });
  const gateway = await openGateway(t, data);
  const merchantId = 1;
  t.equal(
    (await gateway.store.readEvents(merchantId, LOG_START, LOCK_COUNT)).length,
    connected.length,
    'every acknowledged ping is stored',
  );
});

t.test('operators can connect although silent sockets fill both ports', { skip }, async (t) => {
  const { serve, data, port } = await startServe(t);
  const httpPort = Number(/:(\d+)/.exec((await serve.waitForLine(/http:/)).split('http:')[1] ?? '')?.[1]);
  t.ok(httpPort > 0, `merchants call port ${httpPort}`);
  const silentSockets = await Promise.all(
    Array.from({ length: 2 * SILENT_SOCKETS_PER_PORT }, (_, index) =>
      RawLock.open(t, index % 2 === 0 ? port : httpPort),
    ),
  );
  const calls = [];
  for (let each = 0; each < 5; each += 1) calls.push((await callOperator(data, '/status').catch(failedCall)).status);
  t.same(calls, Array(5).fill(200), 'every call is answered');
  for (const { socket } of silentSockets) socket.destroy();
  serve.kill('SIGTERM');
  t.match(await serve.waitForExit(), { code: 0 });
});

/** A call that got no answer, with the error as its status, so that the comparison shows it. */
function failedCall(error: Error): { readonly status: string } {
  return { status: error.message };
}

interface Figures {
  readonly open: number;
  readonly limit: number;
}

interface Notice {
  readonly kind: string;
  readonly resolved_at: string | null;
}

/** A call of the operators' interface of the gateway that runs on this data folder. */
async function callOperator(data: string, urlPath: string) {
  const text = (name: string): string => readFileSync(path.join(data, name), 'utf8').trim();
  const operatorPort = Number(new URL(text('operator-address')).port);
  return await callMerchantApi({ httpPort: operatorPort }, urlPath, { token: text('operator-token') });
}
