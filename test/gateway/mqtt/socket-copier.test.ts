/** Copies of a listening socket, by which a listener accepts several connections in one turn of the event loop. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { Listener } from '../../../gateway/mqtt/listener.js';
import { ProxiedConnections } from '../../../gateway/mqtt/proxied-connections.js';
import { SocketCopier } from '../../../gateway/mqtt/socket-copier.js';
import { afterThisTurn, systemClock } from '../../../proto/clock.js';

const CLIENTS = 64;
/** The listener's own socket and its seven copies. */
const AT_ONCE = 8;

/** A program that connects so many times, and ends once all are connected. */
const CONNECT = `const [port, count] = process.argv.slice(1).map(Number);
let connected = 0;
for (let index = 0; index < count; index += 1)
  require('node:net').connect(port, '127.0.0.1', () => (connected += 1) === count && process.exit());`;

/** Listens, and counts the connections of each turn of the event loop. */
async function listen(t: Test, copier: SocketCopier) {
  let ofThisTurn = 0;
  const listener = await Listener.start({
    host: '127.0.0.1',
    port: 0,
    proxied: new ProxiedConnections({ trusts: () => false, clock: systemClock, onRefused: () => undefined }),
    onConnection: ({ raw }) => {
      ofThisTurn += 1;
      raw.on('error', () => undefined).destroy();
    },
  });
  t.teardown(() => listener.close());
  await listener.copySocket(copier);
  const perTurn = async (): Promise<number[]> => {
    // The event loop stands still meanwhile, as in a long turn.
    spawnSync(process.execPath, ['-e', CONNECT, String(listener.port), String(CLIENTS)]);
    const counts: number[] = [];
    for (let sum = 0; sum < CLIENTS; sum += ofThisTurn) {
      ofThisTurn = 0;
      await new Promise<void>((resolve) => afterThisTurn(resolve));
      counts.push(ofThisTurn);
    }
    return counts;
  };
  return { listener, perTurn };
}

t.test('several connections are accepted in one turn', async (t) => {
  const copier = new SocketCopier();
  const { perTurn } = await listen(t, copier);
  copier.close();
  t.ok(Math.max(...(await perTurn())) >= AT_ONCE);
});

t.test('so they are by a second listener, as by the one over TLS', async (t) => {
  const copier = new SocketCopier();
  const listeners = [await listen(t, copier), await listen(t, copier)];
  copier.close();
  for (const { perTurn } of listeners) t.ok(Math.max(...(await perTurn())) >= AT_ONCE);
});

t.test('without the other process a listener works as well', async (t) => {
  const copier = new SocketCopier();
  copier.close();
  const { perTurn } = await listen(t, copier);
  const counts = await perTurn();
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    CLIENTS,
  );
});

t.test('where no other process can be started, there are no copies', async (t) => {
  const { execPath } = process;
  process.execPath = '/nowhere/node';
  const copier = new SocketCopier();
  process.execPath = execPath;
  const { perTurn } = await listen(t, copier);
  copier.close();
  t.ok((await perTurn()).length > 0);
});

t.test('a closed listener accepts nothing, at no copy of its socket', async (t) => {
  const copier = new SocketCopier();
  const { listener } = await listen(t, copier);
  copier.close();
  const { port } = listener;
  await listener.close();
  const answer = await new Promise<unknown>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve('accepted'));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
    t.teardown(() => socket.destroy());
  });
  t.equal(answer, 'ECONNREFUSED');
});
