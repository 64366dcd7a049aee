/**
 * What the gateway tells systemd: its messages one after another, its signs of life, and all of them through the real
 * `systemd-notify` to a socket of the kind that systemd has.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import t from 'tap';
import { type ManagerMessage, ServiceManager } from '../../cli/commands/serve/service-manager.js';
import { afterThisTurn, ManualClock, Seconds } from '../../proto/clock.js';
import { Program } from '../helpers/cli/program.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const PATIENCE = Seconds(60);
const WATCHED = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: String(PATIENCE * 1000), WATCHDOG_PID: '7' };

/** A manager whose messages are collected, and end only when the test lets them. */
function collectingManager(environment: Record<string, string>) {
  const clock = new ManualClock();
  const sent: ManagerMessage[] = [];
  const waiting: ((error?: Error) => void)[] = [];
  const faults: string[] = [];
  const manager = new ServiceManager({
    environment,
    clock,
    pid: 7,
    onFailure: ({ message }) => void faults.push(message),
    send: (message) => {
      sent.push(message);
      return new Promise((resolve, reject) => waiting.push((error) => (error ? reject(error) : resolve())));
    },
  });
  /** Ends the oldest message that is being sent. */
  const end = async (error?: Error): Promise<void> => {
    waiting.shift()?.(error);
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  };
  return { clock, manager, sent, faults, end };
}

t.test('a message waits for the end of the one before, and a failure is reported once', async (t) => {
  const { manager, sent, faults, end } = collectingManager({ NOTIFY_SOCKET: 'x' });
  const told = [manager.reloading(), manager.ready(), manager.stopping()];
  await end();
  t.same(sent, ['RELOADING=1']);
  await end(new Error('no such program'));
  t.same(sent, ['RELOADING=1', 'READY=1']);
  await end(new Error('still none'));
  await end();
  await Promise.all(told);
  t.same(sent, ['RELOADING=1', 'READY=1', 'STOPPING=1']);
  t.same(faults, ['no such program']);
});

t.test('signs of life come from ready to stopping, three in the watchdog’s time', async (t) => {
  const { clock, manager, sent, end } = collectingManager(WATCHED);
  clock.advance(PATIENCE);
  t.same(sent, [], 'systemd waits for them only once the gateway is ready');
  void manager.ready();
  void manager.ready();
  for (let third = 0; third < 4; third += 1) {
    await end();
    clock.advance(PATIENCE / 3);
  }
  await end();
  t.same(sent, ['READY=1', 'READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1'].slice(0, sent.length));
  t.ok(sent.filter((message) => message === 'WATCHDOG=1').length >= 2);
  void manager.stopping();
  clock.advance(PATIENCE * 3);
  for (let each = 0; each < 9; each += 1) await end();
  t.equal(sent.at(-1), 'STOPPING=1');
  t.equal(sent.filter((message) => message === 'WATCHDOG=1').length, 4);
});

t.test('no message is sent without a socket, and no sign of life if systemd watches another process', async (t) => {
  const { NOTIFY_SOCKET: _, ...unheard } = WATCHED;
  for (const environment of [unheard, { ...WATCHED, NOTIFY_SOCKET: '' }]) {
    const { clock, manager, sent } = collectingManager(environment);
    await Promise.all([manager.ready(), manager.reloading(), manager.stopping()]);
    clock.advance(PATIENCE);
    t.same(sent, []);
  }
  for (const change of [{ WATCHDOG_PID: '8' }, { WATCHDOG_USEC: '0' }, { WATCHDOG_USEC: 'soon' }]) {
    const { clock, manager, sent, end } = collectingManager({ ...WATCHED, ...change });
    void manager.ready();
    await end();
    clock.advance(PATIENCE);
    await end();
    t.same(sent, ['READY=1'], JSON.stringify(change));
  }
});

/** Listens like systemd and prints each message; the descriptor that comes with BARRIER is closed by not taking it. */
const LISTENER = `
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
print('listening', flush=True)
while True:
    print(listener.recv(4096).decode().replace('\\n', ' '), flush=True)
`;

const MISSING = ['systemd-notify', 'python3'].filter((name) => spawnSync(name, ['--version']).error !== undefined);
const skip = MISSING.length > 0 ? `${MISSING.join(', ')} not installed` : false;

t.test('systemd hears when serve is ready, rereads, lives and stops', { skip }, async (t) => {
  const socket = path.join(tempFolder(t), 'notify');
  const listener = new Program(t, 'python3', ['-c', LISTENER, socket]);
  await listener.waitForLine(/listening/);
  const messages = (): string[] => listener.stdout.filter((line) => /^(READY|RELOADING|STOPPING)/.test(line));
  const gateway = await ServeProgram.start(t, tempFolder(t), { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '300000' });
  await listener.waitForLine(/^READY=1$/);
  await listener.waitForLines(/^WATCHDOG=1$/, 2);
  gateway.program.kill('SIGHUP');
  await listener.waitUntil(() => messages().length === 3);
  gateway.program.kill('SIGTERM');
  t.same(await gateway.program.waitForExit(), { code: 0, signal: null });
  await listener.waitUntil(() => messages().length === 4);
  t.same(messages(), ['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1']);
  t.notMatch(gateway.program.stderr.join('\n'), /service-manager/);
});

t.test('a gateway whose messages nobody takes runs on, and says so once', { skip }, async (t) => {
  const socket = path.join(tempFolder(t), 'nobody');
  const gateway = await ServeProgram.start(t, tempFolder(t), { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '300000' });
  await gateway.program.waitForLine(/service-manager/, 'stderr');
  gateway.program.kill('SIGTERM');
  t.same(await gateway.program.waitForExit(), { code: 0, signal: null });
  t.equal(gateway.program.stderr.filter((line) => /service-manager/.test(line)).length, 1);
});
