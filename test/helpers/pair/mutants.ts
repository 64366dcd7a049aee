/**
 * The mutants of the mutation check. A mutant is a simulated lock with one fault: a power model (the table of states,
 * triggers and timings that firmware follows) with one altered row, reason, number or rank, or a firmware fault outside
 * the model. The check proves that the scenarios, or the judge of the gateway, find each mutant.
 */
import type { StepWrapper } from '../../../firmware-sim/faults/bug-wrappers.js';
import {
  acknowledgeUnasked,
  acknowledgeWithoutDoing,
  closeWithoutPing,
  freezePosition,
  ignoreCommands,
  sendNetworkPingInMid,
  sendRideGpsAsCellular,
  sendUnaskedLocate,
  setClockBehind,
  stepClockBackAtClose,
} from '../../../firmware-sim/faults/omission-wrappers.js';
import { Hours } from '../../../proto/clock.js';
import { POWER_MODEL, type PowerModel, type StateRow, type TriggerRow } from '../../../proto/power/model.js';
import { NEVER } from '../../../proto/power/step/reading.js';
import type { KnownReason } from '../../../proto/wire/reasons.js';
import type { Alteration } from './scenario.js';

/** A faulty lock. The name says what is wrong with it. */
export interface Mutant extends Alteration {
  readonly name: string;
}

/** The same type with members that can be altered. */
type Altered<T> = T extends number | string | boolean | null ? T : { -readonly [Key in keyof T]: Altered<T[Key]> };

/** A mutant whose power model is altered. */
function modelMutant(name: string, alter: (model: Altered<PowerModel>) => void): Mutant {
  const model = structuredClone(POWER_MODEL) as Altered<PowerModel>;
  alter(model);
  return { name, model: model as PowerModel };
}

/** The members of a state's row that are true or false. */
const FLAGS = ['theft', 'period', 'stateChange', 'cellOnInRide', 'rideTracking', 'commands'] as const;
/** When a lock in a state keeps its connection open. */
const CONNECTION_KEPT: readonly StateRow['connectionKept'][] = ['never', 'in-window', 'always'];

/** Mutants with one altered member in the row of a state. */
function stateMutants(): Mutant[] {
  const mutantList: Mutant[] = [];
  for (const [index, row] of POWER_MODEL.states.entries()) {
    const alter = (name: string, change: (row: Altered<StateRow>) => void): void => {
      mutantList.push(
        modelMutant(`${row.state}: ${name}`, (model) => change(model.states[index] as Altered<StateRow>)),
      );
    };
    for (const flag of FLAGS) {
      alter(`${flag} ${row[flag] ? 'off' : 'on'}`, (mutable) => {
        mutable[flag] = !mutable[flag];
      });
    }
    for (const kept of CONNECTION_KEPT.filter((other) => other !== row.connectionKept)) {
      alter(`connection kept ${kept}`, (mutable) => {
        mutable.connectionKept = kept;
      });
    }
    for (const when of conditionsInsteadOf(row)) {
      alter(`when ${JSON.stringify(when)}`, (mutable) => {
        mutable.when = when;
      });
    }
  }
  return mutantList;
}

/** Wrong conditions for the row of a state. */
function conditionsInsteadOf({ when }: StateRow): StateRow['when'][] {
  // The right bound is 10 %: just below it, just above it, never, and far too early.
  if ('batteryBelowPercent' in when) return [9, 11, 0, 50].map((batteryBelowPercent) => ({ batteryBelowPercent }));
  if ('mode' in when) return [{ mode: when.mode === 'MID' ? 'HIGH' : 'MID' }];
  const switches = ['airplane', 'recovery', 'rideTracking'] as const;
  return switches.filter((other) => other !== when.switch).map((other) => ({ switch: other }));
}

/** Mutants in which two states are exchanged: the first state of the table whose condition holds takes effect. */
function orderMutants(): Mutant[] {
  const { states } = POWER_MODEL;
  return states.flatMap((upper, upperIndex) =>
    states.slice(upperIndex + 1).map((lower, offset) =>
      modelMutant(`${upper.state} and ${lower.state} change places`, (model) => {
        const lowerIndex = upperIndex + 1 + offset;
        const upperRow = model.states[upperIndex] as Altered<StateRow>;
        model.states[upperIndex] = model.states[lowerIndex] as Altered<StateRow>;
        model.states[lowerIndex] = upperRow;
      }),
    ),
  );
}

/** Mutants in which a trigger and the next one are exchanged: pings of triggers are sent in the order of the table. */
function rankMutants(): Mutant[] {
  return POWER_MODEL.triggers.slice(1).map((lower, upperIndex) =>
    modelMutant(`${POWER_MODEL.triggers[upperIndex]?.trigger} and ${lower.trigger} change places`, (model) => {
      const upperRow = model.triggers[upperIndex] as Altered<TriggerRow>;
      model.triggers[upperIndex] = model.triggers[upperIndex + 1] as Altered<TriggerRow>;
      model.triggers[upperIndex + 1] = upperRow;
    }),
  );
}

/** Mutants in which a trigger's pings have another reason, or none. */
function reasonMutants(): Mutant[] {
  const mutantList: Mutant[] = [];
  for (const [index, row] of POWER_MODEL.triggers.entries()) {
    for (const which of ['cellularReason', 'gpsReason'] as const) {
      for (const reason of reasonsInsteadOf(row[which])) {
        mutantList.push(
          modelMutant(`${row.trigger}: ${which} ${reason ?? 'none'}`, (model) => {
            (model.triggers[index] as Altered<TriggerRow>)[which] = reason;
          }),
        );
      }
    }
  }
  return mutantList;
}

/** Wrong reasons in place of `reason`. */
function reasonsInsteadOf(reason: KnownReason | null): (KnownReason | null)[] {
  if (reason === null) return ['REASON_GPS_PING'];
  const other = reason === 'REASON_NETWORK_PING' ? 'REASON_RESET' : 'REASON_NETWORK_PING';
  return [other, reason === 'REASON_THEFT' ? 'PHONE' : 'REASON_THEFT', null];
}

/** Mutants with one doubled or halved timing. */
function timingMutants(): Mutant[] {
  const mutantList: Mutant[] = [];
  for (const factor of [2, 0.5]) {
    for (const [name, value] of Object.entries(POWER_MODEL.timings)) {
      if (typeof value !== 'number') continue;
      mutantList.push(
        modelMutant(`${name} × ${factor}`, ({ timings }) => {
          Object.assign(timings, { [name]: value * factor });
        }),
      );
    }
    for (const [index, wait] of POWER_MODEL.timings.retryAfter.entries()) {
      mutantList.push(
        modelMutant(`retryAfter, wait ${index + 1} × ${factor}`, ({ timings }) => {
          (timings.retryAfter as number[])[index] = wait * factor;
        }),
      );
    }
    mutantList.push(
      modelMutant(`bufferUplinks × ${factor}`, (model) => {
        model.bufferUplinks *= factor;
      }),
    );
  }
  return mutantList;
}

/** Mutants with an extreme or shifted number. */
function extremeMutants(): Mutant[] {
  const { highWindow } = POWER_MODEL;
  return [
    modelMutant('never closes', ({ timings }) => {
      timings.closeAfterIdle = Number.POSITIVE_INFINITY;
    }),
    modelMutant('closes at once', ({ timings }) => {
      timings.closeAfterIdle = 0;
    }),
    modelMutant('no retries but the first three', ({ timings }) => {
      timings.retryThenEvery = Number.POSITIVE_INFINITY;
    }),
    modelMutant('retries not spread', ({ timings }) => {
      timings.retryJitter = 0;
    }),
    modelMutant('a buffer of 10', (model) => {
      model.bufferUplinks = 10;
    }),
    modelMutant('no refresh', ({ timings }) => {
      timings.refreshEvery = Number.POSITIVE_INFINITY;
    }),
    ...(['fromMinute', 'toMinute', 'utcOffsetMinutes'] as const).flatMap((name) =>
      [-60, 60].map((minutes) =>
        modelMutant(`high window ${name} ${minutes > 0 ? '+' : '−'} 1 h`, (model) => {
          model.highWindow[name] = highWindow[name] + minutes;
        }),
      ),
    ),
    modelMutant('periodTooSoonUnder × 2', ({ bounds }) => {
      bounds.periodTooSoonUnder *= 2;
    }),
    modelMutant('periodTooSoonUnder × 0.5', ({ bounds }) => {
      bounds.periodTooSoonUnder *= 0.5;
    }),
  ];
}

const SIX_HOURS = Hours(6);

/**
 * Firmware faults outside the power model. `tamper` changes the lock's state after each step, and returns when the lock
 * wakes next.
 */
const FAULTS: readonly Mutant[] = [
  {
    name: 'a period ping every 6 h',
    tamper: (state, wakeAtMs) => {
      if (state.lastPeriodMs === NEVER) return wakeAtMs;
      const dueMs = state.lastPeriodMs + SIX_HOURS;
      if (state.nextPeriodMs <= dueMs) return wakeAtMs;
      state.nextPeriodMs = dueMs;
      return Math.min(wakeAtMs, dueMs);
    },
  },
  {
    name: 'no period pings',
    tamper: (state, wakeAtMs) => {
      state.nextPeriodMs = Number.POSITIVE_INFINITY;
      return wakeAtMs;
    },
  },
  {
    name: 'sequence numbers that restart after 3',
    tamper: (state, wakeAtMs) => {
      if (state.sequence === 3) state.sequence = 0;
      return wakeAtMs;
    },
  },
  {
    name: 'sequence numbers that skip 3',
    tamper: (state, wakeAtMs) => {
      if (state.sequence === 2) state.sequence = 3;
      return wakeAtMs;
    },
  },
  {
    name: 'the buffer is lost with the connection',
    tamper: (state, wakeAtMs) => {
      if (state.link === 'down') state.waiting = [];
      return wakeAtMs;
    },
  },
  {
    name: 'a GPS receiver that never has a fix',
    tamper: (state, wakeAtMs) => {
      state.skyOpen = false;
      return wakeAtMs;
    },
  },
];

/** Firmware faults made by a wrapper around the lock's step function (protocol.md §3, "What a lock must do"). */
const WRAPPED: Readonly<Record<string, StepWrapper>> = {
  'cellular pings instead of the GPS pings of a ride': sendRideGpsAsCellular,
  'no close-connection pings': closeWithoutPing,
  'network pings in MID': sendNetworkPingInMid,
  'a locate ping without a command': sendUnaskedLocate,
  'an acknowledgement without a command': acknowledgeUnasked,
  'the answer ok to commands that are not carried out': acknowledgeWithoutDoing,
  'commands are ignored': ignoreCommands,
  'a clock that steps back at each close': stepClockBackAtClose,
  'a clock 2 h behind': setClockBehind(Hours(2)),
  'a frozen position': freezePosition,
};

/** All mutants of a lock. */
export function mutants(): Mutant[] {
  return [
    ...stateMutants(),
    ...orderMutants(),
    ...rankMutants(),
    ...reasonMutants(),
    ...timingMutants(),
    ...extremeMutants(),
    ...FAULTS,
    ...Object.entries(WRAPPED).map(([name, wrapStep]) => ({ name, wrapStep })),
  ];
}

/** Power models with one altered bound (a limit by which the judge decides), for the judge only. */
export function boundMutants(): { readonly name: string; readonly model: PowerModel }[] {
  return Object.entries(POWER_MODEL.bounds).flatMap(([name, value]) =>
    [2, 0.5].map((factor) => {
      const model = { ...POWER_MODEL, bounds: { ...POWER_MODEL.bounds, [name]: value * factor } };
      return { name: `${name} × ${factor}`, model };
    }),
  );
}
