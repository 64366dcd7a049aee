/**
 * The rows of a certificate about requirements that concern more than one function: silence, order and cadence,
 * connections, commands, the content of pings, clocks and numbers. Each rule of the judge belongs to at least one row
 * here or in function-rows.ts. Pure data.
 */
import { COMMAND_TYPES } from '../../wire/ping-from-json.js';
import type { CertificateRow } from './row.js';

const MODES = 'Specification, Device power modes and switches';
const PING = 'Specification, Ping (device message)';
const REASONS = 'Specification, Ping reason values';
const TRIGGERS = 'protocol.md §2';
const WIRE = 'protocol.md §1';
const RULES = 'protocol.md §3';

/**
 * A row without its group, and without its state if it holds in all states. `seenWhen` is what in a trace shows that
 * the requirement `says` holds. Findings of the rules in `failsBy` fail the row, those in `notedBy` are only listed;
 * with `reasons` only findings about pings of these reasons count.
 */
type RowText = Omit<CertificateRow, 'group' | 'state'> & Partial<Pick<CertificateRow, 'state'>>;

function group(name: string, rows: readonly RowText[]): CertificateRow[] {
  return rows.map((row) => ({ state: null, ...row, group: name }));
}

const SILENCE = group('Silence and switches', [
  {
    row: 'low-battery-announced',
    state: 'LOW_BATTERY',
    says: 'A lock whose battery falls below 10 % says so with a close-connection ping.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'a close-connection ping below 10 %, after a ping at 10 % or more',
    failsBy: [],
  },
  {
    row: 'low-battery-silence',
    state: 'LOW_BATTERY',
    says: 'Below 10 % all cellular functionality and GPS tracking are off, except theft tracking.',
    section: MODES,
    seenWhen: '10 min without an uplink after the announcement',
    failsBy: ['low-battery-theft-only'],
  },
  {
    row: 'airplane-announced',
    state: 'AIRPLANE',
    says: 'A lock whose airplane mode is switched on says so with a close-connection ping.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'a close-connection ping with airplane on, after a ping with airplane off',
    failsBy: [],
  },
  {
    row: 'airplane-silence',
    state: 'AIRPLANE',
    says: 'In airplane mode all cellular and GPS functionality is off.',
    section: MODES,
    seenWhen: '10 min without an uplink after the announcement',
    failsBy: ['airplane-silence'],
  },
  {
    row: 'theft-only-locked',
    says: 'Only a locked lock reports a theft.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'REASON_THEFT with lock state locked',
    failsBy: ['theft-while-unlocked'],
  },
  {
    row: 'ride-only-unlocked',
    says: 'Only an unlocked lock reports a ride.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'REASON_UNLOCKED_MOVEMENT or REASON_UNLOCKED_PING with lock state unlocked',
    failsBy: ['ride-while-locked'],
  },
  {
    row: 'ride-tracking-switch',
    says: 'With ride tracking off, a ride makes no GPS pings.',
    section: MODES,
    seenWhen: 'REASON_UNLOCKED_MOVEMENT with ride tracking off',
    failsBy: ['ride-tracking-off'],
  },
]);

const ORDER = group('Order and cadence', [
  {
    row: 'change-told',
    says: 'Each change of the lock state makes its own ping, before any other ping carries it.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'a cellular ping REASON_STATE_PING with another lock state than the ping before',
    failsBy: ['change-untold', 'state-unchanged'],
  },
  {
    row: 'cellular-first',
    says: 'A GPS ping of a theft, state change or daily ping follows a cellular ping of its reason.',
    section: `${TRIGGERS}; ${RULES}`,
    seenWhen: 'such a GPS ping within 10 min of its cellular ping',
    failsBy: ['gps-before-cellular'],
  },
  {
    row: 'gps-follows',
    says: 'A lock does not close before the GPS ping of a state change or daily ping, unless it finds no fix in 120 s.',
    section: `${TRIGGERS}; ${RULES}`,
    seenWhen: 'a close-connection ping after such a GPS ping',
    failsBy: ['gps-missing'],
  },
  {
    row: 'theft-cadence',
    says: 'During a theft a GPS ping is made every 10 s.',
    section: TRIGGERS,
    seenWhen: 'two GPS pings REASON_THEFT 8 to 12 s apart',
    failsBy: ['cadence-too-fast'],
    reasons: ['REASON_THEFT'],
  },
  {
    row: 'theft-refresh',
    says: 'During a theft a cellular ping is made at least every 5 min.',
    section: `${TRIGGERS}; ${RULES}`,
    seenWhen: 'a further cellular ping REASON_THEFT in a run of GPS pings',
    failsBy: ['refresh-missing'],
    reasons: ['REASON_THEFT'],
  },
  {
    row: 'ride-cadence',
    says: 'During a tracked ride a GPS ping is made every 30 s.',
    section: TRIGGERS,
    seenWhen: 'two GPS pings REASON_UNLOCKED_PING 25 to 35 s apart',
    failsBy: ['cadence-too-fast'],
    reasons: ['REASON_UNLOCKED_PING'],
  },
  {
    row: 'ride-refresh',
    says: 'During a tracked ride a cellular ping is made at least every 5 min.',
    section: `${TRIGGERS}; ${RULES}`,
    seenWhen: 'a further cellular ping REASON_UNLOCKED_MOVEMENT in a run of GPS pings',
    failsBy: ['refresh-missing'],
    // Such a finding is about the GPS ping that came after too long without a cellular one.
    reasons: ['REASON_UNLOCKED_PING'],
  },
  {
    row: 'daily-once',
    says: 'The daily ping is made once daily.',
    section: 'Specification, Limits; protocol.md §2',
    seenWhen: 'two cellular pings REASON_PERIOD_TRACKING 23 to 25 h apart',
    failsBy: ['period-too-soon'],
    notedBy: ['period-overdue'],
  },
]);

const CONNECTIONS = group('Connections', [
  {
    row: 'connection-kept-high',
    state: 'HIGH',
    says: 'HIGH keeps the connection in its window, with a network ping every 15 min.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'two network pings 13 to 17 min apart on one connection',
    failsBy: ['network-ping-missing', 'cadence-too-fast'],
    notedBy: ['window-offline'],
    reasons: ['REASON_NETWORK_PING'],
  },
  {
    row: 'connection-kept-recovery',
    state: 'RECOVERY',
    says: 'Recovery mode keeps the connection at all times, with a network ping every 15 min.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'two network pings 13 to 17 min apart on one connection',
    failsBy: ['network-ping-missing', 'cadence-too-fast'],
    notedBy: ['recovery-offline'],
    reasons: ['REASON_NETWORK_PING'],
  },
  {
    row: 'network-ping-only-kept',
    says: 'Network pings are made only while the connection is kept.',
    section: `${REASONS}; ${TRIGGERS}`,
    seenWhen: 'a network ping in HIGH or RECOVERY',
    failsBy: ['network-ping-unkept'],
  },
  {
    row: 'connection-let-go',
    says: 'MID, LOW_BATTERY and AIRPLANE keep no connection, nor does HIGH outside its window.',
    section: `${MODES}; ${TRIGGERS}`,
    seenWhen: 'a connection that the lock closed in MID, within 10 min of its last uplink',
    failsBy: ['connection-unexplained'],
  },
  {
    row: 'close-announced',
    says: 'A lock that ends its connection has made a close-connection ping on it.',
    section: `${PING}; ${RULES}`,
    seenWhen: 'a connection that the lock closed after its close-connection ping',
    failsBy: ['close-missing'],
    notedBy: ['not-closed'],
  },
  {
    row: 'quiet-after-close',
    says: 'After its close-connection ping a lock makes no further uplink on the connection.',
    section: `${PING}; ${RULES}`,
    seenWhen: 'a connection whose last uplink is the close-connection ping',
    failsBy: ['after-close'],
  },
  {
    row: 'connected-first',
    says: 'A lock is connected when it sends.',
    section: `${WIRE}; ${RULES}`,
    seenWhen: 'an uplink on a connection that the trace has seen begin',
    failsBy: ['outside-connection'],
  },
  {
    row: 'late-data',
    says: 'What a lock made without coverage it sends later.',
    section: `${TRIGGERS}; ${RULES}`,
    seenWhen: 'an uplink received over 60 s after it was made',
    failsBy: [],
  },
]);

const COMMANDS = group('Commands', [
  ...COMMAND_TYPES.map((type) => ({
    row: `command-${type}`,
    says: `The lock acknowledges ${type}.`,
    section: WIRE,
    seenWhen: `the acknowledgement of a command ${type} that was sent`,
    failsBy: [],
  })),
  {
    row: 'commands-answered',
    says: 'A lock that was reached by a command acknowledges it before it expires.',
    section: `${WIRE}; ${RULES}`,
    seenWhen: 'an acknowledgement before the command’s expiry',
    failsBy: ['command-ignored'],
  },
  {
    row: 'acks-asked',
    says: 'A lock acknowledges only commands that it was sent.',
    section: RULES,
    seenWhen: 'the acknowledgement of a command that was sent',
    failsBy: ['ack-unasked'],
  },
  {
    row: 'acks-true',
    says: 'A command that is acknowledged as ok was carried out.',
    section: RULES,
    seenWhen:
      'ok to a set-power with the power that was asked, or to unlock or lock with the next ping in that lock state',
    failsBy: ['ack-untrue'],
  },
  {
    row: 'locates-asked',
    says: 'A lock reports where it is by REASON_GPS_PING or REASON_CELL_PING only when it was asked.',
    section: `${REASONS}; ${RULES}`,
    seenWhen: 'such a ping after a locate command',
    failsBy: ['locate-unasked'],
  },
]);

const CONTENT = group('Content of pings', [
  {
    row: 'cellular-content',
    says: 'A cellular ping carries lock state, battery percent, firmware version, reason and tether state.',
    section: PING,
    seenWhen: 'a cellular ping with a firmware version and a known lock state',
    failsBy: [],
  },
  {
    row: 'ebike-voltage',
    says: 'A ping carries the voltage of the e-bike’s battery when the lock is connected to one.',
    section: PING,
    seenWhen: 'a ping with an e-bike voltage',
    failsBy: [],
  },
  {
    row: 'tether-state',
    says: 'A ping carries the tether state.',
    section: PING,
    seenWhen: 'a ping with tether state attached or detached',
    failsBy: [],
  },
  {
    row: 'locate-position',
    says: 'REASON_GPS_PING and REASON_CELL_PING carry a position.',
    section: `${REASONS}; ${RULES}`,
    seenWhen: 'such a ping with a position',
    failsBy: ['position-missing'],
  },
  {
    row: 'ping-types',
    says: 'Each reason comes with a ping type that it can have.',
    section: `${PING}; ${RULES}`,
    seenWhen: 'a ping with a known reason',
    failsBy: ['wrong-ping-type'],
  },
  {
    row: 'known-reasons',
    says: 'Each reason is one of the specification’s table.',
    section: REASONS,
    seenWhen: 'a ping with a known reason',
    failsBy: ['unknown-reason'],
  },
  {
    row: 'phone-ping',
    says: 'PHONE, with the phone’s coordinates, comes from a phone, and from a phone nothing else.',
    section: REASONS,
    seenWhen: 'a ping PHONE with a position from a phone',
    failsBy: ['wrong-source'],
  },
  {
    row: 'values-in-range',
    says: 'Every value of a ping, and its time, is in its range.',
    section: RULES,
    seenWhen: 'a GPS ping',
    failsBy: ['out-of-range'],
  },
  {
    row: 'position-plausible',
    says: 'Positions move when the lock does, and no faster than 100 m/s.',
    section: RULES,
    seenWhen: 'two GPS pings of a lock within 10 min at different positions',
    failsBy: ['motion-unlikely'],
  },
]);

/** The row that only `world` events can show: they record what truly happened around a lock. */
export const POSITION_TRUE_ROW = 'position-true';

const CLOCK = group('Clock, numbers and truth', [
  {
    row: 'clock-true',
    says: 'The lock’s clock is right.',
    section: RULES,
    seenWhen: 'an uplink received within 60 s of the time that it carries',
    failsBy: ['clock-ahead', 'clock-back', 'clock-behind'],
  },
  {
    row: 'sequence-numbers',
    says: 'Uplinks are numbered 1, 2, 3 … since boot; no number is left out or used twice.',
    section: `${WIRE}; ${RULES}`,
    seenWhen: 'an uplink whose number follows the one before',
    failsBy: ['sequence-gap', 'sequence-conflict'],
  },
  {
    row: 'boot-counter',
    says: 'Each boot of the lock has a higher number than the boot before.',
    section: `${WIRE}; ${RULES}`,
    seenWhen: 'an uplink of a higher boot than the uplink before',
    failsBy: ['boot-back'],
  },
  {
    row: POSITION_TRUE_ROW,
    says: 'The lock is where its GPS pings say.',
    section: RULES,
    seenWhen: 'a GPS ping at the true position, in a trace with events of the world',
    failsBy: ['owed'],
  },
]);

/** All rows that do not follow from the power model's table. */
export const OBLIGATION_ROWS: readonly CertificateRow[] = [
  ...SILENCE,
  ...ORDER,
  ...CONNECTIONS,
  ...COMMANDS,
  ...CONTENT,
  ...CLOCK,
];
