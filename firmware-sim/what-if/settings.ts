/** The settings of a what-if, and a traced lock that has them from its start to its end. Pure. */
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../proto/wire/ping.js';
import type { TracedLock } from '../inference/from-trace.js';
import { Prng } from '../prng.js';
import type { WorldChange } from '../world/world.js';
import { BatteryWorld } from './battery-world.js';

/** The settings that are held constant; absent ones are as in the trace. */
export type WhatIfSettings = PowerChange;

const NO_SETTINGS: WhatIfSettings = Object.freeze({});

/** The lock with these settings and a battery of its own. By default with the settings of the trace. */
export function lockWith(traced: TracedLock, settings: WhatIfSettings = NO_SETTINGS): TracedLock {
  const { highWindow, ...power } = settings;
  const { initialState } = traced.world;
  const changed = { ...initialState, power: { ...initialState.power, ...power } };
  const isChanged = Object.keys(settings).length > 0;
  const world = new BatteryWorld(traced.world, {
    initialState: changed,
    startMs: traced.startMs,
    filter: (change) => withoutSettings(change, settings),
    chargesBelowPercent: isChanged ? chargeLevelOf(traced.mac) : 0,
  });
  const commands = traced.commands.flatMap((one) => {
    const command = commandWithout(one.command, settings);
    return command === null ? [] : [{ ...one, command }];
  });
  const flash = {
    ...traced.flash,
    power: changed.power,
    highWindow: highWindow ?? traced.flash.highWindow,
    stateName: effectiveRow(POWER_MODEL, changed.power, changed.batteryPercent).state,
  };
  return { ...traced, world, commands, flash };
}

/** The percentage below which a lock's owner charges: 4 to 30, as that of a generated life (../world/). */
function chargeLevelOf(mac: Mac): number {
  return new Prng('charging').fork(mac).integer(4, 30);
}

/** A change of the world without the constant settings; null if nothing is left of it. */
function withoutSettings(change: WorldChange, settings: WhatIfSettings): WorldChange | null {
  if (change.type !== 'settings') return change;
  const left = without(change.change, settings);
  return Object.keys(left).length === 0 ? null : { type: 'settings', change: left };
}

/** A command without the constant settings; null if nothing is left of it. */
function commandWithout(command: Command, settings: WhatIfSettings): Command | null {
  if (command.type !== 'set-power') return command;
  const { type, ...change } = command;
  const left = without(change, settings);
  return Object.keys(left).length === 0 ? null : { type, ...left };
}

function without<Change extends PowerChange>(change: Change, settings: WhatIfSettings): Change {
  return Object.fromEntries(Object.entries(change).filter(([name]) => !Object.hasOwn(settings, name))) as Change;
}
