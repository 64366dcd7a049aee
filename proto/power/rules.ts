/**
 * The rules that `judge` applies: a closed table (protocol.md §3). A *violation* is something that a lock must not do;
 * a *warning* may also be caused by the network. A *life* of a lock is the time between two wipes of its flash. This
 * file only describes the rules; judge/ checks them.
 */

export type Severity = 'violation' | 'warning';

export type RuleName =
  | 'airplane-silence'
  | 'low-battery-theft-only'
  | 'theft-while-unlocked'
  | 'period-too-soon'
  | 'state-unchanged'
  | 'ride-tracking-off'
  | 'ride-while-locked'
  | 'position-missing'
  | 'outside-connection'
  | 'after-close'
  | 'wrong-source'
  | 'unknown-reason'
  | 'out-of-range'
  | 'sequence-conflict'
  | 'connection-unexplained'
  | 'sequence-gap'
  | 'clock-ahead'
  | 'not-closed'
  | 'period-overdue'
  | 'window-offline'
  | 'recovery-offline'
  | 'boot-back'
  | 'owed'
  | MustRuleName;

/** The rules about what a lock must do: the ones that incomplete firmware breaks. */
export type MustRuleName =
  | 'wrong-ping-type'
  | 'change-untold'
  | 'gps-before-cellular'
  | 'gps-missing'
  | 'close-missing'
  | 'network-ping-missing'
  | 'network-ping-unkept'
  | 'cadence-too-fast'
  | 'refresh-missing'
  | 'locate-unasked'
  | 'ack-unasked'
  | 'ack-untrue'
  | 'command-ignored'
  | 'clock-back'
  | 'clock-behind'
  | 'motion-unlikely';

/**
 * What a finding depends on (protocol.md §3, "Late data").
 *
 * - `content`: what the uplinks contain. These findings are the same in whatever order the uplinks arrive.
 * - `receipt`: when uplinks arrive, or over which connection. Another order may lead to other findings.
 * - `time`: that something expected has not happened for some time.
 * - `world`: what truly happened around the lock, which only `trace check --world` knows. The judge never finds these.
 */
export type RestsOn = 'content' | 'receipt' | 'time' | 'world';

export interface RuleRow {
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly restsOn: RestsOn;
  /** One sentence: when the rule is broken. */
  readonly brokenWhen: string;
  /** The section that defines the rule. */
  readonly section: string;
}

const SECTION = 'protocol.md §3';

/** In these sentences, “in order” means: among uplinks of one boot without a missing number between them. */
const ROWS: readonly RuleRow[] = [
  {
    rule: 'airplane-silence',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'An uplink has airplane on and is neither the acknowledgement of the switch nor the first close-connection ' +
      'ping to report it.',
    section: SECTION,
  },
  {
    rule: 'low-battery-theft-only',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'The battery is below 10 % and the reason is neither REASON_THEFT nor REASON_CLOSE_CONNECTION.',
    section: SECTION,
  },
  {
    rule: 'theft-while-unlocked',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'REASON_THEFT comes with lock state unlocked.',
    section: SECTION,
  },
  {
    rule: 'period-too-soon',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'A REASON_PERIOD_TRACKING sequence starts less than 23 h after another, by the lock’s time; pings within ' +
      '10 min of the first are one sequence.',
    section: SECTION,
  },
  {
    rule: 'state-unchanged',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'A cellular ping REASON_STATE_PING has the lock state that the uplink before it had.',
    section: SECTION,
  },
  {
    rule: 'ride-tracking-off',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'REASON_UNLOCKED_PING comes while the ride-tracking switch is off.',
    section: SECTION,
  },
  {
    rule: 'ride-while-locked',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'REASON_UNLOCKED_PING or REASON_UNLOCKED_MOVEMENT comes with lock state locked.',
    section: SECTION,
  },
  {
    rule: 'position-missing',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'REASON_GPS_PING is not a GPS ping, or REASON_CELL_PING has no position.',
    section: SECTION,
  },
  {
    rule: 'outside-connection',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen: 'An uplink is received while the lock isn’t connected.',
    section: SECTION,
  },
  {
    rule: 'after-close',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen:
      'An uplink comes after the close-connection ping of the same connection; a close that was made before its ' +
      'connection belongs to the connection before.',
    section: SECTION,
  },
  {
    rule: 'wrong-source',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'PHONE comes from a lock, or another reason from a phone.',
    section: SECTION,
  },
  {
    rule: 'unknown-reason',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'A reason number is outside the table.',
    section: SECTION,
  },
  {
    rule: 'out-of-range',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'A value is outside its range in the table of fields, such as a battery over 100, a latitude beyond ±90 or a ' +
      'negative speed, or the time is outside 1970–9999.',
    section: SECTION,
  },
  {
    rule: 'sequence-conflict',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'A boot and sequence that was used before comes again with other content.',
    section: SECTION,
  },
  {
    rule: 'connection-unexplained',
    severity: 'violation',
    restsOn: 'time',
    brokenWhen:
      'A lock is connected for over 10 min without an uplink or a command, in a state that keeps no connection, ' +
      'counted from when it stopped keeping one.',
    section: SECTION,
  },
  {
    rule: 'sequence-gap',
    severity: 'warning',
    restsOn: 'receipt',
    brokenWhen:
      'More numbers are missing within a boot than the lock reports as dropped: 100 uplinks or 24 h later, or at a ' +
      'close-connection ping when no uplink waits in the lock.',
    section: SECTION,
  },
  {
    rule: 'clock-ahead',
    severity: 'warning',
    restsOn: 'receipt',
    brokenWhen: 'The lock’s time is over 5 min ahead of the time of receipt.',
    section: SECTION,
  },
  {
    rule: 'not-closed',
    severity: 'warning',
    restsOn: 'receipt',
    brokenWhen: 'A connection broke, timed out or was replaced by a new one without a close-connection ping.',
    section: SECTION,
  },
  {
    rule: 'period-overdue',
    severity: 'warning',
    restsOn: 'time',
    brokenWhen: '25 h passed without a period sequence, in a state that has period pings.',
    section: SECTION,
  },
  {
    rule: 'window-offline',
    severity: 'warning',
    restsOn: 'time',
    brokenWhen: 'A lock is in HIGH and is not connected for over 10 min of its window.',
    section: SECTION,
  },
  {
    rule: 'recovery-offline',
    severity: 'warning',
    restsOn: 'time',
    brokenWhen: 'A lock is in RECOVERY and is not connected for over 10 min.',
    section: SECTION,
  },
  {
    rule: 'boot-back',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'A boot made an uplink over 5 min after a higher boot of the same life had made one; times before 2020 don’t ' +
      'count.',
    section: SECTION,
  },
  {
    rule: 'wrong-ping-type',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'A ping type comes with a reason that it can’t have.',
    section: SECTION,
  },
  {
    rule: 'change-untold',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'In order, an uplink has another lock state than the ping before it and is not a cellular ' +
      'REASON_STATE_PING.',
    section: SECTION,
  },
  {
    rule: 'gps-before-cellular',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'In order, a GPS ping of a theft, state change or period comes without a cellular ping of ' +
      'that reason in the 10 min before.',
    section: SECTION,
  },
  {
    rule: 'gps-missing',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen:
      'In order, a lock closes the connection less than 120 s after a cellular REASON_STATE_PING ' +
      'or REASON_PERIOD_TRACKING, without a GPS ping.',
    section: SECTION,
  },
  {
    rule: 'close-missing',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen: 'A lock ends its connection without a close-connection ping.',
    section: SECTION,
  },
  {
    rule: 'network-ping-missing',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen:
      'A lock is connected for over 17 min without a REASON_NETWORK_PING, in a state that keeps the connection.',
    section: SECTION,
  },
  {
    rule: 'network-ping-unkept',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen: 'REASON_NETWORK_PING is made in MID, or in HIGH over 2 min outside its window.',
    section: SECTION,
  },
  {
    rule: 'cadence-too-fast',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen:
      'GPS pings of a theft come less than 8 s apart, of a ride less than 25 s, or three network ' +
      'pings less than 13 min.',
    section: SECTION,
  },
  {
    rule: 'refresh-missing',
    severity: 'violation',
    restsOn: 'content',
    brokenWhen: 'GPS pings of a theft or ride go on for over 6 min without a cellular ping of their trigger.',
    section: SECTION,
  },
  {
    rule: 'locate-unasked',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen: 'REASON_GPS_PING or REASON_CELL_PING comes, and no such locate command was sent in the 24 h before.',
    section: SECTION,
  },
  {
    rule: 'ack-unasked',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen: 'A command is acknowledged that was never sent to the lock.',
    section: SECTION,
  },
  {
    rule: 'ack-untrue',
    severity: 'violation',
    restsOn: 'receipt',
    brokenWhen:
      'A command is acknowledged as ok, and the lock’s power or its next ping shows that it was not carried out.',
    section: SECTION,
  },
  {
    rule: 'command-ignored',
    severity: 'warning',
    restsOn: 'time',
    brokenWhen:
      'A command expires without an acknowledgement, though the lock sent an uplink on its ' +
      'connection over 3 min later.',
    section: SECTION,
  },
  {
    rule: 'clock-back',
    severity: 'warning',
    restsOn: 'content',
    brokenWhen: 'In order, an uplink’s time is over 5 min before that of the uplink before it.',
    section: SECTION,
  },
  {
    rule: 'clock-behind',
    severity: 'warning',
    restsOn: 'receipt',
    brokenWhen: 'An uplink’s time is over 5 min before the connection or the command that it follows.',
    section: SECTION,
  },
  {
    rule: 'motion-unlikely',
    severity: 'warning',
    restsOn: 'content',
    brokenWhen: 'GPS pings go on without moving, move without getting anywhere, or are too far from each other.',
    section: SECTION,
  },
  {
    rule: 'owed',
    severity: 'violation',
    restsOn: 'world',
    brokenWhen:
      'With --world: an event of the world calls for an uplink or a connection that never came, or a GPS position ' +
      'is further from the true one than its uncertainty and 100 m.',
    section: SECTION,
  },
];

/** The table, in the order of protocol.md §3. */
export const RULES: readonly RuleRow[] = Object.freeze(ROWS.map((row) => Object.freeze(row)));

const ROW_BY_NAME: ReadonlyMap<string, RuleRow> = new Map(RULES.map((row) => [row.rule, row]));

/** A rule's row; undefined if no rule has that name. */
export function findRule(name: string): RuleRow | undefined {
  return ROW_BY_NAME.get(name);
}

/** The severity of a rule. Every `RuleName` has a row. */
export function severityOf(rule: RuleName): Severity {
  return (ROW_BY_NAME.get(rule) as RuleRow).severity;
}
