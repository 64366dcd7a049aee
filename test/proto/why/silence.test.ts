// Checks the steps of `lockgate why` about silence: why nothing came from a lock, and how its last connection ended.
// The expected sentences are written from the specification. `visit(ping)` is a connection from 06:01 to 06:02 on which
// the lock sends the ping and, unless the connection breaks off, a close-connection ping.
import t from 'tap';
import { Days, Hours } from '../../../proto/clock.js';
import type { DisconnectCause, JudgeEvent } from '../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { HistoryReplay, type JudgedHistory } from '../../../proto/why/history.js';
import { afterMomentSteps, lastConnectionEndStep } from '../../../proto/why/moment.js';
import { SILENCES, type Silence, silenceStep } from '../../../proto/why/silence.js';
import type { WhyStep } from '../../../proto/why/step.js';
import { cellular, uplink } from '../../helpers/pair/judged-uplinks.js';
import { at, close, DAILY, HIGH, MAC, RECOVERY, sentenceOf, visit } from '../../helpers/why/lock-history.js';

/** The history of a lock up to a moment, with the events `after` it. The gateway listens from 06:00 on. */
function historyAt(atMs: number, events: readonly JudgeEvent[], after: readonly JudgeEvent[] = []): JudgedHistory {
  const isCut = false;
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), isCut);
  for (const event of events) replay.take(event);
  return replay.endAtTime(atMs, after);
}

/** The step about the silence at a moment, after these events of a lock. */
function silenceAt(atMs: number, events: readonly JudgeEvent[]): WhyStep {
  return silenceStep(POWER_MODEL, historyAt(atMs, events).belief, atMs);
}

const AIRPLANE_ON: JudgeEvent = {
  ...{ type: 'command', id: 7, atMs: at('06:01:30') },
  command: { type: 'set-power', airplane: true },
};

/** A connect, two uplinks and a disconnect. */
const VISIT = visit(DAILY);
const OVERDUE =
  'it counts as late after 2026-11-21T07:01:00.001Z (period-overdue), counted from its last daily ping at ' +
  '2026-11-20T06:01:00.001Z';

const STOP: JudgeEvent = { type: 'gateway', state: 'stop', atMs: at('06:30:00') };

/** A kind of silence, the moment and the events before it, and the expected sentence. */
const SILENT: readonly (readonly [silence: Silence, atMs: number, events: readonly JudgeEvent[], sentence: string])[] =
  [
    ['online', at('06:01:30'), VISIT.slice(0, 2), 'Connected, since 2026-11-20T06:01:00.000Z: not silent at all.'],
    [
      'gateway-down',
      at('07:00:00'),
      [...VISIT, STOP],
      'The gateway was not listening then, so nothing could arrive; silence counts only while it listens.',
    ],
    [
      'never-seen',
      at('07:00:00'),
      [],
      'This lock had never connected: nothing is expected before its first connection.',
    ],
    [
      'airplane',
      at('07:00:00'),
      visit(close(), { airplane: true }),
      'In airplane mode since 2026-11-20T06:01:00.001Z: all cellular and GPS functionality is off, and it can ' +
        'only be switched on again at the lock. It is not late.',
    ],
    [
      'low-battery',
      at('07:00:00'),
      visit(close(9)),
      'Low battery (9 %) since 2026-11-20T06:01:00.001Z: below 10 % only theft tracking works, so it is silent ' +
        'until it is moved or charged. It is not late.',
    ],
    [
      'suspended',
      at('07:00:00'),
      [...VISIT.slice(0, 3), AIRPLANE_ON, VISIT[3] as JudgeEvent],
      'A command to switch airplane mode on was sent at 2026-11-20T06:01:30.000Z and is not acknowledged: the ' +
        'silence was requested, so it does not count as late.',
    ],
    [
      'asleep-period',
      at('07:00:00'),
      VISIT,
      'Asleep, as the model expects in MID: its last daily ping came at 2026-11-20T06:01:00.001Z, so the next is ' +
        'due by ' +
        `2026-11-21T06:01:00.001Z, and ${OVERDUE}.`,
    ],
    [
      'due-period',
      at('06:30:00') + Days(1),
      VISIT,
      `Its last daily ping came at 2026-11-20T06:01:00.001Z, a day ago: the next is due now, and ${OVERDUE}.`,
    ],
    [
      'late-period',
      at('08:01:00') + Days(1),
      VISIT,
      'Late since 2026-11-21T07:01:00.001Z, for 59 min 59 s: no daily ping for 25 h, in MID, counted from its last ' +
        'daily ping at 2026-11-20T06:01:00.001Z.',
    ],
    [
      'asleep-first',
      at('06:30:00'),
      visit(cellular()),
      'Asleep, as the model expects in MID: no daily ping has come from it yet, and it counts as late after ' +
        '2026-11-21T07:01:00.000Z (period-overdue), counted from its first connection at 2026-11-20T06:01:00.000Z.',
    ],
    [
      'asleep-window',
      at('06:30:00'),
      HIGH,
      'Asleep, as the model expects: in HIGH its window 07:00–19:00 (UTC) is closed. It is due at ' +
        '2026-11-20T07:00:00.000Z, when the window opens, and it counts as late after 2026-11-20T07:10:00.000Z ' +
        '(window-offline), counted from the opening of its window at 2026-11-20T07:00:00.000Z.',
    ],
    [
      'due-window',
      at('07:05:00'),
      HIGH,
      'In HIGH, inside its window 07:00–19:00 (UTC): it is due now, and it counts as late after ' +
        '2026-11-20T07:10:00.000Z (window-offline), counted from the opening of its window at ' +
        '2026-11-20T07:00:00.000Z.',
    ],
    [
      'late-window',
      at('07:11:00'),
      HIGH,
      'Late since 2026-11-20T07:10:00.000Z, for 1 min: in HIGH and not connected for 10 min of its window, ' +
        'counted from the opening of its window at 2026-11-20T07:00:00.000Z.',
    ],
    [
      'due-recovery',
      at('06:05:00'),
      RECOVERY,
      'In RECOVERY, which keeps the connection at all times: it is due now, and it counts as late after ' +
        '2026-11-20T06:12:00.000Z (recovery-offline), counted from the end of its last connection at ' +
        '2026-11-20T06:02:00.000Z.',
    ],
    [
      'late-recovery',
      at('06:13:00'),
      RECOVERY,
      'Late since 2026-11-20T06:12:00.000Z, for 1 min: in RECOVERY and not connected for 10 min, counted from the ' +
        'end of its last connection at 2026-11-20T06:02:00.000Z.',
    ],
  ];

t.test('for every kind of silence, a step says what the model expects, and why the lock is late or not', async (t) => {
  t.same(SILENT.map(([silence]) => silence).sort(), [...SILENCES].sort(), 'a new kind of silence needs a row here');
  for (const [silence, atMs, events, sentence] of SILENT) {
    const step = silenceAt(atMs, events);
    t.equal(step.code, silence);
    t.equal(step.sentence, sentence);
  }
  const start: JudgeEvent = { type: 'gateway', state: 'start', atMs: at('10:00:00') };
  const afterRestart = silenceAt(at('08:00:00') + Days(1), [...VISIT, STOP, start]);
  t.match(afterRestart.sentence, 'counted from the moment the gateway started to listen at 2026-11-20T10:00:00.000Z');
});

t.test(
  'a command to switch airplane mode on excuses a silence until it expires, then is named as a possible cause',
  (t) => {
    const sent: JudgeEvent = { ...AIRPLANE_ON, expiresMs: at('06:30:00') } as JudgeEvent;
    const events = [...RECOVERY.slice(0, 2), sent, ...RECOVERY.slice(2)];
    const suspended = silenceAt(at('06:29:59'), events);
    t.equal(suspended.code, 'suspended');
    t.match(suspended.sentence, 'does not count as late until the command expires at 2026-11-20T06:30:00.000Z.');
    const late = silenceAt(at('06:31:00'), events);
    t.equal(late.code, 'late-recovery');
    const cause =
      'A possible cause: command 7 to switch airplane mode on was sent at 2026-11-20T06:01:30.000Z and expired ' +
      'unanswered at 2026-11-20T06:30:00.000Z.';
    t.ok(late.sentence.endsWith(cause), late.sentence);
    const later = visit(cellular(), { recovery: true }).map((event) => ({ ...event, atMs: event.atMs + Hours(1) }));
    const refuted = silenceAt(at('07:15:00'), [...events, ...later]);
    t.equal(refuted.code, 'late-recovery');
    t.notMatch(refuted.sentence, 'possible cause', 'an uplink with airplane off has come since');
    t.end();
  },
);

t.test('steps say how the last connection ended, what came next, and whether the lock was out of reach', async (t) => {
  const endOf = (cause: DisconnectCause): string =>
    lastConnectionEndStep(historyAt(at('07:00:00'), visit(DAILY, {}, cause)))[0]?.sentence ?? '';
  const ended = 'Its last connection ended at 2026-11-20T06:02:00.000Z: ';
  const lost =
    'the network may have lost it; a lock with something to send retries after 10, 30 and 60 s, then every 5 min, ' +
    'and buffers up to 256 uplinks meanwhile.';
  t.equal(endOf('closed'), `${ended}the lock announced it with a close-connection ping and disconnected.`);
  t.equal(endOf('dropped'), `${ended}the connection broke off without a close-connection ping: ${lost}`);
  t.equal(
    endOf('keepalive'),
    `${ended}nothing came on it for one and a half keepalives, so the gateway closed it: ${lost}`,
  );
  t.match(endOf('takeover'), `${ended}the lock connected again while it counted as connected`);
  t.match(endOf('gateway'), `${ended}the gateway closed it (it stopped, or the lock’s credential or account changed)`);
  const open = visit(DAILY, {}, 'dropped').slice(0, 2);
  const restart: JudgeEvent[] = [
    { type: 'gateway', state: 'stop', atMs: at('06:30:00') },
    { type: 'gateway', state: 'start', atMs: at('06:40:00') },
  ];
  t.match(lastConnectionEndStep(historyAt(at('06:35:00'), [...open, ...restart.slice(0, 1)]))[0], { code: 'gateway' });

  const late: JudgeEvent = {
    ...{ type: 'uplink', source: 'lock', credential: 0, novelty: 'new', atMs: at('11:00:05') },
    uplink: uplink({ sequence: 9, timeMs: at('08:00:00'), body: cellular({ reason: 'REASON_STATE_PING' }) }),
  };
  const reconnect: JudgeEvent = { type: 'connect', source: 'lock', atMs: at('11:00:00') };
  const moment = historyAt(at('09:00:00'), visit(DAILY, {}, 'dropped'), [reconnect, late]);
  const whileOutOfReach = afterMomentSteps(POWER_MODEL, moment, at('09:00:00'));
  t.equal(
    sentenceOf(whileOutOfReach, 'after', 'next-contact'),
    'Next contact: it connected at 2026-11-20T11:00:00.000Z, 2 h later.',
  );
  t.equal(
    sentenceOf(whileOutOfReach, 'after', 'out-of-reach'),
    'One uplink made before then arrived late, from 2026-11-20T11:00:05.000Z on, the first 3 h after it was made: ' +
      'the lock was out of reach and buffered them.',
  );
  const whileDown = afterMomentSteps(POWER_MODEL, historyAt(at('06:35:00'), open, restart.slice(1)), at('06:35:00'));
  t.equal(sentenceOf(whileDown, 'after', 'listening'), 'The gateway listened again from 2026-11-20T06:40:00.000Z on.');
  t.equal(sentenceOf(whileDown, 'after', 'nothing'), 'Nothing has come from it since.');
});
