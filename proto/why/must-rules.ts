/**
 * The second half of rules.ts, for the rules that incomplete firmware breaks (protocol.md §3): why each rule exists, to
 * which uplinks it applies, and why an uplink complies with it. Pure data and functions.
 */
import type { MustRuleName } from '../power/rules.js';
import { isReason, type RuleCase, type RuleWhy } from './rule-why.js';
import { SECTIONS } from './step.js';

const isClose = ({ body }: RuleCase): boolean => body.kind === 'close_connection';
const isAck = ({ body }: RuleCase): boolean => body.kind === 'ack';
/** Whether it is a ping of a *run*: the GPS pings that a theft or a tracked ride makes one after another. */
const isRunPing = isReason('REASON_THEFT', 'REASON_UNLOCKED_PING');

/** The rows, in the order of the table of rules. */
export const MUST_RULE_WHY: Readonly<Record<MustRuleName, RuleWhy>> = Object.freeze({
  'wrong-ping-type': {
    because: 'Each reason belongs to a trigger, and a trigger makes certain types of ping.',
    restsOn: SECTIONS.model,
    appliesTo: 'own',
  },
  'change-untold': {
    because: 'A change of the lock state is sent as a state change ping, before any other ping carries it.',
    restsOn: SECTIONS.power,
    appliesTo: ({ body }) => body.kind !== 'ack' && body.lockState !== 'unknown',
    whyComplies: ({ body }) =>
      body.kind === 'cellular' && body.reason === 'REASON_STATE_PING'
        ? 'it is itself the state change ping'
        : 'it has the lock state of the ping before it, or that ping is not known',
  },
  'gps-before-cellular': {
    because: 'A trigger starts with a cellular ping, sent without waiting for a fix; its GPS pings follow.',
    restsOn: SECTIONS.model,
    appliesTo: (ruleCase) =>
      ruleCase.body.kind === 'gps' && isReason('REASON_THEFT', 'REASON_STATE_PING', 'REASON_PERIOD_TRACKING')(ruleCase),
    whyComplies: () =>
      'a cellular ping of its reason was made in the 10 min before, or not all uplinks of that time are known',
  },
  'gps-missing': {
    because: 'A state change and the daily ping include GPS; the search for a fix ends after 120 s, not before.',
    restsOn: SECTIONS.model,
    appliesTo: isClose,
    whyComplies: () => 'no GPS ping was still due when it was made, or something explains why the search ended',
  },
  'close-missing': {
    because: 'A device that disconnects from the network says so with a close connection ping.',
    restsOn: SECTIONS.ping,
    appliesTo: 'connection',
  },
  'network-ping-missing': {
    because: 'A lock that keeps its connection says every 15 min that it is waiting for remote commands.',
    restsOn: SECTIONS.model,
    appliesTo: 'own',
  },
  'network-ping-unkept': {
    because: 'REASON_NETWORK_PING says that the lock keeps its connection, which it does in HIGH and RECOVERY only.',
    restsOn: SECTIONS.power,
    appliesTo: isReason('REASON_NETWORK_PING'),
    whyComplies: () => 'it was made in a state that keeps the connection, or in one with a rule of its own',
  },
  'cadence-too-fast': {
    because: 'A theft sends GPS every 10 s, a ride every 30 s, and a kept connection a network ping every 15 min.',
    restsOn: SECTIONS.model,
    appliesTo: isReason('REASON_THEFT', 'REASON_UNLOCKED_PING', 'REASON_NETWORK_PING'),
    whyComplies: () => 'it came no sooner after the one before it than the model allows',
  },
  'refresh-missing': {
    because: 'While a theft or ride lasts, a cellular ping of its reason is sent at least every 5 min.',
    restsOn: SECTIONS.model,
    appliesTo: (ruleCase) => ruleCase.body.kind === 'gps' && isRunPing(ruleCase),
    whyComplies: () =>
      'a cellular ping of its trigger was made in the 6 min before, or its run has not lasted that long',
  },
  'locate-unasked': {
    because: 'A lock sends its position with these reasons only when a command asks for it.',
    restsOn: SECTIONS.model,
    appliesTo: isReason('REASON_GPS_PING', 'REASON_CELL_PING'),
    whyComplies: () => 'such a locate command was sent in the 24 h before, or not all commands of that time are known',
  },
  'ack-unasked': {
    because: 'An acknowledgement answers a command, so one without a command shows a confused lock.',
    restsOn: SECTIONS.wire,
    appliesTo: isAck,
    whyComplies: ({ body }) =>
      body.kind === 'ack' ? `command ${body.commandId} was sent, or is too old to be known` : '',
  },
  'ack-untrue': {
    because: 'The answer “ok” says that a command was carried out, and merchants and operators rely on it.',
    restsOn: SECTIONS.wire,
    appliesTo: isAck,
    whyComplies: ({ body }) =>
      body.kind === 'ack' && body.result !== 'ok'
        ? `it says ${body.result}`
        : 'nothing that the lock sent contradicts it so far',
  },
  'command-ignored': {
    because: 'A lock acknowledges each command that it receives, so silence on a live connection is a fault.',
    restsOn: SECTIONS.wire,
    appliesTo: 'time',
  },
  'clock-back': {
    because: 'A lock stamps its uplinks in the order in which it makes them.',
    restsOn: SECTIONS.wire,
    appliesTo: 'own',
  },
  'clock-behind': {
    because: 'What a lock makes on a connection was not made before that connection.',
    restsOn: SECTIONS.wire,
    appliesTo: (ruleCase) => isClose(ruleCase) || isAck(ruleCase),
    whyComplies: () => 'its time is not over 5 min before what it follows',
  },
  'motion-unlikely': {
    because: 'Theft and ride pings are made in motion, so their positions change, as fast as a bike can move.',
    restsOn: SECTIONS.power,
    appliesTo: ({ body }) => body.kind !== 'ack' && body.kind !== 'close_connection' && body.position !== null,
    whyComplies: () => 'its position and speed fit those before it',
  },
});
