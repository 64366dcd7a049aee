// Checks the steps of `lockgate why` about uplinks: what made the lock send one, and why it came late or again. The
// expected sentences are written from the specification. `visit(ping)` is a connection from 06:01 to 06:02 on which the
// lock sends the ping and a close-connection ping.
import t from 'tap';
import type { JudgeEvent, UplinkEvent } from '../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { HistoryReplay } from '../../../proto/why/history.js';
import { uplinkCase, uplinkSteps } from '../../../proto/why/uplink.js';
import type { Ping, Source } from '../../../proto/wire/ping.js';
import { REASONS } from '../../../proto/wire/reasons.js';
import { cellular, uplink } from '../../helpers/pair/judged-uplinks.js';
import { at, close, command, DAILY, gps, MAC, sentenceOf, visit } from '../../helpers/why/lock-history.js';

/** Whether older events of a history are missing. */
const IS_CUT = false;

/**
 * The steps for an uplink with this body, which a lock makes at 06:30 on a connection that began a second before. The
 * lock is in MID, unless `power` says otherwise. The gateway listens from 06:00 on.
 */
function stepsFor(body: Ping, power: object = {}, before: readonly JudgeEvent[] = [], source: Source = 'lock') {
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), IS_CUT);
  for (const event of [CONNECT, ...before]) replay.take(event);
  // The empty lists below: no event after the uplink was read, and it has no stored finding.
  const made = uplink({ boot: 41, sequence: 12, timeMs: at('06:30:00'), power, body });
  const event = { type: 'uplink', source, credential: 0, novelty: 'new', uplink: made, atMs: at('06:30:01') } as const;
  return uplinkSteps(uplinkCase(POWER_MODEL, replay.endAt(event, [])), []);
}

const CONNECT: JudgeEvent = { type: 'connect', source: 'lock', atMs: at('06:29:59') };

// Parts of the expected sentences that several rows share.
const THEFT = 'sent when the lock is locked and has been moving for more than 6 s, which counts as theft';
const DAY = 'the daily ping, sent once daily at the lock’s own minute of the day';
const RIDE = 'sent while the lock is unlocked and moving: a ride, in which its cellular connection is on';
const KEEPS = 'sent while the lock keeps its connection and waits for commands; on connecting, and every 15 min';
const CHANGE = 'sent when the lock is locked or unlocked; each change makes its own ping, with that moment’s state';
/** A ping, the expected sentence about its trigger, and the lock's power settings, unless they are the default. */
const TRIGGERS: readonly (readonly [body: Ping, trigger: string, power?: object])[] = [
  [
    cellular({ reason: 'REASON_THEFT' }),
    `${THEFT}; at once, without waiting for a fix, and again at least every 5 min. In MID the model allows theft ` +
      'tracking.',
  ],
  [
    gps('REASON_THEFT'),
    `${THEFT}; with its GPS position every 10 s while it moves. In MID the model allows theft tracking.`,
  ],
  [
    cellular({ reason: 'REASON_THEFT' }),
    `${THEFT}; at once, without waiting for a fix, and again at least every 5 min. In AIRPLANE the model does not ` +
      'allow theft tracking.',
    { airplane: true },
  ],
  [cellular({ reason: 'REASON_PERIOD_TRACKING' }), `${DAY}. In MID the model allows the daily ping.`],
  [
    cellular({ reason: 'REASON_PERIOD_TRACKING', batteryPercent: 9 }),
    `${DAY}. In LOW_BATTERY the model does not allow the daily ping.`,
  ],
  [cellular({ reason: 'REASON_STATE_PING' }), `${CHANGE}. In MID the model allows state change pings.`],
  [
    gps('REASON_UNLOCKED_PING', 'unlocked'),
    'sent while the lock is unlocked and moving, with ride tracking switched on: a ride, in which it sends its GPS ' +
      'position every 30 s. In RECOVERY the model allows ride tracking, if switched on.',
    { recovery: true, rideTracking: true },
  ],
  [
    cellular({ reason: 'REASON_UNLOCKED_MOVEMENT', lockState: 'unlocked' }),
    `${RIDE}; at its start and at least every 5 min. In MID the model allows the connection in a ride.`,
  ],
  [
    gps('REASON_GPS_PING'),
    'sent when the lock is asked by command where it is, by GPS, once there is a fix. In MID the model allows ' +
      'commands.',
  ],
  [
    cellular({ reason: 'REASON_CELL_PING' }),
    'sent when the lock is asked by command where it is, by the network’s cells. In MID the model allows commands.',
  ],
  [cellular(), `${KEEPS}. In HIGH the connection is kept in its window, 07:00–19:00 (UTC).`, { mode: 'HIGH' }],
  [cellular(), `${KEEPS}. In RECOVERY the connection is kept at all times.`, { recovery: true }],
  [cellular(), `${KEEPS}. In MID nothing keeps a connection.`],
  [cellular({ reason: 'REASON_RESET' }), 'sent when the lock’s modem has restarted; first, on the next connection.'],
  [close(), 'sent when nothing keeps the connection open any longer: 20 s after the last uplink or downlink.'],
  [close(9), 'below 10 % the lock falls silent, and first reports the new battery level.'],
  [close(), 'with airplane mode on the lock falls silent, and first reports the new switch.', { airplane: true }],
  [
    cellular({ reason: 'REASON_UNRECOGNIZED_42' }),
    'its number is not in the table, so the cause of the ping is unknown; the ping is stored and delivered unchanged.',
  ],
];

t.test('for every reason, a step says which trigger made the lock send the ping', async (t) => {
  const seen = new Set<string>(['PHONE']);
  for (const [body, trigger, power] of TRIGGERS) {
    seen.add(body.reason);
    t.equal(sentenceOf(stepsFor(body, power), 'trigger'), `${body.reason}: ${trigger}`);
  }
  for (const { name } of REASONS) t.ok(seen.has(name), `${name} has a row here`);
  const phone = stepsFor(cellular({ reason: 'PHONE' }), {}, [], 'phone');
  const sent = 'PHONE: sent by the user’s phone instead of the lock, with the phone’s own coordinates.';
  t.equal(sentenceOf(phone, 'trigger'), sent);
  t.match(sentenceOf(phone, 'rules-kept'), /wrong-source, unknown-reason, out-of-range, sequence-conflict\.$/);
});

t.test('steps say which command caused an uplink, and what message it is', async (t) => {
  const located = stepsFor(gps('REASON_GPS_PING'), {}, [command(7, 'locate-gps')]);
  const sent = 'was sent to it at 2026-11-20T06:29:59.000Z.';
  t.equal(sentenceOf(located, 'command'), `Command 7 (locate-gps) ${sent}`);
  const withoutCommand = stepsFor(cellular({ reason: 'REASON_RESET' }));
  t.equal(sentenceOf(withoutCommand, 'command'), 'No command (reset) was sent to it in the 10 min before.');
  const unlocked = stepsFor(cellular({ reason: 'REASON_STATE_PING' }), {}, [command(8, 'unlock')]);
  t.equal(sentenceOf(unlocked, 'command'), `Command 8 (unlock) ${sent}`);
  t.equal(
    sentenceOf(located, 'state'),
    'The lock reported MID (mode MID, ride tracking off, airplane off, recovery off, battery 80 %, ' +
      'locked). Mode MID: the lock sleeps, and wakes for theft, its daily ping, a change of lock state, and a ride.',
  );
  t.equal(sentenceOf(located, 'before', 'first'), 'The gateway knew nothing about the lock before it.');
  const earlier = visit(DAILY);
  t.equal(
    sentenceOf(stepsFor(cellular(), {}, earlier), 'before', 'newest'),
    'The gateway’s view before it, from uplink 1/2: MID, locked, battery 80 %.',
  );
  // Of boot 50; the uplink itself is of boot 41.
  const newer = visit(DAILY, {}, 'closed', 50);
  t.equal(
    sentenceOf(stepsFor(cellular(), {}, newer), 'before', 'late'),
    'It arrived after newer ones: the gateway’s view rests on uplink 50/2 and stays unchanged.',
  );
  t.equal(
    sentenceOf(located, 'connection'),
    'It came over the connection that the lock had made at 2026-11-20T06:29:59.000Z.',
  );
  t.equal(sentenceOf(located, 'message', 'gps'), 'It is a GPS ping, REASON_GPS_PING: boot 41, sequence 12.');
  t.equal(
    sentenceOf(located, 'message', 'live'),
    'Made at 2026-11-20T06:30:00.000Z by the lock’s clock, received at 2026-11-20T06:30:01.000Z, 1 s later: live. It ' +
      'was stored and then acknowledged; the time of the acknowledgement is not recorded.',
  );
});

t.test('steps say that an uplink came late, has a used key, or has a withdrawn finding', async (t) => {
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), IS_CUT);
  for (const event of visit(cellular({ reason: 'REASON_STATE_PING' }))) replay.take(event);
  const lateUplink = (sequence: number, body: Ping): UplinkEvent => ({
    ...{ type: 'uplink', source: 'lock', credential: 0, novelty: 'new', atMs: at('09:00:00') },
    uplink: uplink({ sequence, timeMs: at('06:01:00'), body }),
  });
  const explain = (sequence: number, body: Ping) => {
    const history = replay.endAt(lateUplink(sequence, body), []);
    return { history, steps: uplinkSteps(uplinkCase(POWER_MODEL, history), []) };
  };
  // Sequence number 1 was used by the visit's first uplink, which reported 80 %.
  const conflict = explain(1, cellular({ batteryPercent: 79 }));
  t.match(
    conflict.history.verdict.findings.map(({ rule }) => rule),
    ['sequence-conflict'],
  );
  t.match(
    sentenceOf(conflict.steps, 'message', 'buffered'),
    'received at 2026-11-20T09:00:00.000Z, 2 h 59 min later: buffered, it waited in the lock.',
  );
  t.equal(
    sentenceOf(conflict.steps, 'connection'),
    'The events that were read don’t say which connection it came over.',
    'no finding contradicts it, so it had a connection',
  );
  const { steps } = explain(3, cellular({ reason: 'REASON_STATE_PING' }));
  t.equal(
    sentenceOf(steps, 'rule-withdrawn', 'state-unchanged'),
    'It seemed to break state-unchanged when it came; later uplinks explained it.',
  );
});
