/**
 * For each rule of power/rules.ts: why the rule exists, to which uplinks it applies, and why an uplink complies with it
 * (protocol.md §3). There is no sentence for a broken rule here: the message of the judge's finding explains it. Those
 * of protocol.md, "What a lock must do", are in must-rules.ts.
 */

import type { Belief } from '../power/judge/belief.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { RuleName } from '../power/rules.js';
import { ownUplinks, uplinkLabel } from './history.js';
import { MUST_RULE_WHY } from './must-rules.js';
import { isReason, type RuleCase, type RuleWhy } from './rule-why.js';
import { SECTIONS } from './step.js';

function lockStateOf({ body }: RuleCase): string {
  return body.kind === 'ack' ? 'unknown' : body.lockState;
}

/**
 * The rows, in the order of the table of rules. `appliesTo` is a function if a rule is for some uplinks of a lock only.
 * Else the rule is for `each` uplink, for all of the lock's `own`, or for no single one: for a `connection`, for `time`
 * that passed, or for what happened in the `world`.
 */
export const RULE_WHY: Readonly<Record<RuleName, RuleWhy>> = Object.freeze({
  'airplane-silence': {
    because: 'Airplane mode disables all cellular and GPS functionality.',
    restsOn: SECTIONS.power,
    appliesTo: ({ event }) => event.uplink.power.airplane,
    whyComplies: ({ body }) =>
      body.kind === 'ack'
        ? `it acknowledges command ${body.commandId}, which switched airplane mode on`
        : 'it is the first close-connection ping to report the switch',
  },
  'low-battery-theft-only': {
    because: 'Below 10 % all cellular functionality and GPS tracking are disabled, except theft tracking.',
    restsOn: SECTIONS.power,
    appliesTo: ({ body }) => body.kind !== 'ack' && body.batteryPercent < 10,
    whyComplies: ({ body }) =>
      body.kind === 'close_connection'
        ? 'its reason is REASON_CLOSE_CONNECTION, which says that the lock falls silent'
        : 'its reason is REASON_THEFT, and theft tracking goes on below 10 %',
  },
  'theft-while-unlocked': {
    because: 'Theft tracking is for a lock that is locked and in motion.',
    restsOn: SECTIONS.power,
    appliesTo: isReason('REASON_THEFT'),
    whyComplies: (ruleCase) => `the lock state is ${lockStateOf(ruleCase)}`,
  },
  'period-too-soon': {
    because: 'The daily ping is sent once daily.',
    restsOn: SECTIONS.limits,
    appliesTo: isReason('REASON_PERIOD_TRACKING'),
    whyComplies: whyPeriodComplies,
  },
  'state-unchanged': {
    because: 'State change pings are sent when the device is locked or unlocked.',
    restsOn: SECTIONS.power,
    appliesTo: ({ body }) => body.kind === 'cellular' && body.reason === 'REASON_STATE_PING',
    whyComplies: whyStateComplies,
  },
  'ride-tracking-off': {
    because: 'Ride tracking information is sent when ride tracking is enabled.',
    restsOn: SECTIONS.power,
    appliesTo: isReason('REASON_UNLOCKED_PING'),
    whyComplies: () => 'the ride-tracking switch is on',
  },
  'ride-while-locked': {
    because: 'A ride is what a lock does while it is unlocked and in motion.',
    restsOn: SECTIONS.power,
    appliesTo: isReason('REASON_UNLOCKED_PING', 'REASON_UNLOCKED_MOVEMENT'),
    whyComplies: (ruleCase) => `the lock state is ${lockStateOf(ruleCase)}`,
  },
  'position-missing': {
    because: 'These two reasons say that location data is sent, by GPS or by cellular positioning.',
    restsOn: SECTIONS.reasons,
    appliesTo: isReason('REASON_GPS_PING', 'REASON_CELL_PING'),
    whyComplies: ({ body }) => (body.kind === 'gps' ? 'it is a GPS ping' : 'it carries a position'),
  },
  'outside-connection': {
    because: 'A device emits pings whenever it has an active cellular connection, so none comes without one.',
    restsOn: SECTIONS.events,
    appliesTo: 'own',
  },
  'after-close': {
    because: 'A close connection ping says that the device disconnects, so nothing follows it on that connection.',
    restsOn: SECTIONS.ping,
    appliesTo: 'own',
  },
  'wrong-source': {
    because:
      'PHONE is for data that the user’s phone sends instead of the device, and the credential says which it was.',
    restsOn: SECTIONS.reasons,
    appliesTo: 'each',
  },
  'unknown-reason': {
    because: 'The field reason takes the values of the table.',
    restsOn: SECTIONS.events,
    appliesTo: 'each',
  },
  'out-of-range': {
    because: 'An impossible value (a battery of 255 %, a latitude of 214°) is reported, never dropped.',
    restsOn: SECTIONS.wire,
    appliesTo: 'each',
  },
  'sequence-conflict': {
    because: 'A boot and a sequence number identify one uplink of a lock, for ever.',
    restsOn: SECTIONS.wire,
    appliesTo: 'each',
  },
  'connection-unexplained': {
    because: 'In this state a lock keeps no connection, and every byte of one is billed.',
    restsOn: SECTIONS.service,
    appliesTo: 'time',
  },
  'sequence-gap': {
    because: 'A lock numbers each uplink that it makes, so a number that never comes is an uplink that was lost.',
    restsOn: SECTIONS.wire,
    appliesTo: 'own',
  },
  'clock-ahead': {
    because: 'A lock stamps its uplinks by its own clock, and merchants receive that time.',
    restsOn: SECTIONS.wire,
    appliesTo: 'own',
  },
  'not-closed': {
    because: 'A device that disconnects from the network says so with a close connection ping.',
    restsOn: SECTIONS.ping,
    appliesTo: 'connection',
  },
  'period-overdue': {
    because: 'The daily ping is sent once daily; an hour of delay is put down to the network.',
    restsOn: SECTIONS.limits,
    appliesTo: 'time',
  },
  'window-offline': {
    because: 'HIGH keeps the cellular connection active between certain times of the day.',
    restsOn: SECTIONS.power,
    appliesTo: 'time',
  },
  'recovery-offline': {
    because: 'In recovery mode the cellular connection is kept active at all times.',
    restsOn: SECTIONS.power,
    appliesTo: 'time',
  },
  'boot-back': {
    because:
      'Uplinks are ordered by boot, so after a boot counter goes back (a wiped flash), everything new looks like ' +
      'late data.',
    restsOn: SECTIONS.wire,
    appliesTo: 'own',
  },
  owed: {
    because: 'What a lock sends follows from what happens to it, so what happened and was not sent is a fault.',
    restsOn: SECTIONS.model,
    appliesTo: 'world',
  },
  ...MUST_RULE_WHY,
});

/** Whether the rule applies only to some uplinks, and to this one. */
export function appliesInParticular(rule: RuleName, ruleCase: RuleCase): boolean {
  const { appliesTo } = RULE_WHY[rule];
  return typeof appliesTo === 'function' && ruleCase.event.source === 'lock' && appliesTo(ruleCase);
}

/** Whether the rule applies to all uplinks of this source. */
export function appliesToEvery(rule: RuleName, ruleCase: RuleCase): boolean {
  const { appliesTo } = RULE_WHY[rule];
  return appliesTo === 'each' || (appliesTo === 'own' && ruleCase.event.source === 'lock');
}

function whyPeriodComplies({ model, event, history }: RuleCase): string {
  const { timeMs } = event.uplink;
  const { periodSequenceSpan } = model.bounds;
  const times = history.beliefBefore.periods.map((ping) => ping.timeMs).filter((each) => each <= timeMs);
  const startMs = lastSeriesStart(times, periodSequenceSpan);
  if (startMs === undefined) return 'no daily ping before it is known';
  const span = describeSpan(periodSequenceSpan);
  if (timeMs - startMs <= periodSequenceSpan)
    return `it belongs to the daily ping of ${describeTime(startMs)}: pings within ${span} are one sequence`;
  return `the daily ping before it was made at ${describeTime(startMs)}, ${describeSpan(timeMs - startMs)} earlier`;
}

/** When the last series of `times`, which are sorted, started: the times within `spanMs` of a first one. */
function lastSeriesStart(times: readonly number[], spanMs: number): number | undefined {
  let startMs: number | undefined;
  for (const each of times) if (startMs === undefined || each - startMs > spanMs) startMs = each;
  return startMs;
}

function whyStateComplies(ruleCase: RuleCase): string {
  const { event, history } = ruleCase;
  const { boot, sequence } = event.uplink;
  const state = lockStateOf(ruleCase);
  // A life of a lock ends when its flash is wiped; boots are counted from 1 again.
  const before = ownUplinks(history.before).find(({ credential, life, uplink }) => {
    const isOfBoot = credential === event.credential && life === event.life && uplink.boot === boot;
    return isOfBoot && uplink.sequence === sequence - 1;
  });
  const body = before?.uplink.body;
  if (before === undefined || body === undefined || body.kind === 'ack')
    return whyFirstStateComplies(history.beliefBefore, state);
  // LOW_BATTERY and AIRPLANE have no state-change pings, so the change was reported only now.
  if (body.lockState === state)
    return `the uplink before it (${uplinkLabel(before.uplink)}) was made in a silent state`;
  return `the uplink before it (${uplinkLabel(before.uplink)}) reports ${body.lockState}, and this one ${state}`;
}

function whyFirstStateComplies({ initialLockState, uplinks }: Belief, state: string): string {
  if (uplinks === 0 && initialLockState !== 'unknown')
    return `before it the lock was known to be ${initialLockState}, and this one reports ${state}`;
  return 'the uplink before it has no lock state to compare with';
}
