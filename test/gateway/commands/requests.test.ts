/**
 * Requests for commands (protocol.md §1, interfaces.md §2): which are refused, how they are cancelled, what a waiting
 * command waits for, and the twin of a lock, which has the power settings that were requested and those that the lock
 * reported. On a manual clock; the lock is connected without MQTT.
 */
import t from 'tap';
import { type CommandRequest, readCommandRequest } from '../../../gateway/commands/command-input.js';
import { MAX_WAITING_PER_LOCK } from '../../../gateway/commands/command-terms.js';
import { readTwin } from '../../../gateway/commands/twin.js';
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { CommandSetup, START_MS } from '../../helpers/commands/command-setup.js';
import { MERCHANT, testMac } from '../../helpers/gateway/test-gateway.js';

t.test('a request may set a later expiry or a later start', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.connectAndPing(lock);
  const dawn = new Date(START_MS + Hours(18)).toISOString();
  const atDawn = await setup.command(lock, 'unlock', { not_before: dawn });
  t.equal(atDawn.expiresAtMs, START_MS + Hours(18) + Minutes(2), 'its validity starts when it may first be sent');
  const patient = await setup.command(lock, 'unlock', { not_before: dawn, expires_in: 7200 });
  t.equal(patient.expiresAtMs, START_MS + Hours(20));
  t.equal(
    (await setup.command(lock, 'siren', { parameters: { seconds: 1 }, expires_in: 600 })).expiresAtMs - START_MS,
    Minutes(10),
  );
  t.same(setup.takeSent(), [3], 'a scheduled command does not delay others; command 3 is the siren');
  await setup.ack(lock, 3);
  await setup.advance(Hours(18) - 1);
  t.same(setup.takeSent(), [], 'not before its time');
  await setup.advance(1);
  t.same(setup.takeSent(), [atDawn.id], 'at its time');
  await setup.advance(Minutes(2));
  t.same(setup.takeSent().at(-1), patient.id, 'after an expiry the next command is sent');
});

t.test('a queued command can be cancelled, a sent one can’t', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.command(lock, 'unlock');
  await setup.command(lock, 'reset');
  await setup.connectAndPing(lock);
  t.match(await setup.commands.cancel(2), { state: 'cancelled', finishedAtMs: START_MS });
  await t.rejects(setup.commands.cancel(1), { code: 'command-sent', message: /has been sent/ });
  await t.rejects(setup.commands.cancel(2), { code: 'command-sent', message: /it is cancelled/ });
  await t.rejects(setup.commands.cancel(3), { code: 'no-such-command' });
  await setup.ack(lock, 1);
  t.same(setup.takeSent(), [1]);
});

t.test('a lock’s queue has a maximum length', async (t) => {
  const setup = await CommandSetup.open(t);
  const [lock, other] = [await setup.lock(1), await setup.lock(2)];
  for (let number = 0; number < MAX_WAITING_PER_LOCK; number += 1) await setup.command(lock, 'reset');
  await t.rejects(setup.command(lock, 'reset'), { code: 'commands-full', message: /100 commands wait for A4:/ });
  const both = await setup.request({ macs: [lock.mac, other.mac], type: 'reset' });
  t.match(both, [{ refusal: { code: 'commands-full' } }, { record: { mac: other.mac, state: 'queued' } }]);
  await setup.connectAndPing(lock);
  // An answered command no longer waits, so that there is room for another.
  await setup.ack(lock, 1);
  await setup.command(lock, 'reset');
});

t.test('waitOf says what a command waits for', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.connectAndPing(lock);
  // After this daily ping, the lock sleeps until the next one, a day later.
  const pingMembers = { reason: 'REASON_PERIOD_TRACKING', lockState: 'locked', batteryPercent: 80 } as const;
  const cellularMembers = { firmwareVersion: '', ebikeVolts: null, tetherState: 'detached', position: null } as const;
  await setup.send(lock, { kind: 'cellular', ...pingMembers, ...cellularMembers });
  const first = await setup.command(lock, 'reset');
  const second = await setup.command(lock, 'reset');
  const noon = new Date(START_MS + Days(1)).toISOString();
  const third = await setup.command(lock, 'reset', { not_before: noon });
  const sent = { ...first, state: 'sent' } as const;
  t.match(setup.commands.waitOf(sent), { for: 'acknowledgement' });
  t.match(setup.commands.waitOf(second), { for: 'turn', text: 'behind command 1' });
  t.match(setup.commands.waitOf(third), { for: 'schedule', text: `scheduled for ${noon}`, dueMs: START_MS + Days(1) });
  await setup.loseConnection(lock);
  const text = `lock not connected, next connection due at ${noon}`;
  t.match(setup.commands.waitOf(sent), { for: 'connection', text });
  t.equal(setup.commands.waitOf({ ...first, state: 'done' }), null);
});

t.test('the twin of a lock has its requested and reported settings, and their differences', async (t) => {
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  const { deviceId } = lock.sender;
  const twin = () => {
    const belief = setup.locks.find(deviceId)?.state.belief;
    return readTwin(setup.store.commands, deviceId, belief, setup.clock.now());
  };
  t.same(await twin(), { wanted: {}, reported: null, differs: [] });
  const window = { from: '22:00', to: '05:30', utc_offset_minutes: 60 };
  await setup.command(lock, 'set-power', { parameters: { mode: 'HIGH', recovery: true } });
  await setup.command(lock, 'set-power', { parameters: { recovery: false, high_window: window } });
  await setup.command(lock, 'set-power', { parameters: { ride_tracking: true }, expires_in: 60 });
  const later = new Date(START_MS + Hours(1)).toISOString();
  await setup.command(lock, 'set-power', { parameters: { mode: 'MID' }, not_before: later });
  const request = { mode: 'HIGH', recovery: false, high_window: window };
  t.same((await twin()).wanted, { ...request, ride_tracking: true });
  t.same((await twin()).differs.length, 4, 'while no settings are reported, all four requested ones differ');
  await setup.advance(Minutes(1));
  t.same((await twin()).wanted, request, 'an expired command asks for nothing');
  await setup.connectAndPing(lock);
  t.same((await twin()).differs.toSorted(), ['high_window', 'mode']);
  const high = { ...DEFAULT_POWER, mode: 'HIGH' } as const;
  const ack = { kind: 'ack', result: 'ok', detail: '' } as const;
  await setup.send(lock, { ...ack, commandId: 1, highWindow: null }, high);
  const inForce = { fromMinute: 22 * 60, toMinute: 5 * 60 + 30, utcOffsetMinutes: 60 };
  await setup.send(lock, { ...ack, commandId: 2, highWindow: inForce }, high);
  const reported = { mode: 'HIGH', ride_tracking: false, airplane: false, recovery: false, high_window: window };
  t.same(await twin(), { wanted: request, reported, differs: [] });
  await setup.advance(Hours(1));
  t.same((await twin()).differs, ['mode'], 'a scheduled command counts from its time');
  await setup.ack(lock, 4, 'rejected', 'no');
  t.same((await twin()).wanted, request, 'a rejected command asks for nothing');
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
  const highWindow = { fromMinute: 7 * 60, toMinute: 19 * 60, utcOffsetMinutes: -840 };
  t.match(good, { command: { type: 'set-power', highWindow }, targets: { macs: [mac] } } as Partial<CommandRequest>);
});
