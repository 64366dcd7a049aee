/**
 * The rows of a certificate about what a lock does in each state: one for every combination of state, trigger and ping
 * type (a *cell*) that the power model allows. They follow from the model's table, so a change of the model changes
 * them. Pure.
 */
import type { EffectiveState, PowerModel, TriggerName } from '../../power/model.js';
import type { RuleName } from '../../power/rules.js';
import type { KnownReason } from '../../wire/reasons.js';
import { allowedCells, type BareCell } from '../coverage.js';
import type { CertificateRow } from './row.js';

/** What the rows about one function have in common, whatever the state. */
interface FunctionRow {
  readonly id: string;
  readonly says: string;
  /** What in a trace shows it. */
  readonly seenWhen: string;
  /** The rules whose findings fail the row, if they are about a ping of the reason. */
  readonly failsBy: readonly RuleName[];
  readonly reason: KnownReason;
}

const GROUP = 'Functions in each state';

/** The functions, by trigger and ping type. */
const FUNCTIONS: Readonly<Record<string, FunctionRow>> = {
  'theft cellular': {
    id: 'theft-cellular',
    says: 'A theft makes a cellular ping REASON_THEFT.',
    seenWhen: 'a cellular ping REASON_THEFT of a locked lock',
    failsBy: ['theft-while-unlocked', 'refresh-missing', 'wrong-ping-type'],
    reason: 'REASON_THEFT',
  },
  'theft gps': {
    id: 'theft-gps',
    says: 'A theft makes GPS pings REASON_THEFT.',
    seenWhen: 'a GPS ping REASON_THEFT of a locked lock',
    failsBy: ['theft-while-unlocked', 'gps-before-cellular', 'cadence-too-fast', 'wrong-ping-type'],
    reason: 'REASON_THEFT',
  },
  'state-change cellular': {
    id: 'state-change-cellular',
    says: 'Locking or unlocking makes a cellular ping REASON_STATE_PING.',
    seenWhen: 'a cellular ping REASON_STATE_PING',
    failsBy: ['change-untold', 'state-unchanged', 'wrong-ping-type'],
    reason: 'REASON_STATE_PING',
  },
  'state-change gps': {
    id: 'state-change-gps',
    says: 'Locking or unlocking makes a GPS ping REASON_STATE_PING.',
    seenWhen: 'a GPS ping REASON_STATE_PING',
    failsBy: ['gps-before-cellular', 'wrong-ping-type'],
    reason: 'REASON_STATE_PING',
  },
  'ride cellular': {
    id: 'ride-movement',
    says: 'A ride makes cellular pings REASON_UNLOCKED_MOVEMENT.',
    seenWhen: 'a cellular ping REASON_UNLOCKED_MOVEMENT of an unlocked lock',
    failsBy: ['ride-while-locked', 'wrong-ping-type'],
    reason: 'REASON_UNLOCKED_MOVEMENT',
  },
  'ride gps': {
    id: 'ride-tracking',
    says: 'With ride tracking on, a ride makes GPS pings REASON_UNLOCKED_PING.',
    seenWhen: 'a GPS ping REASON_UNLOCKED_PING of an unlocked lock with ride tracking on',
    failsBy: ['ride-while-locked', 'ride-tracking-off', 'refresh-missing', 'cadence-too-fast', 'wrong-ping-type'],
    reason: 'REASON_UNLOCKED_PING',
  },
  'period cellular': {
    id: 'daily-cellular',
    says: 'Once daily the lock makes a cellular ping REASON_PERIOD_TRACKING.',
    seenWhen: 'a cellular ping REASON_PERIOD_TRACKING',
    failsBy: ['period-too-soon', 'wrong-ping-type'],
    reason: 'REASON_PERIOD_TRACKING',
  },
  'period gps': {
    id: 'daily-gps',
    says: 'The daily ping carries GPS information: a GPS ping REASON_PERIOD_TRACKING.',
    seenWhen: 'a GPS ping REASON_PERIOD_TRACKING',
    failsBy: ['gps-before-cellular', 'wrong-ping-type'],
    reason: 'REASON_PERIOD_TRACKING',
  },
  'kept-connection cellular': {
    id: 'network-ping',
    says: 'While the connection is kept, the lock makes cellular pings REASON_NETWORK_PING.',
    seenWhen: 'a cellular ping REASON_NETWORK_PING',
    failsBy: ['network-ping-missing', 'cadence-too-fast', 'wrong-ping-type'],
    reason: 'REASON_NETWORK_PING',
  },
  'locate-gps gps': {
    id: 'locate-gps',
    says: 'The command to locate by GPS makes a GPS ping REASON_GPS_PING.',
    seenWhen: 'a GPS ping REASON_GPS_PING',
    failsBy: ['locate-unasked', 'position-missing'],
    reason: 'REASON_GPS_PING',
  },
  'locate-cell cellular': {
    id: 'locate-cell',
    says: 'The command to locate by cell makes a cellular ping REASON_CELL_PING with a position.',
    seenWhen: 'a cellular ping REASON_CELL_PING with a position',
    failsBy: ['locate-unasked', 'position-missing', 'wrong-ping-type'],
    reason: 'REASON_CELL_PING',
  },
  'reset cellular': {
    id: 'reset-ping',
    says: 'A restart of the modem makes a cellular ping REASON_RESET.',
    seenWhen: 'a cellular ping REASON_RESET',
    failsBy: ['wrong-ping-type'],
    reason: 'REASON_RESET',
  },
};

/** The states that a lock announces with a close-connection ping. That ping has its own rows in obligation-rows.ts. */
const SILENT_STATES: ReadonlySet<EffectiveState> = new Set(['AIRPLANE', 'LOW_BATTERY']);

/** The function's id in a state, as in `theft-cellular-mid`. */
export function stateRowId(functionId: string, state: EffectiveState): string {
  return `${functionId}-${state.toLowerCase().replaceAll('_', '-')}`;
}

/** The id of the row that a kind of ping in a state shows; null if the model does not allow that ping there. */
export function functionRowOf(cell: Pick<BareCell, 'state' | 'trigger' | 'pingType'>): string | null {
  const functionRow = FUNCTIONS[`${cell.trigger} ${cell.pingType}`];
  return functionRow === undefined ? null : stateRowId(functionRow.id, cell.state);
}

/**
 * The ids of the rows that require a trigger's pings, which fail when a lock did not make them (rule `owed`): those of
 * the lock's state, or those of all states if the state is unknown or does not have the trigger.
 */
export function rowsRequiring(model: PowerModel, trigger: TriggerName, state: EffectiveState | null): string[] {
  const cells = allowedCells(model).filter((cell) => cell.trigger === trigger);
  const ofState = cells.filter((cell) => cell.state === state);
  return (ofState.length > 0 ? ofState : cells).flatMap((cell) => functionRowOf(cell) ?? []);
}

/** One row for each kind of ping and state that the model allows. */
export function functionRows(model: PowerModel): CertificateRow[] {
  const rows: CertificateRow[] = [];
  for (const cell of allowedCells(model)) {
    // Only a close-connection ping has no trigger.
    if (cell.trigger === null) {
      if (!SILENT_STATES.has(cell.state)) rows.push(closeRow(cell.state));
      continue;
    }
    const functionRow = FUNCTIONS[`${cell.trigger} ${cell.pingType}`];
    if (functionRow === undefined) continue;
    const { id, reason, failsBy, ...texts } = functionRow;
    rows.push({
      ...texts,
      failsBy: [...failsBy, 'owed'],
      row: stateRowId(id, cell.state),
      group: GROUP,
      state: cell.state,
      section: 'Specification, Device power modes and switches; protocol.md §2',
      reasons: [reason],
    });
  }
  return rows;
}

function closeRow(state: EffectiveState): CertificateRow {
  return {
    row: stateRowId('close-connection', state),
    group: GROUP,
    state,
    says: 'A lock that disconnects makes a close-connection ping first.',
    section: 'Specification, Ping (device message); Specification, Ping reason values; protocol.md §2',
    seenWhen: 'a close-connection ping REASON_CLOSE_CONNECTION',
    failsBy: ['wrong-ping-type'],
    reasons: ['REASON_CLOSE_CONNECTION'],
  };
}
