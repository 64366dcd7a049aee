// Checks `why`: the steps that explain what a lock did or did not do (interfaces.md §4). A step is a sentence with a
// kind, a code and the section that it rests on. The expected sentences are written from the specification.
import t from 'tap';
import { wrapWords } from '../../../cli/terminal/word-wrap.js';
import {
  COMMAND_STATES,
  type CommandRecord,
  type CommandState,
} from '../../../gateway/store/contract/command-record.js';
import { commandSteps, STATE_WHY, TYPE_WHY, WAIT_WHY } from '../../../gateway/why/command-why.js';
import { OUTCOME_WHY, OUTCOMES } from '../../../gateway/why/delivery-why.js';
import { quarantineSteps, REJECTION_WHY } from '../../../gateway/why/quarantine-why.js';
import { parseSubject } from '../../../gateway/why/why-subject.js';
import { readMoment } from '../../../gateway/why/why-time.js';
import { Days, Hours, ManualClock } from '../../../proto/clock.js';
import { newBelief } from '../../../proto/power/judge/belief.js';
import type { DisconnectCause, JudgeEvent, UplinkEvent } from '../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import { HistoryReplay, type JudgedHistory } from '../../../proto/why/history.js';
import { afterSteps, CONNECTION_END_WHY, lastEndStep } from '../../../proto/why/moment.js';
import { CLOSE_WHY, REASON_WHY } from '../../../proto/why/reasons.js';
import { RULE_WHY } from '../../../proto/why/rules.js';
import { SILENCE_WHY, SILENCES, type Silence, silenceStep } from '../../../proto/why/silence.js';
import { SECTIONS, type WhyStep } from '../../../proto/why/step.js';
import { uplinkCase, uplinkSteps } from '../../../proto/why/uplink.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Command, LockState, Ping, Source } from '../../../proto/wire/ping.js';
import { REASONS, type Reason } from '../../../proto/wire/reasons.js';
import { requestWhy } from '../../helpers/cli/why-answer.js';
import { testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { cellular, uplink } from '../../helpers/pair/judged-uplinks.js';
import { judgeEventOf, readHandTrace, storeEvents } from '../../helpers/store/stored-trace.js';

/** Later than all traces, so that each moment in a trace is in the past. */
const NOW = Date.UTC(2026, 10, 22, 12);

function sentenceOf(steps: readonly { kind: string; code: string; sentence: string }[], kind: string, code?: string) {
  const match = steps.find((step) => step.kind === kind && (code === undefined || step.code === code));
  return match?.sentence ?? `no step ${kind} ${code ?? ''}`;
}

t.test('each closed table has a sentence for each of its rows, and no other', async (t) => {
  const keys = (table: object): string[] => Object.keys(table).sort();
  t.same(keys(RULE_WHY), RULES.map(({ rule }) => rule).sort());
  t.same(keys(REASON_WHY), REASONS.map(({ name }) => name).sort());
  t.same(keys(CLOSE_WHY), POWER_MODEL.states.map(({ state }) => state).sort());
  t.same(keys(SILENCE_WHY), [...SILENCES].sort());
  t.same(keys(OUTCOME_WHY), [...OUTCOMES].sort());
  t.same(keys(STATE_WHY), [...COMMAND_STATES].sort());
  t.same(keys(CONNECTION_END_WHY), ['closed', 'dropped', 'gateway', 'keepalive', 'takeover']);
  t.same(keys(TYPE_WHY), ['locate-cell', 'locate-gps', 'lock', 'reset', 'set-power', 'siren', 'unlock']);
  t.same(keys(WAIT_WHY), [
    'acknowledgement',
    'airplane',
    'clock',
    'connection',
    'low-battery',
    'schedule',
    'sending',
    'subscription',
    'turn',
  ]);
  t.same(keys(REJECTION_WHY), ['no-body', 'no-boot', 'no-sequence', 'no-time', 'too-long', 'undecodable']);
  const sections: readonly string[] = Object.values(SECTIONS);
  for (const [rule, row] of Object.entries(RULE_WHY)) t.ok(sections.includes(row.restsOn) && row.because, rule);
});

/** A rule, the sentence about the finding in its first hand-written trace, why the rule exists, and its section. */
const BROKEN: readonly (readonly [rule: string, found: string, because: string, restsOn: string])[] = [
  [
    'airplane-silence',
    'a violation (finding:N): REASON_NETWORK_PING was sent with airplane on.',
    'Airplane mode disables all cellular and GPS functionality.',
    SECTIONS.power,
  ],
  [
    'low-battery-theft-only',
    'a violation (finding:N): REASON_PERIOD_TRACKING was sent with the battery at 9 %, below 10 %.',
    'Below 10 % all cellular functionality and GPS tracking are disabled, except theft tracking.',
    SECTIONS.power,
  ],
  [
    'theft-while-unlocked',
    'a violation (finding:N): REASON_THEFT was sent while the lock was unlocked.',
    'Theft tracking is for a lock that is locked and in motion.',
    SECTIONS.power,
  ],
  [
    'period-too-soon',
    'a violation (finding:N): The period sequence of 2026-11-21T04:59:01.000Z started 22 h 59 min after that of ' +
      '2026-11-20T06:00:01.000Z.',
    'The daily ping is sent once daily.',
    SECTIONS.limits,
  ],
  [
    'state-unchanged',
    'a violation (finding:N): REASON_STATE_PING reports locked, but the lock was already locked.',
    'State change pings are sent when the device is locked or unlocked.',
    SECTIONS.power,
  ],
  [
    'ride-tracking-off',
    'a violation (finding:N): REASON_UNLOCKED_PING was sent while ride tracking was off.',
    'Ride tracking information is sent when ride tracking is enabled.',
    SECTIONS.power,
  ],
  [
    'ride-while-locked',
    'a violation (finding:N): REASON_UNLOCKED_PING was sent while the lock was locked.',
    'A ride is what a lock does while it is unlocked and in motion.',
    SECTIONS.power,
  ],
  [
    'position-missing',
    'a violation (finding:N): REASON_GPS_PING came as a cellular ping, not as a GPS ping.',
    'These two reasons say that location data is sent, by GPS or by cellular positioning.',
    SECTIONS.reasons,
  ],
  [
    'outside-connection',
    'a violation (finding:N): The uplink was received while the lock was not connected.',
    'A device emits pings whenever it has an active cellular connection, so none comes without one.',
    SECTIONS.events,
  ],
  [
    'after-close',
    'a violation (finding:N): The uplink came after the close-connection ping of its connection.',
    'A close connection ping says that the device disconnects, so nothing follows it on that connection.',
    SECTIONS.ping,
  ],
  [
    'wrong-source',
    'a violation (finding:N): PHONE came from the lock, not from a phone.',
    'PHONE is for data that the user’s phone sends instead of the device, and the credential says which it was.',
    SECTIONS.reasons,
  ],
  [
    'unknown-reason',
    'a violation (finding:N): The reason 12 is not in the table.',
    'The field reason takes the values of the table.',
    SECTIONS.events,
  ],
  [
    'out-of-range',
    'a violation (finding:N): Out of range: battery 101 %.',
    'A value that can’t be one (a battery of 255 %, a latitude of 214°) is reported, never dropped.',
    SECTIONS.wire,
  ],
  [
    'sequence-conflict',
    'a violation (finding:N): Boot 4, sequence 9 was used before with other content.',
    'A boot and a sequence number identify one uplink of a lock, for ever.',
    SECTIONS.wire,
  ],
  [
    'connection-unexplained',
    'a violation (finding:N): Connected without an uplink or a command for 10 min 1 s, since ' +
      '2026-11-20T06:00:01.000Z, in MID, which keeps no connection then.',
    'In this state a lock keeps no connection, and every byte of one is billed.',
    SECTIONS.service,
  ],
  [
    'sequence-gap',
    'a warning (finding:N): In boot 1, 1 sequence number is missing (2).',
    'A lock numbers each uplink that it makes, so a number that never comes is an uplink that was lost.',
    SECTIONS.wire,
  ],
  [
    'clock-ahead',
    'a warning (finding:N): The lock’s time 2026-11-20T06:05:01.001Z is 5 min ahead of the receipt at ' +
      '2026-11-20T06:00:01.000Z.',
    'A lock stamps its uplinks by its own clock, and merchants receive that time.',
    SECTIONS.wire,
  ],
  [
    'not-closed',
    'a warning (finding:N): The connection since 2026-11-20T06:00:00.000Z ended as dropped without a ' +
      'close-connection ping.',
    'A device that disconnects from the network says so with a close connection ping.',
    SECTIONS.ping,
  ],
  [
    'period-overdue',
    'a warning (finding:N): No period sequence for 25 h, since 2026-11-20T06:00:11.000Z, in MID.',
    'The daily ping is sent once daily; an hour of delay is put down to the network.',
    SECTIONS.limits,
  ],
  [
    'window-offline',
    'a warning (finding:N): In HIGH and not connected for 10 min 1 s of its window, since 2026-11-20T07:05:00.000Z.',
    'HIGH keeps the cellular connection active between certain times of the day.',
    SECTIONS.power,
  ],
  [
    'recovery-offline',
    'a warning (finding:N): In RECOVERY and not connected for 10 min 1 s, since 2026-11-20T03:05:00.000Z.',
    'In recovery mode the cellular connection is kept active at all times.',
    SECTIONS.power,
  ],
  [
    'boot-back',
    'a violation (finding:N): The boot counter went back: boot 1 made an uplink at 2026-11-20T18:00:01.000Z, 12 h ' +
      'after boot 41 had made one.',
    'Uplinks are ordered by boot, so after a boot counter goes back (a wiped flash), everything new looks like late ' +
      'data.',
    SECTIONS.wire,
  ],
  [
    'wrong-ping-type',
    'a violation (finding:N): REASON_NETWORK_PING came as a gps ping; it is for cellular pings.',
    'Each reason belongs to a trigger, and a trigger makes certain types of ping.',
    SECTIONS.model,
  ],
  [
    'change-untold',
    'a violation (finding:N): REASON_CLOSE_CONNECTION says unlocked and the ping before it locked, ' +
      'without a state ping between.',
    'A change of the lock state is sent as a state change ping, before any other ping carries it.',
    SECTIONS.power,
  ],
  [
    'gps-before-cellular',
    'a violation (finding:N): A GPS ping REASON_STATE_PING was made without a cellular ping of that ' +
      'reason in the 10 min before.',
    'A trigger starts with a cellular ping, sent without waiting for a fix; its GPS pings follow.',
    SECTIONS.model,
  ],
  [
    'gps-missing',
    'a violation (finding:N): The lock closed the connection 20 s after its cellular ping ' +
      'REASON_STATE_PING, without a GPS ping and before the search for a fix ends.',
    'A state change and the daily ping include GPS; the search for a fix ends after 120 s, not before.',
    SECTIONS.model,
  ],
  [
    'close-missing',
    'a violation (finding:N): The lock ended the connection since 2026-11-20T06:00:00.000Z without a ' +
      'close-connection ping.',
    'A device that disconnects from the network says so with a close connection ping.',
    SECTIONS.ping,
  ],
  [
    'network-ping-missing',
    'a violation (finding:N): Connected for 17 min 1 s in RECOVERY, which keeps the connection, without ' +
      'a REASON_NETWORK_PING.',
    'A lock that keeps its connection says every 15 min that it is waiting for remote commands.',
    SECTIONS.model,
  ],
  [
    'network-ping-unkept',
    'a violation (finding:N): REASON_NETWORK_PING was sent in MID, which keeps no connection.',
    'REASON_NETWORK_PING says that the lock keeps its connection, which it does in HIGH and RECOVERY only.',
    SECTIONS.power,
  ],
  [
    'cadence-too-fast',
    'a violation (finding:N): Two GPS pings REASON_THEFT were made 7 s apart.',
    'A theft sends GPS every 10 s, a ride every 30 s, and a kept connection a network ping every 15 min.',
    SECTIONS.model,
  ],
  [
    'refresh-missing',
    'a violation (finding:N): GPS pings REASON_THEFT went on for 6 min 10 s without a cellular ping REASON_THEFT.',
    'While a theft or ride lasts, a cellular ping of its reason is sent at least every 5 min.',
    SECTIONS.model,
  ],
  [
    'locate-unasked',
    'a violation (finding:N): REASON_GPS_PING was sent, and no locate-gps command in the 24 h before.',
    'A lock sends its position with these reasons only when a command asks for it.',
    SECTIONS.model,
  ],
  [
    'ack-unasked',
    'a violation (finding:N): Command 8 was acknowledged, and was never sent to this lock.',
    'An acknowledgement answers a command, so one without a command shows a confused lock.',
    SECTIONS.wire,
  ],
  [
    'ack-untrue',
    'a violation (finding:N): Command 7 was acknowledged as ok, but not carried out: recovery is off.',
    'The answer “ok” says that a command was carried out, and merchants and operators rely on it.',
    SECTIONS.wire,
  ],
  [
    'command-ignored',
    'a warning (finding:N): Command 7 (siren) was sent at 2026-11-20T06:00:05.000Z and expired at ' +
      '2026-11-20T06:02:05.000Z without an acknowledgement, though the lock sent uplinks on that connection.',
    'A lock acknowledges each command that it receives, so silence on a live connection is a fault.',
    SECTIONS.wire,
  ],
  [
    'clock-back',
    'a warning (finding:N): The lock’s clock went back by 6 min 1 s, from 2026-11-20T06:00:01.000Z to ' +
      '2026-11-20T05:54:00.000Z.',
    'A lock stamps its uplinks in the order in which it makes them.',
    SECTIONS.wire,
  ],
  [
    'clock-behind',
    'a warning (finding:N): The lock’s time 2026-11-20T05:53:00.000Z is 7 min before its connection ' +
      'began, at 2026-11-20T06:00:00.000Z.',
    'What a lock makes on a connection was not made before that connection.',
    SECTIONS.wire,
  ],
  [
    'motion-unlikely',
    'a warning (finding:N): GPS pings REASON_THEFT say speed 0 at one place for 11 min 5 s.',
    'Theft and ride pings are made in motion, so their positions change, as fast as a bike can move.',
    SECTIONS.power,
  ],
];

t.test('for every rule, the steps say how it was broken, what the rule is, and why it exists', async (t) => {
  const gateway = await testGateway(t, { runClock: new ManualClock(NOW) });
  t.same(
    BROKEN.map(([rule]) => rule),
    RULES.filter(({ restsOn }) => restsOn !== 'world').map(({ rule }) => rule),
    'a new rule needs a row here',
  );
  for (const [index, [rule, found, because, restsOn]] of BROKEN.entries()) {
    const stored = await storeEvents(gateway.store, testMac(index + 1), readHandTrace(`${rule}.breaks-1.jsonl`));
    const id = stored.findings.get(rule) ?? 0;
    const { about, steps } = await requestWhy(gateway, `finding:${id}`);
    t.same(about, { kind: 'finding', id: `finding:${id}`, mac: formatMac(stored.mac) });
    // Steps about the limits of the answer and about two clocks may come before.
    const [first, second] = steps.filter(({ kind }) => !['bound', 'clocks'].includes(kind));
    t.match(first, { kind: 'rule-broken', code: rule, rests_on: SECTIONS.judge }, rule);
    t.equal(first?.sentence, `It broke ${rule}, ${found.replace('finding:N', `finding:${id}`)}`);
    t.match(second, { kind: 'rule-broken', code: rule, rests_on: restsOn });
    const brokenWhen = RULES.find((row) => row.rule === rule)?.brokenWhen;
    t.equal(second?.sentence, `${rule} is broken when: ${brokenWhen} ${because}`);
    t.match(steps.at(-1), { kind: 'next' }, 'the last step says what happens next');
    t.ok(steps.some(({ kind }) => kind === 'state') && steps.every((step) => step.rests_on !== ''));
  }
  // period-overdue is the 19th rule of BROKEN, so its lock has the 19th test MAC, which ends with hex 13.
  const overdue = await requestWhy(gateway, 'A4C138000013', '2026-11-21T07:01:01.000Z');
  t.match(sentenceOf(overdue.steps, 'rule-broken', 'period-overdue'), 'It broke period-overdue, a warning (finding:');
});

/** The steps for the uplink in one line of a hand-written trace without findings. Line 1 is the trace's header. */
function stepsForLine(file: string, line: number): readonly WhyStep[] {
  const { events, lock } = readHandTrace(file);
  const nowMs = events[0]?.atMs ?? 0;
  const { highWindow, connected: isConnected, ...known } = lock;
  const window = highWindow === null ? {} : { highWindow };
  const belief = newBelief(POWER_MODEL, '', nowMs, { ...known, ...window, isConnected, listeningSinceMs: nowMs });
  const replay = new HistoryReplay(POWER_MODEL, '', nowMs, false, belief);
  for (const event of events.slice(0, line - 2)) replay.take(judgeEventOf(event));
  const target = judgeEventOf(events[line - 2] as never);
  if (target.type !== 'uplink') throw new Error(`line ${line} of ${file} is no uplink`);
  return uplinkSteps(uplinkCase(POWER_MODEL, replay.endAt(target, [])), []);
}

t.test('for a rule that applies to only some uplinks, a step says why the uplink complies with it', async (t) => {
  const rows: readonly (readonly [rule: string, file: string, line: number, holds: string])[] = [
    ['theft-while-unlocked', 'theft-while-unlocked.holds-1', 3, 'the lock state is locked.'],
    ['airplane-silence', 'airplane-silence.holds-1', 5, 'it acknowledges command 7, which switched airplane mode on.'],
    ['airplane-silence', 'airplane-silence.holds-1', 6, 'it is the first close-connection ping to report the switch.'],
    ['low-battery-theft-only', 'low-battery-theft-only.holds-2', 3, 'its reason is REASON_THEFT, and theft tracking'],
    ['period-too-soon', 'period-too-soon.holds-1', 3, 'no daily ping before it is known.'],
    [
      'period-too-soon',
      'period-too-soon.holds-1',
      8,
      'the daily ping before it was made at 2026-11-20T06:00:01.000Z, 23 h earlier.',
    ],
    ['state-unchanged', 'state-unchanged.holds-1', 3, 'the uplink before it has no lock state to compare with.'],
    ['ride-tracking-off', 'ride-tracking-off.holds-1', 4, 'the ride-tracking switch is on.'],
    ['ride-while-locked', 'ride-while-locked.holds-1', 4, 'the lock state is unlocked.'],
    ['position-missing', 'position-missing.holds-1', 3, 'it is a GPS ping.'],
  ];
  for (const [rule, file, line, holds] of rows)
    t.match(
      sentenceOf(stepsForLine(`${file}.jsonl`, line), 'rule-kept', rule),
      `It complies with ${rule}: ${holds}`,
      rule,
    );
  t.match(
    sentenceOf(stepsForLine('period-too-soon.holds-1.jsonl', 3), 'rules-kept'),
    'It complies with the rules for each uplink of a lock: outside-connection, after-close, wrong-source',
  );
});

const MAC = 'A4:C1:38:F0:E1:D2';
const at = (time: string): number => Date.parse(`2026-11-20T${time}.000Z`);

/**
 * The steps for an uplink with this body, which a lock makes at 06:30 on a connection that began a second before. The
 * lock is in MID, unless `power` says otherwise. The gateway listens from 06:00 on.
 */
function stepsFor(body: Ping, power: object = {}, before: readonly JudgeEvent[] = [], source: Source = 'lock') {
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), false);
  for (const event of [CONNECT, ...before]) replay.take(event);
  const made = uplink({ boot: 41, sequence: 12, timeMs: at('06:30:00'), power, body });
  const event = { type: 'uplink', source, credential: 0, novelty: 'new', uplink: made, atMs: at('06:30:01') } as const;
  return uplinkSteps(uplinkCase(POWER_MODEL, replay.endAt(event, [])), []);
}

const CONNECT: JudgeEvent = { type: 'connect', source: 'lock', atMs: at('06:29:59') };
const gps = (reason: Reason, lockState: LockState = 'locked'): Ping => ({
  ...{ kind: 'gps', reason, lockState, batteryPercent: 80, ebikeVolts: null, tetherState: 'detached' },
  position: { latitudeDegrees: 52, longitudeDegrees: 4, uncertaintyMeters: 8 },
  ...{ speedMetersPerSecond: 0, directionDegrees: 0 },
});
const close = (batteryPercent = 80): Ping => ({
  kind: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  lockState: 'locked',
  batteryPercent,
});
const command = (id: number, type: 'unlock' | 'locate-gps' | 'locate-cell' | 'reset'): JudgeEvent => {
  return { type: 'command', id, command: { type }, atMs: at('06:29:59') };
};

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

/** The history of a lock up to a moment, with the events `after` it. The gateway listens from 06:00 on. */
function historyAt(atMs: number, events: readonly JudgeEvent[], after: readonly JudgeEvent[] = []): JudgedHistory {
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), false);
  for (const event of events) replay.take(event);
  return replay.endAtTime(atMs, after);
}

/** The step about the silence at a moment, after these events of a lock. */
function silenceAt(atMs: number, events: readonly JudgeEvent[]): WhyStep {
  return silenceStep(POWER_MODEL, historyAt(atMs, events).belief, atMs);
}

/**
 * The events of a connection from 06:01 to 06:02 on which the lock sends a ping with this body, and a close-connection
 * ping unless the connection ends otherwise. An uplink arrives as many ms after 06:01 as its sequence number.
 */
function visit(body: Ping, power: object = {}, cause: DisconnectCause = 'closed', boot = 1): JudgeEvent[] {
  const uplinkEvent = (sequence: number, sentBody: Ping): JudgeEvent => ({
    ...{ type: 'uplink', source: 'lock', credential: 0, novelty: 'new', atMs: at('06:01:00') + sequence },
    uplink: uplink({ boot, sequence, timeMs: at('06:01:00'), power, body: sentBody }),
  });
  const closing = cause === 'closed' ? [uplinkEvent(2, close(body.batteryPercent))] : [];
  return [
    { type: 'connect', source: 'lock', atMs: at('06:01:00') },
    uplinkEvent(1, body),
    ...closing,
    { type: 'disconnect', source: 'lock', cause, atMs: at('06:02:00') },
  ];
}

const DAILY = cellular({ reason: 'REASON_PERIOD_TRACKING' });
const AIRPLANE_ON: JudgeEvent = {
  ...{ type: 'command', id: 7, atMs: at('06:01:30') },
  command: { type: 'set-power', airplane: true },
};

const VISIT = visit(DAILY);
const OVERDUE =
  'it counts as late after 2026-11-21T07:01:00.001Z (period-overdue), counted from its last daily ping at ' +
  '2026-11-20T06:01:00.001Z';
const HIGH = visit(cellular(), { mode: 'HIGH' });
const RECOVERY = visit(cellular(), { recovery: true });
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

t.test('steps say that an uplink came late, has a used key, or has a withdrawn finding', async (t) => {
  const replay = new HistoryReplay(POWER_MODEL, MAC, at('06:00:00'), false);
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

t.test('steps say how the last connection ended, what came next, and whether the lock was out of reach', async (t) => {
  const endOf = (cause: DisconnectCause): string =>
    lastEndStep(historyAt(at('07:00:00'), visit(DAILY, {}, cause)))[0]?.sentence ?? '';
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
  t.match(lastEndStep(historyAt(at('06:35:00'), [...open, ...restart.slice(0, 1)]))[0], { code: 'gateway' });

  const late: JudgeEvent = {
    ...{ type: 'uplink', source: 'lock', credential: 0, novelty: 'new', atMs: at('11:00:05') },
    uplink: uplink({ sequence: 9, timeMs: at('08:00:00'), body: cellular({ reason: 'REASON_STATE_PING' }) }),
  };
  const reconnect: JudgeEvent = { type: 'connect', source: 'lock', atMs: at('11:00:00') };
  const moment = historyAt(at('09:00:00'), visit(DAILY, {}, 'dropped'), [reconnect, late]);
  const whileOutOfReach = afterSteps(POWER_MODEL, moment, at('09:00:00'));
  t.equal(
    sentenceOf(whileOutOfReach, 'after', 'next-contact'),
    'Next contact: it connected at 2026-11-20T11:00:00.000Z, 2 h later.',
  );
  t.equal(
    sentenceOf(whileOutOfReach, 'after', 'out-of-reach'),
    'One uplink made before then arrived late, from 2026-11-20T11:00:05.000Z on, the first 3 h after it was made: ' +
      'the lock was out of reach and buffered them.',
  );
  const whileDown = afterSteps(POWER_MODEL, historyAt(at('06:35:00'), open, restart.slice(1)), at('06:35:00'));
  t.equal(sentenceOf(whileDown, 'after', 'listening'), 'The gateway listened again from 2026-11-20T06:40:00.000Z on.');
  t.equal(sentenceOf(whileDown, 'after', 'nothing'), 'Nothing has come from it since.');
});

/** The store's record of a command. */
function record(change: Partial<CommandRecord> = {}): CommandRecord {
  return {
    ...{ id: 7, deviceId: 1, merchantId: 1, mac: testMac(1), command: { type: 'unlock' }, state: 'queued', detail: '' },
    ...{ createdAtMs: at('06:00:00'), notBeforeMs: null, expiresAtMs: at('06:02:00'), askedBy: 'Ada' },
    ...{ firstSentAtMs: null, lastSentAtMs: null, sentCount: 0, finishedAtMs: null },
    ...change,
  };
}

t.test('steps about a command say what it asks for, when it expires, its state and what it waits for', async (t) => {
  const requests: Readonly<Record<Command['type'], string>> = {
    unlock: 'to unlock.',
    lock: 'to lock, after a warning tone of 5 s.',
    siren: 'to sound its siren.',
    'locate-gps': 'where it is, by GPS: one GPS ping REASON_GPS_PING, or a failure where there is no fix within 120 s.',
    'locate-cell': 'where it is, by the network’s cells: one cellular ping REASON_CELL_PING.',
    'set-power': 'to change its power settings.',
    reset: 'to restart its modem: a close-connection ping, then REASON_RESET on the next connection.',
  };
  for (const [type, request] of Object.entries(requests)) {
    const steps = commandSteps(record({ command: { type } as Command }), null);
    t.equal(
      steps[0]?.sentence,
      `Command 7 asks lock A4:C1:38:00:00:01 ${request} Requested at 2026-11-20T06:00:00.000Z by Ada.`,
    );
  }
  const [, expiryStep] = commandSteps(record({ notBeforeMs: at('06:00:30') }), null);
  t.match(
    expiryStep?.sentence,
    'It was not to be sent before 2026-11-20T06:00:30.000Z. It expires at 2026-11-20T06:02:00.000Z, 1 min 30 s after ' +
      'it may first be sent. Unlock, lock and siren expire after 2 min, other commands after 24 h',
  );
  const states: Readonly<Record<CommandState, string>> = {
    queued: 'It is queued: it has not left for the lock yet.',
    sent: 'It was sent and is not answered: it is sent again under the same id, and the lock executes each id once.',
    done: 'It is done: the lock acknowledged it with ok.',
    rejected: 'It is rejected: the lock refused it, and gave the reason: too late.',
    failed: 'It failed: the lock tried and could not, and gave the reason: too late.',
    expired: 'It expired before the lock could be reached: it was never sent.',
    cancelled: 'It was cancelled before it was sent: by an operator, or because the lock was removed or moved.',
  };
  for (const [state, sentence] of Object.entries(states)) {
    const steps = commandSteps(record({ state: state as CommandState, detail: 'too late' }), null);
    t.equal(sentenceOf(steps, 'command', state), sentence);
  }
  const sent = { firstSentAtMs: at('06:00:01'), lastSentAtMs: at('06:00:31'), sentCount: 2 };
  const expired = commandSteps(record({ ...sent, state: 'expired', finishedAtMs: at('06:02:00') }), null);
  t.equal(
    sentenceOf(expired, 'command', 'sent-at'),
    'Sent at 2026-11-20T06:00:01.000Z, 2 times, last at 2026-11-20T06:00:31.000Z.',
  );
  t.match(
    sentenceOf(expired, 'command', 'expired'),
    'It expired without an answer: the lock won’t execute it any more',
  );
  t.match(sentenceOf(commandSteps(record({ ...sent, state: 'cancelled' }), null), 'command', 'cancelled'), 'moved to');
  const waits = {
    schedule: 'it was scheduled for later on purpose',
    turn: 'a lock gets its commands one at a time, in the order of their requests',
    'low-battery': 'no command is sent while the battery is below 10 %',
    airplane: 'in airplane mode nothing reaches the lock',
    connection: 'a lock receives commands only while it is connected',
    acknowledgement: 'the gateway holds a command until the lock has acknowledged it',
    sending: 'it is on its way',
  } as const;
  for (const [cause, sentence] of Object.entries(waits) as [keyof typeof waits, string][]) {
    const steps = commandSteps(record(), { for: cause, text: 'some text' });
    t.equal(sentenceOf(steps, 'command', `waits-${cause}`), `It waits: some text; ${sentence}.`);
  }
});

t.test('steps about quarantined bytes say what is wrong with them, and why they are acknowledged', async (t) => {
  const message = { id: 3, mac: testMac(1), receivedAtMs: at('06:00:00'), bytes: Buffer.from('hi') };
  const codes = ['too-long', 'undecodable', 'no-boot', 'no-sequence', 'no-time', 'no-body'];
  t.same(codes.sort(), Object.keys(REJECTION_WHY).sort());
  for (const code of codes) {
    const [rejection, quarantine] = quarantineSteps({ ...message, code, message: 'no boot' });
    t.match(
      rejection?.sentence,
      '2 bytes came at 2026-11-20T06:00:00.000Z and could not be accepted: no boot. The reason: an',
    );
    t.match(quarantine?.sentence, 'quarantined, but acknowledged: a lock can’t repair its firmware');
  }
});

t.test('why accepts the names that users copy, and rejects anything else with an error', async (t) => {
  const id = 'evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6';
  const mac = 'A4C138F0E1D2';
  t.match(parseSubject(id), { kind: 'event', id, key: { mac, boot: 41, sequence: 12 } });
  for (const text of [`${id}/3`, `${id}@3`, `delivery:${id}/3`])
    t.match(parseSubject(text), { kind: 'event', urlId: 3 });
  t.match(parseSubject('evt_test_123abc'), { kind: 'test-webhook' });
  t.same(parseSubject('finding:12'), { kind: 'finding', id: 12 });
  t.same(parseSubject('command 7'), { kind: 'command', id: 7 });
  t.same(parseSubject('quarantine:3'), { kind: 'quarantine', id: 3 });
  for (const text of ['A4:C1:38:F0:E1:D2', 'a4-c1-38-f0-e1-d2', 'a4c1.38f0.e1d2', mac])
    t.same(parseSubject(text), { kind: 'lock', mac });
  for (const text of ['A4:C1:38:F0:E1:D2 41/12', 'A4C138F0E1D2 #41/12', 'A4C138F0E1D2#41/12'])
    t.same(parseSubject(text), { kind: 'uplink', mac, boot: 41, sequence: 12 });
  const refused: readonly (readonly [string, RegExp])[] = [
    ['7', /^7 is ambiguous: use finding:7, command:7 or quarantine:7$/],
    ['41/12', /names an uplink but no lock: put the MAC before it, such as A4:C1:38:F0:E1:D2 41\/12$/],
    ['evt_nonsense', /can't be explained: expected evt_… \(an event\)/],
    ['', /can't be explained/],
    ['x'.repeat(5000), /can't be explained/],
  ];
  for (const [text, message] of refused) t.throws(() => parseSubject(text), { code: 'input-why', message });
  for (const text of [
    '2026-11-22T10:00:00.000Z',
    '2026-11-22T10:00Z',
    '10:00',
    '10:00:00',
    '2h',
    '2h ago',
    '120 min ago',
  ])
    t.equal(readMoment(text, NOW), NOW - Hours(2), text);
  t.equal(readMoment('13:00', NOW), NOW - Hours(23), 'a time of day later than now means yesterday');
  t.equal(readMoment('2026-11-22', NOW), NOW - Hours(12));
  t.throws(() => readMoment('soon', NOW), { code: 'input-at', message: /expected a date such as/ });
  t.throws(() => readMoment('2026-11-23', NOW), { code: 'input-at', message: /is in the future/ });
});

t.test('sentences are wrapped at a width; a word that is longer than the width is not broken', async (t) => {
  t.same(wrapWords('a long sentence, and a_word_that_is_far_too_long for it', 16), [
    'a long sentence,',
    'and',
    'a_word_that_is_far_too_long',
    'for it',
  ]);
});
