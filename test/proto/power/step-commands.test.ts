// Checks how a lock carries out commands, against protocol.md §2. A `ModelLock` is a lock that the function `step` of
// the power model moves on from noon; its `describeSince(time)` lists what the lock published or did, each line with
// the seconds since that time. With recovery on, the lock stays connected, so that commands reach it at once.
import t from 'tap';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { Command } from '../../../proto/wire/ping.js';
import { ModelLock, NOON_MS, power } from '../../helpers/pair/model-lock.js';

t.test('commands: carried out once, acknowledged each time, rejected after their expiry', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }) });
  const sendTwice = (id: number, command: Command) => {
    return lock.command(id, command).command(id, command).advance(Minutes(1));
  };
  sendTwice(1, { type: 'unlock' });
  sendTwice(2, { type: 'siren', seconds: 30 });
  sendTwice(3, { type: 'locate-gps' });
  sendTwice(4, { type: 'locate-cell' });
  sendTwice(5, { type: 'lock' });
  // It has expired when it arrives.
  lock.command(6, { type: 'unlock' }, lock.nowMs).command(6, { type: 'unlock' }, lock.nowMs);
  const acks = lock
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  const twice = ['1 ok', '2 ok', '3 ok', '4 ok', '5 ok', '6 rejected'].flatMap((ack) => [ack, ack]);
  t.same(acks, twice);
  const count = (type: string) => lock.timedEffects.filter(({ effect }) => effect.type === type).length;
  t.same([count('unlock'), count('siren'), count('tone'), count('lock')], [1, 1, 1, 1]);
  t.equal(lock.state.lockState, 'locked', 'the expired unlock was not carried out');
  const located = lock
    .createdUplinks()
    .filter(({ body }) => body.kind !== 'ack' && /GPS_PING|CELL_PING/.test(body.reason));
  t.match(located, [
    { body: { kind: 'gps', reason: 'REASON_GPS_PING', position: lock.fix.position } },
    { body: { kind: 'cellular', reason: 'REASON_CELL_PING', position: lock.cellPosition } },
  ]);
});

t.test('commands: a tone of 5 s sounds before locking, a state ping follows; an unlock cancels it', async (t) => {
  const lock = new ModelLock({ lockState: 'unlocked', power: power({ recovery: true }) });
  lock.advance(Minutes(1)).command(1, { type: 'lock' }).advance(Seconds(10));
  t.same(lock.describeSince(NOON_MS + Seconds(60)), ['0 tone', '5 lock', '5 cellular STATE_PING', '5 ack 1 ok']);
  lock.command(2, { type: 'unlock' }).command(3, { type: 'lock' }).advance(Seconds(2)).command(4, { type: 'unlock' });
  lock.advance(Seconds(10));
  const acks = lock
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  t.same(acks, ['1 ok', '2 ok', '3 failed', '4 ok']);
  t.equal(lock.state.lockState, 'unlocked');
});

t.test(
  'commands: to locate without a fix or a position is acknowledged as failed, and the lock waits for it',
  async (t) => {
    const lock = new ModelLock({ skyOpen: false });
    lock.cellPosition = null;
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(110)).command(1, { type: 'locate-gps' });
    lock.advance(Seconds(119));
    t.equal(lock.state.link, 'up', 'the search keeps the connection open');
    lock.advance(Seconds(1)).command(2, { type: 'locate-cell' }).advance(Seconds(20));
    t.same(lock.describeSince(NOON_MS + Seconds(110)), [
      '120 ack 1 failed',
      '120 ack 2 failed',
      '140 close',
      '140 disconnect',
    ]);
  },
);

t.test('commands: the answer to set-power reports the window in force; an invalid window is rejected', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }) });
  lock.command(1, { type: 'set-power', mode: 'HIGH', rideTracking: false });
  t.match(lock.createdUplinks().at(-1), {
    power: { mode: 'HIGH', rideTracking: false, recovery: true },
    body: { result: 'ok', highWindow: { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 } },
  });
  // Invalid: the last minute of a day is 1439.
  const highWindow = { fromMinute: 0, toMinute: 1440, utcOffsetMinutes: 0 };
  lock.command(2, { type: 'set-power', airplane: true, highWindow });
  t.match(lock.createdUplinks().at(-1)?.body, { result: 'rejected', highWindow: { toMinute: 1140 } });
  t.notOk(lock.state.power.airplane, 'none of its settings was applied');
});

t.test('commands: unfinished commands are answered before the lock becomes silent', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }), lockState: 'unlocked', skyOpen: false });
  lock.command(1, { type: 'lock' }).command(2, { type: 'locate-gps' });
  lock.command(3, { type: 'set-power', airplane: true }).advance(Hours(1));
  const acks = lock
    .createdUplinks()
    .flatMap(({ body, power }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result} ${power.airplane}`] : []));
  t.same(acks, ['1 failed false', '2 failed false', '3 ok true']);
  t.equal(lock.state.lockState, 'unlocked');
});

t.test(
  'reset by command: acknowledged, closed, restarted; REASON_RESET comes first on the next connection',
  async (t) => {
    const lock = new ModelLock({ power: power({ recovery: true }) });
    lock.advance(Minutes(1)).command(1, { type: 'reset' });
    t.same(lock.describeSince(NOON_MS + Seconds(60)).slice(0, 6), [
      '0 ack 1 ok',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular RESET',
      '0 cellular NETWORK_PING',
    ]);
    t.equal(lock.state.boot, 1, 'a reset of the modem is not a boot');
    lock.advance(Minutes(1)).handle({ type: 'modem-reset' });
    const firstActions = lock.describeSince(NOON_MS + Seconds(120)).slice(0, 3);
    t.same(
      firstActions,
      ['0 drop', '0 connect', '0 cellular RESET'],
      'without a command, the connection drops without a close-connection ping',
    );
    // In the mode MID it is not connected, and connects to report the reset.
    const lockInMid = new ModelLock();
    lockInMid.handle({ type: 'modem-reset' }).advance(Minutes(1));
    t.same(lockInMid.describeSince(NOON_MS), ['0 connect', '0 cellular RESET', '20 close', '20 disconnect']);
  },
);
