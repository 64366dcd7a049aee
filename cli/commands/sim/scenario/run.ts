/** `lockgate sim run --scenario`: reads a scenario, plays it with or without a gateway, and reports the result. */
import { parseBugAssignment } from '../../../../firmware-sim/faults/bugs.js';
import { scenarioFile } from '../../../../firmware-sim/scenario/built-in.js';
import { readScenarioFile, ScenarioMistakes } from '../../../../firmware-sim/scenario/reader.js';
import type { Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { VirtualScenario } from '../../../../firmware-sim/scenario/virtual-scenario.js';
import { afterThisTurn, Hours } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { print, printNote, sanitizeLine } from '../../../terminal/output.js';
import { bugNotes, printBugNotes } from '../bug-notes.js';
import type { SimFlags } from '../flags.js';
import { quoteForShell } from '../summary.js';
import { playLive } from './live.js';
import { hasPassed, reportScenario, type ScenarioOutcome } from './report.js';

/** Simulated time between checks for Ctrl-C. */
const SLICE_MS = Hours(6);

/**
 * Plays a scenario. Sets exit code 1 if the scenario fails.
 *
 * @throws LockgateError `input-…` for a wrong flag or file, otherwise as {@link playLive}
 */
export async function runScenario(flags: SimFlags, nameOrFile: string, interrupted: Interruption): Promise<void> {
  const scenario = await readScenario(scenarioFile(nameOrFile));
  const seed = flags.isSeedGiven ? flags.seed : scenario.seed;
  const bugs = flags.bug.map(parseBugAssignment);
  const repeat = repeatCommand(flags, nameOrFile, seed);
  if (!flags.json) printNote(sanitizeLine(`${scenario.name}, seed ${seed}: ${scenario.description}`));
  if (!flags.virtual) {
    if (flags.out !== undefined || flags.world)
      throw new LockgateError('input-sim', '--out and --world are for --virtual runs only');
    const outcome = await playLive({ flags, scenario, seed, bugs, repeat, interrupted });
    if (outcome === undefined) process.exitCode = interrupted.exitCode;
    else reportOutcome(outcome, flags);
    return;
  }
  const sink = flags.out === undefined ? undefined : new LineSink(flags.out === '-' ? undefined : flags.out);
  const includeOut = false;
  const run = new VirtualScenario({
    scenario,
    seed,
    note: repeatCommand(flags, nameOrFile, seed, includeOut),
    hasWorldEvents: flags.world ?? false,
    bugs,
    write: sink === undefined ? null : (line) => sink.write(line),
  });
  if (!flags.json) printBugNotes(bugNotes(bugs, run.play.locks, 'scenario'), run.play.locks.length);
  await advanceInSlices(run, scenario, interrupted.signal);
  sink?.end();
  if (interrupted.signal.aborted) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  reportOutcome(outcomeOf(run, scenario, { seed, virtual: true, out: flags.out ?? null }, repeat), flags);
}

async function advanceInSlices(run: VirtualScenario, { endMs }: Scenario, signal: AbortSignal): Promise<void> {
  while (run.nowMs < endMs && !signal.aborted) {
    run.advance(run.nowMs + SLICE_MS);
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

function outcomeOf(
  run: VirtualScenario,
  scenario: Scenario,
  runMembers: ScenarioOutcome['run'],
  repeat: string,
): ScenarioOutcome {
  const findings = new Map<string, number>();
  for (const { rule } of run.findings()) findings.set(rule, (findings.get(rule) ?? 0) + 1);
  const { records, unacknowledged } = run.play;
  const pings = [...records.values()].reduce((sum, record) => sum + record.pings.length, 0);
  return { scenario, verdicts: run.verdicts(), findings, pings, records, unacknowledged, run: runMembers, repeat };
}

/** Prints the report, and sets exit code 1 if the scenario failed. */
function reportOutcome(outcome: ScenarioOutcome, flags: SimFlags): void {
  // With `--out -` the standard output must have nothing but the trace.
  reportScenario(outcome, flags.json ?? false, flags.out === '-' ? printNote : print);
  if (!hasPassed(outcome)) process.exitCode = EXIT_CODE.negativeAnswer;
}

/** Reads the file. Prints all its mistakes except the last, and throws the last. */
async function readScenario(file: string): Promise<Scenario> {
  try {
    return await readScenarioFile(file);
  } catch (error) {
    if (error instanceof ScenarioMistakes)
      for (const message of error.messages.slice(0, -1)) printNote(sanitizeLine(`lockgate: ${message}`));
    throw error;
  }
}

/** The command that repeats the run. @param includeOut whether to include --out, which does not affect the trace */
function repeatCommand(flags: SimFlags, nameOrFile: string, seed: string, includeOut = true): string {
  const words = [`lockgate sim run${flags.virtual ? ' --virtual' : ''} --scenario ${quoteForShell(nameOrFile)}`];
  words.push(`--seed ${quoteForShell(seed)}`);
  for (const bug of flags.bug) words.push(`--bug ${quoteForShell(bug)}`);
  if (flags.world) words.push('--world');
  const { gateway, data, secrets, merchant, ca, speed } = flags;
  const out = includeOut ? flags.out : undefined;
  if (!flags.virtual && speed !== 1) words.push(`--speed ${speed}`);
  for (const [flag, value] of Object.entries({ gateway, data, secrets, merchant, ca, out }))
    if (value !== undefined) words.push(`--${flag} ${quoteForShell(value)}`);
  return words.join(' ');
}
