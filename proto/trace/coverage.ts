/**
 * Coverage: counts which of the power model's states, triggers (reasons to send) and ping reasons occur in a trace, so
 * that a tester sees what the trace does not cover. Does no I/O.
 */

import type { EffectiveState, PowerModel, StateRow, TriggerName, TriggerRow } from '../power/model.js';
import type { Ping } from '../wire/ping.js';
import type { Reason } from '../wire/reasons.js';

/** One cell of the coverage table: the pings of one reason and type that were made in one state. */
export interface CoverageCell {
  readonly state: EffectiveState;
  /** What made the lock send the ping; null if no trigger explains it, as for a close-connection ping. */
  readonly trigger: TriggerName | null;
  readonly reason: Reason;
  readonly pingType: Ping['kind'];
  /** Whether the model allows this ping in that state. */
  readonly isAllowed: boolean;
  readonly pings: number;
}

/** Counts pings by state, trigger and reason. */
export class Coverage {
  readonly #model: PowerModel;
  readonly #counts = new Map<string, number>();
  readonly #seen = new Map<string, Omit<CoverageCell, 'isAllowed' | 'pings'>>();

  constructor(model: PowerModel) {
    this.#model = model;
  }

  /** Counts a lock's ping that was made in a state. */
  note(state: EffectiveState, ping: Ping): void {
    const key = `${state} ${ping.reason} ${ping.kind}`;
    const count = this.#counts.get(key);
    this.#counts.set(key, (count ?? 0) + 1);
    if (count !== undefined) return;
    const trigger = triggerOf(this.#model, ping);
    this.#seen.set(key, { state, trigger, reason: ping.reason, pingType: ping.kind });
  }

  /** All cells that the model allows, whether or not they occurred, then those that occurred but are not allowed. */
  cells(): CoverageCell[] {
    const cells: CoverageCell[] = [];
    const listedKeys = new Set<string>();
    for (const cell of allowedCells(this.#model)) {
      const key = `${cell.state} ${cell.reason} ${cell.pingType}`;
      listedKeys.add(key);
      cells.push({ ...cell, isAllowed: true, pings: this.#counts.get(key) ?? 0 });
    }
    for (const [key, cell] of this.#seen) {
      if (!listedKeys.has(key)) cells.push({ ...cell, isAllowed: false, pings: this.#counts.get(key) ?? 0 });
    }
    return cells;
  }
}

function triggerOf(model: PowerModel, ping: Ping): TriggerName | null {
  for (const row of model.triggers) {
    if (ping.reason === (ping.kind === 'gps' ? row.gpsReason : row.cellularReason)) return row.trigger;
  }
  return null;
}

/** A cell without its count. */
export type BareCell = Omit<CoverageCell, 'isAllowed' | 'pings'>;

/** The kinds of pings that each state of the model allows, in the order of its tables. */
export function allowedCells(model: PowerModel): BareCell[] {
  const cells: BareCell[] = [];
  for (const row of model.states) {
    const { state } = row;
    for (const trigger of model.triggers) {
      const { cellularReason, gpsReason } = trigger;
      if (!isAllowed(row, trigger)) continue;
      if (cellularReason !== null)
        cells.push({ state, trigger: trigger.trigger, reason: cellularReason, pingType: 'cellular' });
      if (gpsReason !== null && (trigger.trigger !== 'ride' || row.rideTracking))
        cells.push({ state, trigger: trigger.trigger, reason: gpsReason, pingType: 'gps' });
    }
    cells.push({ state, trigger: null, reason: 'REASON_CLOSE_CONNECTION', pingType: 'close_connection' });
  }
  return cells;
}

/** Whether a state allows a trigger. Locating and resetting are allowed if the lock takes commands (protocol.md §2). */
function isAllowed(row: StateRow, { trigger }: TriggerRow): boolean {
  switch (trigger) {
    case 'theft':
      return row.theft;
    case 'state-change':
      return row.stateChange;
    case 'ride':
      return row.cellOnInRide;
    case 'period':
      return row.period;
    case 'kept-connection':
      return row.connectionKept !== 'never';
    default:
      return row.commands;
  }
}
