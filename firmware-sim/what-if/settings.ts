/**
 * A what-if replays a recorded trace with other settings of the locks. This file gives a lock of the trace the settings
 * of the what-if, from the lock's start to its end. Pure.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../proto/wire/ping.js';
import type { TracedLock } from '../inference/from-trace.js';
import { Prng } from '../prng.js';
import type { WorldChange } from '../world/world.js';
import { BatteryWorld } from './battery-world.js';

/** The settings that are the same for the whole run. A setting that is absent changes as in the trace. */
export type WhatIfSettings = PowerChange;

const NO_SETTINGS: WhatIfSettings = Object.freeze({});

/**
 * The lock with these settings, and with a battery that it drains itself. By default it has the settings of the trace.
 */
export function lockWith(traced: TracedLock, settings: WhatIfSettings = NO_SETTINGS): TracedLock {
  const { highWindow, ...power } = settings;
  const { initialState } = traced.world;
  const changedState = { ...initialState, power: { ...initialState.power, ...power } };
  const isChanged = Object.keys(settings).length > 0;
  const world = new BatteryWorld(traced.world, {
    initialState: changedState,
    startMs: traced.startMs,
    filter: (change) => withoutSettings(change, settings),
    // With unchanged settings the battery is charged just as in the trace.
    chargesBelowPercent: isChanged ? chargeLevelOf(traced.mac) : 0,
  });
  const commands = traced.commands.flatMap((sent) => {
    const command = commandWithout(sent.command, settings);
    return command === null ? [] : [{ ...sent, command }];
  });
  const flash = {
    ...traced.flash,
    power: changedState.power,
    highWindow: highWindow ?? traced.flash.highWindow,
    stateName: effectiveRow(POWER_MODEL, changedState.power, changedState.batteryPercent).state,
  };
  return { ...traced, world, commands, flash };
}

/** The percentage below which a lock's owner charges: 4 to 30, as that of a generated owner (../world/). */
function chargeLevelOf(mac: Mac): number {
  return new Prng('charging').fork(mac).integer(4, 30);
}

/** A change of the world without the settings of the what-if; null if nothing else changes. */
function withoutSettings(change: WorldChange, settings: WhatIfSettings): WorldChange | null {
  if (change.type !== 'settings') return change;
  const remaining = omitSettings(change.change, settings);
  return Object.keys(remaining).length === 0 ? null : { type: 'settings', change: remaining };
}

/** A command without the settings of the what-if; null if it sets nothing else. */
function commandWithout(command: Command, settings: WhatIfSettings): Command | null {
  if (command.type !== 'set-power') return command;
  const { type, ...change } = command;
  const remaining = omitSettings(change, settings);
  return Object.keys(remaining).length === 0 ? null : { type, ...remaining };
}

function omitSettings<Change extends PowerChange>(change: Change, settings: WhatIfSettings): Change {
  return Object.fromEntries(Object.entries(change).filter(([name]) => !Object.hasOwn(settings, name))) as Change;
}
