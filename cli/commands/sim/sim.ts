/** `lockgate sim …`: names, flags and help. What a command does is loaded when it is called. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import type { PlanFlags, SimFlags } from './flags.js';
import { addSimShell } from './shell/command.js';

const MOST_LOCKS = 100_000;
const MOST_DAYS = 3660;
const MOST_SPEED = 3600;
const DEFAULT_SEED = '1';

/** Flags that say where a live run goes to; they mean nothing without a gateway. */
const LIVE_FLAGS = ['gateway', 'token', 'data', 'speed', 'secrets', 'merchant', 'ca'];

/** Flags that say what a scenario says itself. */
const SCENARIO_FLAGS = ['locks', 'days', 'pace', 'mix', 'route', 'around', 'fault', 'start', 'fromTrace'];

/** Flags that say what a fleet is made up from; a trace says it all. */
const FLEET_FLAGS = ['locks', 'days', 'seed', 'pace', 'mix', 'bug', 'fault', 'start', 'route', 'around'];

/** Adds the group to the program. */
export function addSimCommands(program: Command): void {
  const sim = program.command('sim').description('Simulate locks, with firmware bugs and network faults.');
  addRun(sim);
  addPlan(sim);
  addSimShell(sim);
  sim
    .command('scenarios')
    .description('List the scenarios that come with the simulator, or print one to start your own from.')
    .argument('[name]', 'A scenario whose file is printed.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', SCENARIOS_HELP)
    .action(async (name: string | undefined, { json }: { json?: boolean }) => {
      const { listScenarios, printScenario } = await import('./scenario/listing.js');
      if (name === undefined) await listScenarios(json);
      else await printScenario(name, json);
    });
  sim
    .command('bugs')
    .description('List the firmware bugs that locks can be given, and the rule that each breaks.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim bugs')
    .action(async ({ json }: { json?: boolean }) => (await import('./tables.js')).printBugs(json));
  sim
    .command('faults')
    .description('List the network faults that can lie between locks and gateway.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim faults')
    .action(async ({ json }: { json?: boolean }) => (await import('./tables.js')).printFaults(json));
}

const SCENARIOS_HELP = `
docs/scenarios.md describes the format. "sim run --scenario" plays one and checks what it expects.

Example:
  $ lockgate sim scenarios
  $ lockgate sim scenarios theft > mine.yaml
  $ lockgate sim run --virtual --scenario mine.yaml`;

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
With --route the bicycles live where the file's way begins. They are ridden along it after a minute, and there and back
as the pace has it: as it was recorded where the file has times, else at 3.5 to 6.5 m/s. Ride tracking is on unless
--mix says otherwise. With --around the streets are made up around a point of one's own, and its clocks go by the sun.

--bug and --fault may be given more than once; a bug for all locks, or as NAME:LOCKS for so many.

--from-trace FILE makes the locks of a recorded trace (plain or .gz) and a world for each: when it was unlocked, ridden,
stolen, charged, out of reach, is made out from what it said, or taken from the trace's world events. A healthy lock in
that world makes the same pings; at the end both are counted by reason, with where they first differ. For a lock that
misbehaved the difference is the bug. Live, all times are moved to now.

--scenario plays a scenario, by its name ("sim scenarios") or from a file, and checks what it expects: virtual, or live
against a gateway, whose operator's interface then sends its commands and gives its phones their credentials. Exit code
1 says that an expectation was not met, or that the judge found what it should not.

Exit codes: 0 done, 1 a scenario's answer is no, 2 a flag or file is wrong, 3 the gateway can’t be reached or refuses,
130 ended by Ctrl-C before its days were over.

Example:
  $ lockgate sim run --virtual --locks 100 --days 7 --seed 7 --out week.jsonl.gz
  $ lockgate sim run --virtual --locks 5 --days 2 --bug clock-ahead:1 --fault all --out - | lockgate trace check -
  $ lockgate sim run --locks 1 --route my-ride.gpx
  $ lockgate sim run --virtual --scenario theft --out theft.jsonl
  $ lockgate sim run --virtual --from-trace field.jsonl.gz --out healthy.jsonl
  $ lockgate sim run --locks 20 --gateway http://127.0.0.1:8081 --pace lively`;

function addRun(sim: Command): void {
  sim
    .command('run')
    .description('Run a fleet: without a gateway into a trace, or live against a gateway.')
    .addOption(new Option('--virtual', 'Without a gateway and without waiting.').conflicts(LIVE_FLAGS))
    .addOption(
      new Option('--scenario <name>', 'Play a scenario: its name ("sim scenarios"), or a file.').conflicts(
        SCENARIO_FLAGS,
      ),
    )
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
    .option('--route <file>', 'The way that all ride, there and back: a GPX file, or GeoJSON with a line.')
    .option('--around <lat,lon>', 'Where the streets are that they ride through (default: Amsterdam).')
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
    .action(async (read: SimFlags, command: Command) => {
      const flags = { ...read, isSeedGiven: command.getOptionValueSource('seed') === 'cli' };
      if (flags.listBugs) return (await import('./tables.js')).printBugs(flags.json);
      const { runSim } = await import('./run.js');
      await runSim(flags, untilInterrupted());
    });
}

const MOST_PLANNED_LOCKS = 1_000_000;
const MOST_PLANNED_DAYS = 366;
const MOST_SAMPLED = 100_000;
const MOST_COMMANDS = 3000;
const MOST_CHAIN_BYTES = 100_000;
/** About as a fleet by chance begins (without a mix, "sim run" draws each lock's settings). */
const PLAN_MIX = 'mid=55,mid+ride=23,high=14,high+ride=6,recovery=2';

const PLAN_HELP = `
It lives the fleet's days without a gateway, counts what passes as a gateway's meter would (every MQTT frame in both
directions, keepalives too; with --tls what TLS adds), and says what a month of 30 days takes, by the parts of the mix,
and how much goes on at once by the hour of the day. A day passes before anything is measured.

--mix is that of "sim run": settings that locks begin with. A lock that begins with a low battery is charged some day.
A fleet of more than --sample locks is scaled from so many, each part of the mix by itself; the standard error is shown.
The prices are those of "usage plan set". With --tls each connection has a full handshake (TLS 1.3, one self-signed
P-256 certificate); --chain adds the bytes of the certificates that your gateway shows beyond that.

Exit codes: 0 done, 2 a flag or file is wrong, 130 ended by Ctrl-C.

Example:
  $ lockgate sim plan --locks 20000 --mix mid=70,high=25,recovery=5 --per-mb 0.12 --per-sim 0.80 --currency EUR
  $ lockgate sim plan --locks 500 --days 30 --tls --chain 2400 --svg load.svg`;

function addPlan(sim: Command): void {
  sim
    .command('plan')
    .description('Size a fleet before it is bought: connections, pings, data and its price.')
    .requiredOption('--locks <n>', 'How many locks.', whole(MOST_PLANNED_LOCKS))
    .option('--mix <shares>', 'What settings they begin with, such as mid=60,high+ride=20.', PLAN_MIX)
    .option('--days <n>', 'How many days are measured.', whole(MOST_PLANNED_DAYS), 7)
    .option('--seed <text>', 'What everything is made up from.', DEFAULT_SEED)
    .addOption(new Option('--pace <pace>', 'How much happens.').choices(['everyday', 'lively']).default('everyday'))
    .option('--sample <n>', 'The most locks to simulate.', whole(MOST_SAMPLED), 1000)
    .option('--commands <n>', 'Commands (locate by GPS) that each lock gets in a month.', whole(MOST_COMMANDS), 0)
    .option('--tls', 'Locks connect over TLS.')
    .option('--chain <bytes>', 'With --tls: bytes of certificates beyond a self-signed one.', whole(MOST_CHAIN_BYTES))
    .option('--per-mb <price>', 'The price of an MB (1,000,000 bytes), with at most 6 decimals.')
    .option('--per-sim <price>', 'The price of an active SIM for a month.')
    .option('--currency <code>', 'ISO 4217, three letters.')
    .option('--svg <file>', 'Write a chart of the hours of the day.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', PLAN_HELP)
    .action(async (flags: PlanFlags) => {
      const { planFleet } = await import('./plan/plan.js');
      await planFleet(flags, untilInterrupted());
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
