/**
 * Commands to locks (protocol.md §1, interfaces.md §2): how they are queued, sent, repeated, answered and expired, in
 * every state of the lock, on a manual clock. `CommandSetup` is a gateway's command queue without MQTT, with a lock
 * that the test acts for. `takeSent` returns the ids of the commands that the gateway has sent since its last call.
 */
import t from 'tap';
import { eventLine } from '../../../cli/commands/tail/event-line.js';
import { readCommandRequest } from '../../../gateway/commands/command-input.js';
import { listenToAll } from '../../../gateway/http/operator/json/event.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { CommandSetup, START_MS } from '../../helpers/commands/command-setup.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { testBytes } from '../../helpers/gateway/test-gateway.js';

/** protocol.md §1: the commands, and how long each is valid by default. */
const COMMANDS = [
  ['unlock', {}, Minutes(2)],
  ['lock', {}, Minutes(2)],
  ['siren', { seconds: 30 }, Minutes(2)],
  ['locate-gps', {}, Hours(24)],
  ['locate-cell', {}, Hours(24)],
  ['set-power', { mode: 'HIGH' }, Hours(24)],
  ['reset', {}, Hours(24)],
] as const;

t.test('a command is queued, sent and answered, with the times of each', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  const answers = [
    ['ok', '', 'done'],
    ['rejected', 'expired', 'rejected'],
    ['failed', 'no fix', 'failed'],
  ] as const;
  for (const [result, detail, state] of answers) {
    const { id } = await setup.command(lock, 'locate-gps', { asked_by: 'ann' });
    const times = { createdAtMs: setup.clock.now(), firstSentAtMs: null, finishedAtMs: null };
    t.match(await setup.store.commands.find(id), { state: 'queued', sentCount: 0, askedBy: 'ann', ...times });
    await setup.advance(Seconds(5));
    await setup.connectAndPing(lock);
    const sentAt = setup.clock.now();
    t.match(setup.sent, [{ mac: lock.mac, downlink: { id, command: { type: 'locate-gps' } } }]);
    t.match(await setup.store.commands.find(id), { state: 'sent', sentCount: 1, firstSentAtMs: sentAt });
    await setup.advance(Seconds(5));
    await setup.ack(lock, id, result, detail);
    t.match(await setup.store.commands.find(id), { state, detail, sentCount: 1, finishedAtMs: setup.clock.now() });
    t.same(setup.takeReported(), [`${id} queued`, `${id} sent`, `${id} ${state}`]);
    t.same(setup.takeSent(), [id], 'it is not sent again');
    await setup.loseConnection(lock);
  }
});

t.test('every command is sent with its parameters, and expires after its default time', async (t) => {
  for (const [type, parameters, lifetime] of COMMANDS) {
    const setup = await CommandSetup.open(t);
    const lock = await setup.lock();
    await setup.connectAndPing(lock);
    const { id } = await setup.command(lock, type, { parameters });
    t.match(setup.sent, [{ downlink: { id, expiresMs: START_MS + lifetime, command: { type, ...parameters } } }], type);
    setup.takeSent();
    await setup.loseConnection(lock);
    const unsent = await setup.command(lock, type, { parameters });
    await setup.advance(lifetime - 1);
    t.equal((await setup.store.commands.find(unsent.id))?.state, 'queued', `${type} is valid until then`);
    await setup.advance(1);
    t.equal((await setup.store.commands.find(id))?.state, 'expired', `${type}, sent and not answered`);
    t.match(await setup.store.commands.find(unsent.id), { state: 'expired', finishedAtMs: START_MS + lifetime }, type);
    await setup.connectAndPing(lock);
    t.same(setup.takeSent(), [], `an expired ${type} is not sent`);
    t.same(setup.takeReported(), [
      `${id} queued`,
      `${id} sent`,
      `${unsent.id} queued`,
      `${id} expired`,
      `${unsent.id} expired`,
    ]);
  }
});

t.test('a lock gets commands one at a time, in the order of their requests', async (t) => {
  const setup = await CommandSetup.open(t);
  const [lock, other] = [await setup.lock(1), await setup.lock(2)];
  for (const type of ['unlock', 'lock', 'reset']) await setup.command(lock, type);
  await setup.command(other, 'reset');
  await setup.connectAndPing(lock);
  t.same(setup.takeSent(), [1]);
  await setup.ping(lock);
  t.same(setup.takeSent(), [], 'another uplink is no answer');
  await setup.ack(lock, 1);
  t.same(setup.takeSent(), [2]);
  await setup.advance(Minutes(2));
  t.same(setup.takeSent().at(-1), 3, 'after command 2 was repeated and has expired, the next one is sent');
  await setup.connectAndPing(other);
  t.same(setup.takeSent(), [4], 'another lock has another queue');
});

t.test('an unanswered command is sent again under its id, on the next connection and on a silent one', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.command(lock, 'reset');
  await setup.command(lock, 'locate-gps');
  await setup.connectAndPing(lock);
  await setup.loseConnection(lock);
  await setup.connectAndPing(lock);
  await setup.connect(lock);
  await setup.ping(lock);
  t.same(
    setup.takeSent(),
    [1, 1, 1],
    'the unfinished command first, whether or not the end of the old connection was reported',
  );
  await setup.advance(Seconds(30) - 1);
  t.same(setup.takeSent(), []);
  await setup.advance(1);
  t.same(setup.takeSent(), [1], 'after 30 s');
  await setup.advance(Seconds(59));
  t.same(setup.takeSent(), []);
  await setup.advance(Seconds(1));
  t.same(setup.takeSent(), [1], 'after twice as long');
  t.match(await setup.store.commands.find(1), { state: 'sent', sentCount: 5, firstSentAtMs: START_MS });
  await setup.ack(lock, 1);
  t.same(setup.takeSent(), [2]);
  await setup.advance(Seconds(149));
  t.same(
    setup.takeSent(),
    [],
    'a lock that searches for a GPS fix may take 120 s longer before the command is repeated',
  );
  await setup.advance(Seconds(1));
  t.same(setup.takeSent(), [2]);
  const reported = setup.takeReported().filter((line) => line.startsWith('1 '));
  t.same(reported, ['1 queued', ...Array(5).fill('1 sent'), '1 done']);
});

t.test('a lock whose first uplink on a connection shows a low battery gets no command', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  const record = await setup.command(lock, 'reset');
  t.match(setup.commands.waitOf(record), { for: 'connection', text: 'lock has never connected' });
  await setup.connect(lock);
  t.same(setup.takeSent(), [], 'it waits for the first uplink');
  await setup.ping(lock, 9);
  await setup.advance(Minutes(5));
  t.same(setup.takeSent(), []);
  t.match(setup.commands.waitOf(record), { for: 'low-battery', text: 'low battery' });
  await setup.ping(lock, 10);
  t.same(setup.takeSent(), [1], 'exactly 10 % is not low');
  await setup.ping(lock, 9);
  await setup.loseConnection(lock);
  await setup.connect(lock);
  await setup.advance(Seconds(10));
  t.same(setup.takeSent(), [], 'a command that was sent before waits too');
  await setup.ping(lock, 55);
  t.same(setup.takeSent(), [1]);
});

t.test('a lock that connects and sends nothing gets its command after a second', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.command(lock, 'reset');
  await setup.connect(lock);
  await setup.advance(Seconds(1) - 1);
  t.same(setup.takeSent(), []);
  await setup.advance(1);
  t.same(setup.takeSent(), [1]);
  await setup.ack(lock, 1);
  await setup.command(lock, 'reset');
  t.same(setup.takeSent(), [2], 'the next command is sent at once');
});

t.test('nothing is sent to a lock in airplane mode, nor to a phone', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.connectAndPing(lock);
  await setup.ping(lock, 80, { ...DEFAULT_POWER, airplane: true });
  const record = await setup.command(lock, 'unlock');
  t.match(setup.commands.waitOf(record), { for: 'airplane' });
  t.same(setup.takeSent(), []);
  await setup.ping(lock);
  t.same(setup.takeSent(), [1], 'airplane mode was switched off at the lock');

  const phone = await setup.lock(2, 'phone');
  await setup.command(phone, 'unlock');
  await setup.connect(phone);
  await setup.ping(phone);
  await setup.advance(Seconds(10));
  t.same(setup.takeSent(), [], 'a phone’s connection gets no command');
  await setup.ack(phone, 2);
  t.equal((await setup.store.commands.find(2))?.state, 'queued', 'a phone can’t answer a command');
});

t.test('only the first answer of the lock that got a command counts', async (t) => {
  const setup = await CommandSetup.open(t);
  const [lock, other] = [await setup.lock(1), await setup.lock(2)];
  await setup.command(lock, 'unlock');
  await setup.command(lock, 'reset');
  await setup.connectAndPing(lock);
  await setup.connectAndPing(other);
  setup.takeReported();
  await setup.ack(other, 1);
  await setup.ack(lock, 99);
  await setup.ack(lock, 2);
  t.same(setup.takeReported(), [
    '1 stray: it is for another lock',
    '99 stray: there is no such command',
    '2 stray: it was never sent',
  ]);
  t.match(await setup.store.commands.find(1), { state: 'sent' });
  t.match(await setup.store.commands.find(2), { state: 'queued' });
  await setup.ack(lock, 1);
  const finishedAtMs = setup.clock.now();
  await setup.advance(Seconds(1));
  await setup.ack(lock, 1, 'failed', 'again');
  // A ping with the sequence number of the last answer, but other content.
  await setup.take(lock, testBytes(lock.sequence, { timeMs: 5 }));
  t.match(await setup.store.commands.find(1), { state: 'done', detail: '', finishedAtMs }, 'the first answer counts');
  t.same(setup.takeReported(), ['1 done', '2 sent']);
});

/** The length of the time and the MAC at the start of a line of `tail`. */
const TIME_AND_MAC_LENGTH = '12:00:00 A4:C1:38:00:00:01 '.length;

t.test('tail shows each change of a command, and stray answers', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  const lines: string[] = [];
  listenToAll(setup.events, (event) => {
    if (event.event === 'command' || event.event === 'stray-ack')
      lines.push(eventLine(event).slice(TIME_AND_MAC_LENGTH));
  });
  await setup.command(lock, 'siren', { parameters: { seconds: 9 } });
  await setup.connectAndPing(lock);
  await setup.connectAndPing(lock);
  await setup.ack(lock, 1, 'failed', 'broken');
  await setup.ack(lock, 8);
  t.same(lines, [
    'cmd   command 1 siren seconds=9: queued',
    'cmd   command 1 siren seconds=9: sent',
    'cmd   command 1 siren seconds=9: sent, attempt 2',
    'cmd   command 1 siren seconds=9: failed',
    'ack   command 8 acknowledged: there is no such command',
  ]);
});

t.test('an answer that comes after the expiry still counts', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.command(lock, 'unlock');
  await setup.connectAndPing(lock);
  await setup.loseConnection(lock);
  await setup.advance(Minutes(3));
  t.equal((await setup.store.commands.find(1))?.state, 'expired');
  await setup.connect(lock);
  await setup.ack(lock, 1);
  t.match(await setup.store.commands.find(1), { state: 'done', finishedAtMs: START_MS + Minutes(3) });
  t.same(setup.takeReported(), ['1 queued', '1 sent', '1 expired', '1 done']);
});

t.test('a restart loses no command, and no id is used twice', async (t) => {
  const first = await CommandSetup.open(t);
  const lock = await first.lock();
  for (const type of ['reset', 'unlock', 'locate-cell']) await first.command(lock, type);
  const laterDate = new Date(START_MS + Hours(2)).toISOString();
  await first.command(lock, 'siren', { parameters: { seconds: 5 }, not_before: laterDate });
  await first.connectAndPing(lock);
  t.same(first.takeSent(), [1]);
  await first.close();
  await first.clock.advance(Minutes(3));

  const second = await CommandSetup.open(t, first);
  await second.settle();
  t.same(second.takeReported(), ['2 expired'], 'a command whose time passed meanwhile expires');
  await second.connectAndPing(lock);
  t.same(second.takeSent(), [1], 'the unanswered command is sent again under its id');
  await second.ack(lock, 1);
  t.same(second.takeSent(), [3]);
  await second.ack(lock, 3);
  await second.close();

  const third = await CommandSetup.open(t, first);
  await third.connectAndPing(lock);
  t.same(third.takeSent(), [], 'an answered command is not sent again');
  t.equal((await third.command(lock, 'reset')).id, 5);
  await third.ack(lock, 5);
  await third.advance(START_MS + Hours(2) - third.clock.now());
  t.same(third.takeSent(), [5, 4], 'a scheduled command is sent at its time');
});

t.test('while the store fails, no command is sent and no answer is acknowledged', async (t) => {
  let fails = false;
  const wrap = (store: Store): Store =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (fails) throw new Error('disk full');
        return await store.append(commit);
      },
    });
  const setup = await CommandSetup.open(t, undefined, wrap);
  const lock = await setup.lock();
  await setup.connectAndPing(lock);
  const failed = new Promise<void>((resolve) => setup.events.once('store-failed', () => resolve()));
  fails = true;
  const request = setup.commands.send(readCommandRequest({ macs: [lock.mac], type: 'reset' }, setup.clock.now()));
  await request;
  await failed;
  t.same(setup.sent, [], 'a command is not sent before it is stored as sent');
  fails = false;
  setup.clock.advance(Seconds(1));
  await setup.settle();
  t.same(setup.takeSent(), [1]);
  fails = true;
  await t.rejects(setup.ack(lock, 1), /disk full/);
  fails = false;
  setup.clock.advance(Seconds(1));
  await setup.settle();
  t.match(await setup.store.commands.find(1), { state: 'sent' });
  // The lock sends the same uplink again.
  lock.sequence -= 1;
  await setup.ack(lock, 1);
  t.match(await setup.store.commands.find(1), { state: 'done' }, 'the lock repeats its answer');
});
