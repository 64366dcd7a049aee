/** `lockgate sim plan`: estimates the traffic and costs of a fleet by a virtual run, before the fleet is bought. */
import { writeFileSync } from 'node:fs';
import { parseMix } from '../../../../firmware-sim/fleet/mix.js';
import { TLS_13, WireSize } from '../../../../firmware-sim/link/wire-size.js';
import { MONTH_DAYS, type Sizing, type SizingOptions, SizingRun } from '../../../../firmware-sim/plan/sizing.js';
import { Days, monotonicMs, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { printJson, printNote } from '../../../terminal/output.js';
import { advanceInSlices } from '../../../terminal/run-slices.js';
import type { PlanFlags } from '../flags.js';
import { DEFAULT_START, plural, quoteForShell } from '../summary.js';
import { readPrices } from './price.js';
import { planJson, printPlan } from './print.js';
import { planSvg } from './svg.js';

/** Runs the simulation and prints the plan. @throws LockgateError `input-…` for a wrong flag or file */
export async function planFleet(flags: PlanFlags, interrupted: Interruption): Promise<void> {
  const prices = readPrices(flags);
  const run = new SizingRun(optionsOf(flags));
  const startMs = run.nowMs;
  const title = describePlan(flags, run.sampled);
  const startedAtMs = monotonicMs();
  const days = (run.endMs - startMs) / Days(1);
  const progress = (): string => {
    const passed = ((run.nowMs - startMs) / Days(1)).toFixed(1);
    return `seed ${flags.seed}, ${passed} of ${plural(days, 'day')}, the first is a warm-up`;
  };
  await advanceInSlices(run, progress, interrupted.signal);
  if (interrupted.signal.aborted) {
    printNote(`Interrupted: the plan is not complete. Repeat with: ${repeatPlan(flags)}`);
    process.exitCode = interrupted.exitCode;
    return;
  }
  const sizing = run.finish();
  const report = {
    title,
    flags,
    prices,
    seconds: (monotonicMs() - startedAtMs) / Seconds(1),
    repeat: repeatPlan(flags),
  };
  if (flags.json) printJson(planJson(sizing, report));
  else printPlan(sizing, report);
  // Written last, so that the plan is printed even if the chart can't be written.
  if (flags.svg !== undefined) writeSvg(flags.svg, sizing, title);
}

function optionsOf(flags: PlanFlags): SizingOptions {
  const { seed, locks, days, pace, sample, commands } = flags;
  if (flags.chain !== undefined && flags.tls !== true)
    throw new LockgateError('input-tls', '--chain requires --tls: without TLS no certificates are sent');
  const { up, down } = TLS_13.handshake;
  const tls = flags.tls === true ? { tls: { handshake: { up, down: down + (flags.chain ?? 0) } } } : {};
  return {
    seed,
    locks,
    days,
    pace,
    sample,
    startMs: Date.parse(DEFAULT_START),
    mix: parseMix(flags.mix),
    wire: new WireSize(tls),
    ...(commands > 0 && { commandSchedule: { perDay: commands / MONTH_DAYS, commands: [{ type: 'locate-gps' }] } }),
  };
}

/** The options of the plan, in two lines because a mix may be long. */
function describePlan({ seed, locks, days, pace, mix, tls }: PlanFlags, sampled: number): string[] {
  const parts = [`seed ${seed}`, plural(locks, 'lock'), plural(days, 'day'), pace, tls ? 'TLS' : 'plain TCP'];
  if (sampled < locks) parts.push(`${sampled.toLocaleString('en-US')} of them simulated`);
  return [parts.join(', '), `mix ${mix}`];
}

function repeatPlan(flags: PlanFlags): string {
  const words = ['lockgate sim plan'];
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) words.push(`${flag} ${quoteForShell(String(value))}`);
  };
  add('--locks', flags.locks);
  add('--days', flags.days);
  add('--seed', flags.seed);
  add('--mix', flags.mix);
  if (flags.pace !== 'everyday') add('--pace', flags.pace);
  add('--sample', flags.sample);
  if (flags.commands > 0) add('--commands', flags.commands);
  if (flags.tls) words.push('--tls');
  add('--chain', flags.chain);
  add('--per-mb', flags.perMb);
  add('--per-sim', flags.perSim);
  add('--currency', flags.currency);
  return words.join(' ');
}

function writeSvg(file: string, sizing: Sizing, title: readonly string[]): void {
  try {
    writeFileSync(file, planSvg(sizing, title.join(', ')));
  } catch (error) {
    throw new LockgateError('input-svg', `${file} can't be written: ${(error as Error).message}`);
  }
}
