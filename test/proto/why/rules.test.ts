// Checks the steps of `lockgate why` about rules: how an uplink broke a rule, or why it complies. A step is a sentence
// with a kind, a code and the section that it rests on. The sentences are written from the specification.
import t from 'tap';
import { ManualClock } from '../../../proto/clock.js';
import { newBelief } from '../../../proto/power/judge/belief.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import { HistoryReplay } from '../../../proto/why/history.js';
import { SECTIONS, type WhyStep } from '../../../proto/why/step.js';
import { uplinkCase, uplinkSteps } from '../../../proto/why/uplink.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { requestWhy } from '../../helpers/cli/why-answer.js';
import { testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { judgeEventOf, readHandTrace, storeEvents } from '../../helpers/store/stored-trace.js';
import { NOW, sentenceOf } from '../../helpers/why/lock-history.js';

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
    'An impossible value (a battery of 255 %, a latitude of 214°) is reported, never dropped.',
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
    'a warning (finding:N): The connection that began at 2026-11-20T06:00:00.000Z broke without a ' +
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
    'a violation (finding:N): The lock ended the connection that began at 2026-11-20T06:00:00.000Z without a ' +
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
  // The MAC, here empty, is in no step that the tests read.
  const isCut = false;
  const replay = new HistoryReplay(POWER_MODEL, '', nowMs, isCut, belief);
  for (const event of events.slice(0, line - 2)) replay.take(judgeEventOf(event));
  // The first event is in line 2. If there is none in this line, the call throws.
  const target = judgeEventOf(events[line - 2] as never);
  if (target.type !== 'uplink') throw new Error(`line ${line} of ${file} is no uplink`);
  // Nothing came after the uplink, and no finding about it stands.
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
