/**
 * Commands: how they are queued, sent, repeated, answered and expired, in every state of the lock, on a manual clock.
 */
import t from 'tap';
import { eventLine } from '../../../cli/commands/tail/event-line.js';
import { type CommandRequest, readCommandRequest } from '../../../gateway/commands/command-input.js';
import { MAX_WAITING_PER_LOCK } from '../../../gateway/commands/command-terms.js';
import { readTwin } from '../../../gateway/commands/twin.js';
import { listenToAll } from '../../../gateway/http/operator/json/event.js';
import type { Commit, Store } from '../../../gateway/store/contract/store.js';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { CommandBench, START_MS } from '../../helpers/commands/command-bench.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';

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
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  const answers = [
    ['ok', '', 'done'],
    ['rejected', 'expired', 'rejected'],
    ['failed', 'no fix', 'failed'],
  ] as const;
  for (const [result, detail, state] of answers) {
    const { id } = await bench.command(lock, 'locate-gps', { asked_by: 'ann' });
    const times = { createdAtMs: bench.clock.now(), firstSentAtMs: null, finishedAtMs: null };
    t.match(await bench.store.commands.find(id), { state: 'queued', sentCount: 0, askedBy: 'ann', ...times });
    await bench.pass(Seconds(5));
    await bench.online(lock);
    const sentAt = bench.clock.now();
    t.match(bench.sent, [{ mac: lock.mac, downlink: { id, command: { type: 'locate-gps' } } }]);
    t.match(await bench.store.commands.find(id), { state: 'sent', sentCount: 1, firstSentAtMs: sentAt });
    await bench.pass(Seconds(5));
    await bench.ack(lock, id, result, detail);
    t.match(await bench.store.commands.find(id), { state, detail, sentCount: 1, finishedAtMs: bench.clock.now() });
    t.same(bench.takeReported(), [`${id} queued`, `${id} sent`, `${id} ${state}`]);
    t.same(bench.takeSent(), [id], 'it is not sent again');
    await bench.drop(lock);
  }
});

t.test('every command is sent with its parameters, and expires after its default time', async (t) => {
  for (const [type, parameters, life] of COMMANDS) {
    const bench = await CommandBench.open(t);
    const lock = await bench.lock();
    await bench.online(lock);
    const { id } = await bench.command(lock, type, { parameters });
    t.match(bench.sent, [{ downlink: { id, expiresMs: START_MS + life, command: { type, ...parameters } } }], type);
    bench.takeSent();
    await bench.drop(lock);
    const late = await bench.command(lock, type, { parameters });
    await bench.pass(life - 1);
    t.equal((await bench.store.commands.find(late.id))?.state, 'queued', `${type} lives until then`);
    await bench.pass(1);
    t.equal((await bench.store.commands.find(id))?.state, 'expired', `${type}, sent and not answered`);
    t.match(await bench.store.commands.find(late.id), { state: 'expired', finishedAtMs: START_MS + life }, type);
    await bench.online(lock);
    t.same(bench.takeSent(), [], `an expired ${type} is not sent`);
    t.same(bench.takeReported(), [
      `${id} queued`,
      `${id} sent`,
      `${late.id} queued`,
      `${id} expired`,
      `${late.id} expired`,
    ]);
  }
});

t.test('a request may set a later expiry or a later start', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.online(lock);
  const dawn = new Date(START_MS + Hours(18)).toISOString();
  const atDawn = await bench.command(lock, 'unlock', { not_before: dawn });
  t.equal(atDawn.expiresAtMs, START_MS + Hours(18) + Minutes(2), 'its validity starts when it may first be sent');
  const patient = await bench.command(lock, 'unlock', { not_before: dawn, expires_in: 7200 });
  t.equal(patient.expiresAtMs, START_MS + Hours(20));
  t.equal(
    (await bench.command(lock, 'siren', { parameters: { seconds: 1 }, expires_in: 600 })).expiresAtMs - START_MS,
    Minutes(10),
  );
  t.same(bench.takeSent(), [3], 'a scheduled command does not delay others');
  await bench.ack(lock, 3);
  await bench.pass(Hours(18) - 1);
  t.same(bench.takeSent(), [], 'not before its time');
  await bench.pass(1);
  t.same(bench.takeSent(), [atDawn.id], 'at its time');
  await bench.pass(Minutes(2));
  t.same(bench.takeSent().at(-1), patient.id, 'after an expiry the next command is sent');
});

t.test('a lock gets commands one at a time, in the order of their requests', async (t) => {
  const bench = await CommandBench.open(t);
  const [lock, other] = [await bench.lock(1), await bench.lock(2)];
  for (const type of ['unlock', 'lock', 'reset']) await bench.command(lock, type);
  await bench.command(other, 'reset');
  await bench.online(lock);
  t.same(bench.takeSent(), [1]);
  await bench.ping(lock);
  t.same(bench.takeSent(), [], 'another uplink is no answer');
  await bench.ack(lock, 1);
  t.same(bench.takeSent(), [2]);
  await bench.pass(Minutes(2));
  t.same(bench.takeSent().at(-1), 3, 'the next one after an expiry');
  await bench.online(other);
  t.same(bench.takeSent(), [4], 'another lock has another queue');
});

t.test('an unanswered command is sent again under its id, on the next connection and on a silent one', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.command(lock, 'reset');
  await bench.command(lock, 'locate-gps');
  await bench.online(lock);
  await bench.drop(lock);
  await bench.online(lock);
  await bench.connect(lock);
  await bench.ping(lock);
  t.same(
    bench.takeSent(),
    [1, 1, 1],
    'the unfinished command first, whether or not the end of the old connection was reported',
  );
  await bench.pass(Seconds(30) - 1);
  t.same(bench.takeSent(), []);
  await bench.pass(1);
  t.same(bench.takeSent(), [1], 'after 30 s');
  await bench.pass(Seconds(59));
  t.same(bench.takeSent(), []);
  await bench.pass(Seconds(1));
  t.same(bench.takeSent(), [1], 'after twice as long');
  t.match(await bench.store.commands.find(1), { state: 'sent', sentCount: 5, firstSentAtMs: START_MS });
  await bench.ack(lock, 1);
  t.same(bench.takeSent(), [2]);
  await bench.pass(Seconds(149));
  t.same(bench.takeSent(), [], 'a search for a fix gets its 120 s first');
  await bench.pass(Seconds(1));
  t.same(bench.takeSent(), [2]);
  const told = bench.takeReported().filter((line) => line.startsWith('1 '));
  t.same(told, ['1 queued', ...Array(5).fill('1 sent'), '1 done']);
});

t.test('a lock whose first uplink on a connection shows a low battery gets no command', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  const record = await bench.command(lock, 'reset');
  t.match(bench.commands.waitOf(record), { for: 'connection', text: 'lock not connected, ever' });
  await bench.connect(lock);
  t.same(bench.takeSent(), [], 'it waits for the first uplink');
  await bench.ping(lock, 9);
  await bench.pass(Minutes(5));
  t.same(bench.takeSent(), []);
  t.match(bench.commands.waitOf(record), { for: 'low-battery', text: 'low battery' });
  await bench.ping(lock, 10);
  t.same(bench.takeSent(), [1], 'exactly 10 % is not low');
  await bench.ping(lock, 9);
  await bench.drop(lock);
  await bench.connect(lock);
  await bench.pass(Seconds(10));
  t.same(bench.takeSent(), [], 'a command that was sent before waits too');
  await bench.ping(lock, 55);
  t.same(bench.takeSent(), [1]);
});

t.test('a lock that connects and sends nothing gets its command after a second', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.command(lock, 'reset');
  await bench.connect(lock);
  await bench.pass(Seconds(1) - 1);
  t.same(bench.takeSent(), []);
  await bench.pass(1);
  t.same(bench.takeSent(), [1]);
  await bench.ack(lock, 1);
  await bench.command(lock, 'reset');
  t.same(bench.takeSent(), [2], 'the next command is sent at once');
});

t.test('nothing is sent to a lock in airplane mode, nor to a phone', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.online(lock);
  await bench.ping(lock, 80, { ...DEFAULT_POWER, airplane: true });
  const record = await bench.command(lock, 'unlock');
  t.match(bench.commands.waitOf(record), { for: 'airplane' });
  t.same(bench.takeSent(), []);
  await bench.ping(lock);
  t.same(bench.takeSent(), [1], 'airplane mode was switched off at the lock');

  const phone = await bench.lock(2, 'phone');
  await bench.command(phone, 'unlock');
  await bench.connect(phone);
  await bench.ping(phone);
  await bench.pass(Seconds(10));
  t.same(bench.takeSent(), [], 'a phone’s connection gets no command');
  await bench.ack(phone, 2);
  t.equal((await bench.store.commands.find(2))?.state, 'queued', 'a phone can’t answer a command');
});

t.test('only the first answer of the lock that got a command counts', async (t) => {
  const bench = await CommandBench.open(t);
  const [lock, other] = [await bench.lock(1), await bench.lock(2)];
  await bench.command(lock, 'unlock');
  await bench.command(lock, 'reset');
  await bench.online(lock);
  await bench.online(other);
  bench.takeReported();
  await bench.ack(other, 1);
  await bench.ack(lock, 99);
  await bench.ack(lock, 2);
  t.same(bench.takeReported(), [
    '1 stray: it is for another lock',
    '99 stray: there is no such command',
    '2 stray: it was never sent',
  ]);
  t.match(await bench.store.commands.find(1), { state: 'sent' });
  t.match(await bench.store.commands.find(2), { state: 'queued' });
  await bench.ack(lock, 1);
  const finishedAtMs = bench.clock.now();
  await bench.pass(Seconds(1));
  await bench.ack(lock, 1, 'failed', 'again');
  await bench.take(lock, testBytes(lock.sequence, { timeMs: 5 }));
  t.match(await bench.store.commands.find(1), { state: 'done', detail: '', finishedAtMs }, 'the first answer counts');
  t.same(bench.takeReported(), ['1 done', '2 sent']);
});

t.test('tail shows each change of a command, and stray answers', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  const lines: string[] = [];
  listenToAll(bench.events, (event) => {
    if (event.event === 'command' || event.event === 'stray-ack') lines.push(eventLine(event).slice(27));
  });
  await bench.command(lock, 'siren', { parameters: { seconds: 9 } });
  await bench.online(lock);
  await bench.online(lock);
  await bench.ack(lock, 1, 'failed', 'broken');
  await bench.ack(lock, 8);
  t.same(lines, [
    'cmd   command 1 siren seconds=9: queued',
    'cmd   command 1 siren seconds=9: sent',
    'cmd   command 1 siren seconds=9: sent, for the 2. time',
    'cmd   command 1 siren seconds=9: failed',
    'ack   command 8 acknowledged: there is no such command',
  ]);
});

t.test('an answer that comes after the expiry still counts', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.command(lock, 'unlock');
  await bench.online(lock);
  await bench.drop(lock);
  await bench.pass(Minutes(3));
  t.equal((await bench.store.commands.find(1))?.state, 'expired');
  await bench.connect(lock);
  await bench.ack(lock, 1);
  t.match(await bench.store.commands.find(1), { state: 'done', finishedAtMs: START_MS + Minutes(3) });
  t.same(bench.takeReported(), ['1 queued', '1 sent', '1 expired', '1 done']);
});

t.test('a restart loses no command, and no id is used twice', async (t) => {
  const first = await CommandBench.open(t);
  const lock = await first.lock();
  for (const type of ['reset', 'unlock', 'locate-cell']) await first.command(lock, type);
  const later = new Date(START_MS + Hours(2)).toISOString();
  await first.command(lock, 'siren', { parameters: { seconds: 5 }, not_before: later });
  await first.online(lock);
  t.same(first.takeSent(), [1]);
  await first.close();
  await first.clock.advance(Minutes(3));

  const second = await CommandBench.open(t, first);
  await second.settle();
  t.same(second.takeReported(), ['2 expired'], 'a command whose time passed meanwhile expires');
  await second.online(lock);
  t.same(second.takeSent(), [1], 'the unanswered command is sent again under its id');
  await second.ack(lock, 1);
  t.same(second.takeSent(), [3]);
  await second.ack(lock, 3);
  await second.close();

  const third = await CommandBench.open(t, first);
  await third.online(lock);
  t.same(third.takeSent(), [], 'an answered command is not sent again');
  t.equal((await third.command(lock, 'reset')).id, 5);
  await third.ack(lock, 5);
  await third.pass(START_MS + Hours(2) - third.clock.now());
  t.same(third.takeSent(), [5, 4], 'a scheduled command is sent at its time');
});

t.test('while the store fails, no command is sent and no answer is acknowledged', async (t) => {
  let fails = false;
  const wrap = (store: Store): Store =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (fails) throw new Error('disk full');
        await store.append(commit);
      },
    });
  const bench = await CommandBench.open(t, undefined, wrap);
  const lock = await bench.lock();
  await bench.online(lock);
  const failed = new Promise<void>((resolve) => bench.events.once('store-failed', () => resolve()));
  fails = true;
  const wanted = bench.commands.send(readCommandRequest({ macs: [lock.mac], type: 'reset' }, bench.clock.now()));
  await wanted;
  await failed;
  t.same(bench.sent, [], 'it is not sent before it is marked as sent');
  fails = false;
  bench.clock.advance(Seconds(1));
  await bench.settle();
  t.same(bench.takeSent(), [1]);
  fails = true;
  await t.rejects(bench.ack(lock, 1), /disk full/);
  fails = false;
  bench.clock.advance(Seconds(1));
  await bench.settle();
  t.match(await bench.store.commands.find(1), { state: 'sent' });
  lock.sequence -= 1;
  await bench.ack(lock, 1);
  t.match(await bench.store.commands.find(1), { state: 'done' }, 'the lock repeats its answer');
});

t.test('a queued command can be cancelled, a sent one can’t', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.command(lock, 'unlock');
  await bench.command(lock, 'reset');
  await bench.online(lock);
  t.match(await bench.commands.cancel(2), { state: 'cancelled', finishedAtMs: START_MS });
  await t.rejects(bench.commands.cancel(1), { code: 'command-sent', message: /has been sent/ });
  await t.rejects(bench.commands.cancel(2), { code: 'command-sent', message: /it is cancelled/ });
  await t.rejects(bench.commands.cancel(3), { code: 'no-such-command' });
  await bench.ack(lock, 1);
  t.same(bench.takeSent(), [1]);
});

t.test('a lock’s queue has a maximum length', async (t) => {
  const bench = await CommandBench.open(t);
  const [lock, other] = [await bench.lock(1), await bench.lock(2)];
  for (let number = 0; number < MAX_WAITING_PER_LOCK; number += 1) await bench.command(lock, 'reset');
  await t.rejects(bench.command(lock, 'reset'), { code: 'commands-full', message: /100 commands wait for A4:/ });
  const both = await bench.request({ macs: [lock.mac, other.mac], type: 'reset' });
  t.match(both, [{ refusal: { code: 'commands-full' } }, { record: { mac: other.mac, state: 'queued' } }]);
  await bench.online(lock);
  await bench.ack(lock, 1);
  await bench.command(lock, 'reset');
});

t.test('waitOf tells what a command waits for', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  await bench.online(lock);
  const body = { reason: 'REASON_PERIOD_TRACKING', lockState: 'locked', batteryPercent: 80 } as const;
  const tail = { firmwareVersion: '', ebikeVolts: null, tetherState: 'detached', position: null } as const;
  await bench.send(lock, { kind: 'cellular', ...body, ...tail });
  const one = await bench.command(lock, 'reset');
  const two = await bench.command(lock, 'reset');
  const noon = new Date(START_MS + Days(1)).toISOString();
  const three = await bench.command(lock, 'reset', { not_before: noon });
  const sent = { ...one, state: 'sent' } as const;
  t.match(bench.commands.waitOf(sent), { for: 'acknowledgement' });
  t.match(bench.commands.waitOf(two), { for: 'turn', text: 'behind command 1' });
  t.match(bench.commands.waitOf(three), { for: 'schedule', text: `scheduled for ${noon}`, dueMs: START_MS + Days(1) });
  await bench.drop(lock);
  t.match(bench.commands.waitOf(sent), { for: 'connection', text: `lock not connected, due at ${noon}` });
  t.equal(bench.commands.waitOf({ ...one, state: 'done' }), null);
});

t.test('the twin has the wanted and the reported settings, and their differences', async (t) => {
  const bench = await CommandBench.open(t);
  const lock = await bench.lock();
  const { deviceId } = lock.sender;
  const twin = () => {
    const belief = bench.locks.find(deviceId)?.state.belief;
    return readTwin(bench.store.commands, deviceId, belief, bench.clock.now());
  };
  t.same(await twin(), { wanted: {}, reported: null, differs: [] });
  const window = { from: '22:00', to: '05:30', utc_offset_minutes: 60 };
  await bench.command(lock, 'set-power', { parameters: { mode: 'HIGH', recovery: true } });
  await bench.command(lock, 'set-power', { parameters: { recovery: false, high_window: window } });
  await bench.command(lock, 'set-power', { parameters: { ride_tracking: true }, expires_in: 60 });
  const later = new Date(START_MS + Hours(1)).toISOString();
  await bench.command(lock, 'set-power', { parameters: { mode: 'MID' }, not_before: later });
  const wanted = { mode: 'HIGH', recovery: false, high_window: window };
  t.same((await twin()).wanted, { ...wanted, ride_tracking: true });
  t.same((await twin()).differs.length, 4, 'a lock that never sent an uplink has no reported settings');
  await bench.pass(Minutes(1));
  t.same((await twin()).wanted, wanted, 'an expired command asks for nothing');
  await bench.online(lock);
  t.same((await twin()).differs.toSorted(), ['high_window', 'mode']);
  const high = { ...DEFAULT_POWER, mode: 'HIGH' } as const;
  const ack = { kind: 'ack', result: 'ok', detail: '' } as const;
  await bench.send(lock, { ...ack, commandId: 1, highWindow: null }, high);
  const inForce = { fromMinute: 22 * 60, toMinute: 5 * 60 + 30, utcOffsetMinutes: 60 };
  await bench.send(lock, { ...ack, commandId: 2, highWindow: inForce }, high);
  const reported = { mode: 'HIGH', ride_tracking: false, airplane: false, recovery: false, high_window: window };
  t.same(await twin(), { wanted, reported, differs: [] });
  await bench.pass(Hours(1));
  t.same((await twin()).differs, ['mode'], 'a scheduled command counts from its time');
  await bench.ack(lock, 4, 'rejected', 'no');
  t.same((await twin()).wanted, wanted, 'a rejected command asks for nothing');
});

t.test('a wrong request is refused with the member, its value and what was expected', async (t) => {
  const mac = testMac();
  const siren = (seconds: unknown) => ({ macs: [mac], type: 'siren', parameters: { seconds } });
  const power = (parameters: object) => ({ macs: [mac], type: 'set-power', parameters });
  const window = (members: object) => power({ high_window: { from: '07:00', to: '19:00', ...members } });
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [[], /the body is an array: expected an object/],
    [{ macs: [mac] }, /type is missing: expected one of unlock, lock, siren/],
    [{ macs: [mac], type: 'open' }, /type is "open": expected one of unlock/],
    [{ macs: ['zz'], type: 'lock' }, /macs\[0\] is "zz": expected 12 hex digits/],
    [{ macs: [], type: 'lock' }, /macs is an array: expected a list of 1 to 10000 MACs/],
    [{ type: 'lock' }, /all is missing: expected true together with merchant, or else macs/],
    [{ merchant: MERCHANT, type: 'lock' }, /all is missing/],
    [
      { merchant: MERCHANT, all: true, macs: [mac], type: 'lock' },
      /merchant is "Amber": expected no such member together with macs/,
    ],
    [{ macs: [mac], type: 'unlock', sheduled: 'x' }, /sheduled is "x": expected no such member/],
    [{ macs: [mac], type: 'unlock', parameters: { seconds: 3 } }, /parameters.seconds is 3: expected no such member/],
    [siren(undefined), /parameters.seconds is missing: expected a whole number of seconds, 1 to 600/],
    [siren(0), /parameters.seconds is 0: expected a whole number of seconds, 1 to 600/],
    [siren(601), /parameters.seconds is 601/],
    [siren(1.5), /parameters.seconds is 1.5/],
    [power({}), /parameters is missing: expected at least one of mode, ride_tracking/],
    [power({ mode: 'LOW' }), /parameters.mode is "LOW": expected one of MID, HIGH/],
    [power({ recovery: 'on' }), /parameters.recovery is "on": expected true or false/],
    [power({ airplane: false }), /parameters.airplane is false: expected true: nothing reaches a lock in airplane/],
    [window({ from: '7:00' }), /parameters.high_window.from is "7:00": expected a time of the day such as 07:00/],
    [window({ to: '24:00' }), /parameters.high_window.to is "24:00"/],
    [window({ utc_offset_minutes: 841 }), /utc_offset_minutes is 841: expected whole minutes, -840 to 840/],
    [window({ utc_offset_minutes: -841 }), /utc_offset_minutes is -841/],
    [{ macs: [mac], type: 'lock', expires_in: 0 }, /expires_in is 0: expected seconds, 1 to 2592000/],
    [{ macs: [mac], type: 'lock', not_before: 'dawn' }, /not_before is "dawn": expected a date such as/],
    [{ macs: [mac], type: 'lock', not_before: '2020-01-01T00:00:00Z' }, /not_before is .*: expected a future time/],
  ];
  for (const [body, message] of cases)
    t.throws(() => readCommandRequest(body, START_MS), { code: 'input-command', message }, JSON.stringify(body));
  const good = readCommandRequest(window({ utc_offset_minutes: -840 }), START_MS);
  const highWindow = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: -840 };
  t.match(good, { command: { type: 'set-power', highWindow }, targets: { macs: [mac] } } as Partial<CommandRequest>);
});
