/** `lockgate sim …`: names, flags and help. What a command does is loaded when it is called. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../interrupt.js';
import type { SimFlags } from '../sim-flags.js';
import { addSimShell } from './sim-shell.js';

const MOST_LOCKS = 100_000;
const MOST_DAYS = 3660;
const MOST_SPEED = 3600;
const DEFAULT_SEED = '1';

/** Flags that say where a live run goes to; they mean nothing without a gateway. */
const LIVE_FLAGS = ['gateway', 'token', 'data', 'speed', 'secrets', 'merchant', 'ca'];

/** Flags that say what a fleet is made up from; a trace says it all. */
const FLEET_FLAGS = ['locks', 'days', 'seed', 'pace', 'mix', 'bug', 'fault', 'start'];

/** Adds the group to the program. */
export function addSimCommands(program: Command): void {
  const sim = program
    .command('sim')
    .description('Simulated locks: a fleet to order, with firmware bugs and network faults.');
  addRun(sim);
  addSimShell(sim);
  sim
    .command('bugs')
    .description('List the firmware bugs that locks can be given, and the rule that each breaks.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim bugs')
    .action(async ({ json }: { json?: boolean }) => (await import('../sim-tables.js')).printBugs(json));
  sim
    .command('faults')
    .description('List the network faults that can lie between locks and gateway.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim faults')
    .action(async ({ json }: { json?: boolean }) => (await import('../sim-tables.js')).printFaults(json));
}

const RUN_HELP = `
With --virtual it needs no gateway and does not wait: the trace of the whole run is written as fast as it can be made,
and the same seed and options give the same bytes (gzipped, the same text: the packing is Node's). "trace check" judges
it. Without --out only the counts are shown.

Without --virtual the locks are live, over MQTT, until Ctrl-C or for --days. --gateway names either the operator's
interface (http://…; this folder's where it is left out), which then says where locks connect and, without --secrets,
gives each lock a secret as a simulated device; or the place where locks connect (mqtt://host:port or mqtts://…). With
--secrets the locks are the first of that file (mac,secret). A live run boots its locks with a number of the moment, so
that it never uses the names of an earlier run again.

With --speed other than 1 the gateway must run at the same speed, as that of "lockgate demo" does: judge and presence go
by the run's clock, and would find everything late or early.

--mix gives shares of settings that locks begin with: words joined by + (mid, high, ride, recovery, airplane,
low-battery), such as mid=50,mid+ride=20,high=20,recovery=5,low-battery=5. Without it most are in MID, some in HIGH.
--bug and --fault may be given more than once; a bug for all locks, or as NAME:LOCKS for so many.

--from-trace FILE makes the locks of a recorded trace (plain or .gz) and a world for each: when it was unlocked, ridden,
stolen, charged, out of reach, is made out from what it said, or taken from the trace's world events. A healthy lock in
that world makes the same pings; at the end both are counted by reason, with where they first differ. For a lock that
misbehaved the difference is the bug. Live, all times are moved to now.

Exit codes: 0 done, 2 a flag or file is wrong, 3 the gateway can’t be reached or refuses, 130 ended by Ctrl-C before its
days were over.

Example:
  $ lockgate sim run --virtual --locks 100 --days 7 --seed 7 --out week.jsonl.gz
  $ lockgate sim run --virtual --locks 5 --days 2 --bug clock-ahead:1 --fault all --out - | lockgate trace check -
  $ lockgate sim run --virtual --from-trace field.jsonl.gz --out healthy.jsonl
  $ lockgate sim run --locks 20 --gateway http://127.0.0.1:8081 --pace lively`;

function addRun(sim: Command): void {
  sim
    .command('run')
    .description('Run a fleet: without a gateway into a trace, or live against a gateway.')
    .addOption(new Option('--virtual', 'Without a gateway and without waiting.').conflicts(LIVE_FLAGS))
    .option('--locks <n>', 'How many locks (default: 12, or all of --secrets).', whole(MOST_LOCKS))
    .option('--days <n>', 'How long they live, in days of their own (default: 1; live: until Ctrl-C).', days)
    .option('--seed <text>', 'What everything is made up from.', DEFAULT_SEED)
    .addOption(new Option('--pace <pace>', 'How much happens.').choices(['everyday', 'lively']).default('everyday'))
    .addOption(
      new Option('--from-trace <file>', 'Make the locks and what happens to them from a recorded trace.').conflicts(
        FLEET_FLAGS,
      ),
    )
    .option('--mix <shares>', 'What settings they begin with, such as mid=60,high+ride=20.')
    .option('--bug <name>', 'A firmware bug: NAME for all locks, NAME:LOCKS for so many ("sim bugs").', collect, [])
    .option('--fault <name>', 'A network fault, or all ("sim faults").', collect, [])
    .option('--out <file>', 'Virtual: the trace, gzipped where the name ends in .gz, - is the standard output.')
    .option('--start <date>', 'Virtual: when the run begins, RFC 3339 (default: 2026-01-05T00:00:00Z).')
    .option('--world', 'Virtual: tell in the trace what truly happened around the locks, too.')
    .option('--gateway <url>', 'Live: mqtt://host:port, mqtts://…, or the operator’s interface [LOCKGATE_GATEWAY].')
    .option('--token <token>', 'Live: the operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'Live: the gateway’s data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--speed <n>', 'Live: how much faster than life.', speed, 1)
    .option('--secrets <file>', 'Live: the locks and their secrets, lines of MAC,SECRET.')
    .option('--merchant <name>', 'Live: whose the locks are that are added; may be left out where there is one.')
    .option('--ca <file>', 'Live: the certificates (PEM) to trust for mqtts://.')
    .option('--list-bugs', 'List the firmware bugs and end.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', RUN_HELP)
    .action(async (flags: SimFlags) => {
      if (flags.listBugs) return (await import('../sim-tables.js')).printBugs(flags.json);
      const { runSim } = await import('../sim-run.js');
      await runSim(flags, untilInterrupted());
    });
}

function whole(most: number): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, 1 to ${most}.`);
  };
}

function days(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MOST_DAYS) return value;
  throw new InvalidArgumentError(`Expected a number of days above 0, at most ${MOST_DAYS}.`);
}

function speed(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MOST_SPEED) return value;
  throw new InvalidArgumentError(`Expected a number above 0, at most ${MOST_SPEED}.`);
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}
