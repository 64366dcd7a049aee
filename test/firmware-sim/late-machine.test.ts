/**
 * A lock on a machine that is late: the events of its connection arrive after the moment at which the lock has given
 * that connection up.
 */
import t from 'tap';
import type { LinkEvents, OpenLink } from '../../firmware-sim/link/link.js';
import type { DiaryEntry } from '../../firmware-sim/lock/diary.js';
import { Lock } from '../../firmware-sim/lock/lock.js';
import { ScriptedWorld, type WorldEvent } from '../../firmware-sim/world/world.js';
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { MIDNIGHT_MS, MODEL_LOCK_MAC } from '../helpers/pair/model-lock.js';
import { PARKED, PARKED_AT } from '../helpers/sim/parked-bicycle.js';

const START_MS = MIDNIGHT_MS + Hours(12);
const FIX = { position: PARKED_AT, speedMetersPerSecond: 0, directionDegrees: 0 };
/** The first thing that the lock reports. */
const UNLOCKED: WorldEvent = {
  atMs: START_MS + Minutes(1),
  change: { type: 'lock-state', lockState: 'unlocked' },
};

t.test('an acknowledgement that a late machine delivers after the keepalive has expired is ignored', async (t) => {
  // A clock whose timers never run: the lock learns of the time from the events of its link.
  let nowMs = START_MS;
  const clock = { now: () => nowMs, after: () => ({ cancel: () => undefined }) };
  const calls: string[] = [];
  const entries: DiaryEntry['type'][] = [];
  let events: LinkEvents | undefined;
  let sent: Uplink | undefined;
  const openLink: OpenLink = (_mac, lockEvents) => {
    events = lockEvents;
    return {
      connect: () => void calls.push('connect'),
      publish: (uplink) => {
        calls.push('publish');
        sent = uplink;
      },
      disconnect: () => void calls.push('disconnect'),
      drop: () => void calls.push('drop'),
      breakConnection: () => undefined,
      abandon: () => undefined,
      close: async () => undefined,
    };
  };
  const lock = new Lock({
    mac: MODEL_LOCK_MAC,
    firmwareVersion: '2.4.1',
    clock,
    world: new ScriptedWorld(PARKED, [UNLOCKED], FIX),
    openLink,
    jitterSeed: 1,
    diary: (_mac, _atMs, entry) => void entries.push(entry.type),
  });
  lock.start();
  nowMs += Minutes(1);
  lock.checkWorld();
  events?.connected();
  if (sent === undefined || events === undefined) throw new Error('the lock published nothing');
  nowMs += POWER_MODEL.timings.keepalive;
  events.acknowledged(sent);
  t.same(calls, ['connect', 'publish', 'drop'], 'the lock has given the connection up');
  t.notOk(entries.includes('acknowledged'), 'its diary does not say that the uplink was acknowledged');
  t.equal(lock.state.waiting[0], sent, 'and the uplink still waits');

  // The event of a connection that was given up must not count as that of the next one.
  nowMs += Seconds(10);
  events.connected();
  t.equal(calls.at(-1), 'connect', 'a new attempt has begun');
  t.equal(lock.state.link, 'connecting', 'which is not answered by an old event');
  events.connected();
  t.equal(lock.state.link, 'up');
  await lock.stop();
});
