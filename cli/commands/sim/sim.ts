/** `lockgate sim …`: names, flags and help. The code of a command is loaded when it is called. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import type { PlanFlags, SimFlags } from './flags.js';
import { addSimShadow } from './shadow/command.js';
import { addSimShell } from './shell/command.js';

/** Limits of the flags. They catch mistyped numbers: a run at a limit still works, but takes hours. */
const MAX_LOCKS = 100_000;
const MAX_DAYS = 3660;
const MAX_SPEED = 3600;
const MAX_JOBS = 64;
const DEFAULT_SEED = '1';

/** Flags that only live runs have. */
const LIVE_FLAGS = ['gateway', 'token', 'data', 'speed', 'secrets', 'merchant', 'ca'];

/** Flags for what a scenario's file specifies. */
const SCENARIO_FLAGS = ['locks', 'days', 'pace', 'mix', 'route', 'around', 'fault', 'start', 'jobs', 'fromTrace'];

/** Flags for generating a fleet, which --from-trace does not do. */
const FLEET_FLAGS = ['locks', 'days', 'seed', 'pace', 'mix', 'bug', 'fault', 'start', 'jobs', 'route', 'around'];

/** Adds the group to the program. */
export function addSimCommands(program: Command): void {
  const sim = program.command('sim').description('Simulate locks, with firmware bugs and network faults.');
  addRun(sim);
  addPlan(sim);
  addSimShell(sim);
  addSimShadow(sim);
  sim
    .command('scenarios')
    .description('List the built-in scenarios, or print one as a template.')
    .argument('[name]', 'The scenario whose file is printed.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', SCENARIOS_HELP)
    .action(async (name: string | undefined, { json }: { json?: boolean }) => {
      const { listScenarios, printScenario } = await import('./scenario/listing.js');
      if (name === undefined) await listScenarios(json);
      else await printScenario(name, json);
    });
  sim
    .command('bugs')
    .description('List the firmware bugs that locks can have, and the rule that each bug breaks.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim bugs')
    .action(async ({ json }: { json?: boolean }) => (await import('./tables.js')).printBugs(json));
  sim
    .command('faults')
    .description('List the network faults that can affect the connections of locks.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nExample:\n  $ lockgate sim faults')
    .action(async ({ json }: { json?: boolean }) => (await import('./tables.js')).printFaults(json));
}

const SCENARIOS_HELP = `
docs/scenarios.md describes the format. "sim run --scenario" plays a scenario and checks its expectations.

Example:
  $ lockgate sim scenarios
  $ lockgate sim scenarios theft > mine.yaml
  $ lockgate sim run --virtual --scenario mine.yaml`;

const RUN_HELP = `
With --virtual the run needs no gateway and does not wait: it writes its trace as fast as possible, and the same seed
and options give the same bytes (with .gz the same text; the compression depends on Node.js). "trace check" judges the
trace. Without --out only the counts are shown. --jobs divides the locks among threads: as many as the machine has
cores are useful. With --fault, or with the bug closes-too-late, the locks share one simulated network or gateway, so
the run has one thread, whatever --jobs says.

Without --virtual the locks are live, over MQTT, until Ctrl-C or for --days. --gateway is either the URL of the
operator's interface (http://…; default: that of the data folder) or the address where locks connect (mqtt://host:port
or mqtts://…). The operator's interface reports where locks connect and, without --secrets, adds each lock as a
simulated device with a new secret. With --secrets the locks are the first in that file (mac,secret). A live run takes
its boot numbers from the current time, so that it never repeats the uplink numbers of an earlier run.

With --speed other than 1 the gateway must run at the same speed, as the gateway of "lockgate demo" can. Otherwise its
rules and presence, which use the gateway's clock, see everything too late or too early.

--mix gives shares of the locks' first settings: words joined by + (mid, high, ride, recovery, airplane, low-battery),
such as mid=50,mid+ride=20,high=20,recovery=5,low-battery=5. Without it most locks are in MID, some in HIGH. With
--route the bicycles start where the file's route starts. They are ridden along the route after a minute, then there and
back at times that depend on --pace: at the recorded speed if the file has times, otherwise at 3.5 to 6.5 m/s. Ride
tracking is then on unless --mix says otherwise. --around generates the streets around another point. Rides then follow
the local time there: UTC plus one hour for each 15 degrees east of Greenwich.

--bug and --fault can be repeated; a bug affects all locks, or with NAME:LOCKS that many. The run says which locks have
the bug, and warns if it can hardly show with the chosen mix, pace and length.

--from-trace FILE simulates the locks of a recorded trace (plain or .gz). It infers from each lock's pings and the
trace's world events when the lock was unlocked, ridden, stolen, charged or out of coverage. A healthy lock then makes
the same pings. At the end the pings of both are counted by reason, and the first difference is shown. If the recorded
lock had a bug, that is the difference. In a live run all times are shifted to now.

--scenario plays a scenario, given by name ("sim scenarios") or file, and checks its expectations: virtual, or live
against a gateway, whose operator's interface then sends the scenario's commands and creates credentials for its phones.
The exit code is 1 if an expectation is not met, or if a rule finds something that the scenario does not allow.

Exit codes: 0 done, 1 the scenario failed, 2 a flag or file is wrong, 3 the gateway can’t be reached or refuses,
130 interrupted by Ctrl-C before --days were over.

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
    .description('Simulate a fleet: without a gateway, writing a trace, or live against a gateway.')
    .addOption(new Option('--virtual', 'Run without a gateway and without waiting.').conflicts(LIVE_FLAGS))
    .addOption(
      new Option('--scenario <name>', 'Play a scenario, by name ("sim scenarios") or file.').conflicts(SCENARIO_FLAGS),
    )
    .option('--locks <n>', 'Number of locks (default: 12, or all in --secrets).', wholeNumber(MAX_LOCKS))
    .option('--days <n>', 'Number of simulated days (default: 1; live: until Ctrl-C).', parseDays)
    .option('--seed <text>', 'The seed of all random choices.', DEFAULT_SEED)
    .addOption(
      new Option('--pace <pace>', 'How eventful the days are.').choices(['everyday', 'lively']).default('everyday'),
    )
    .addOption(
      new Option('--from-trace <file>', 'Infer the locks and what happens to them from a recorded trace.').conflicts(
        FLEET_FLAGS,
      ),
    )
    .option('--mix <shares>', 'Shares of the locks’ first settings, such as mid=60,high+ride=20.')
    .option('--route <file>', 'The route of all rides, there and back: a GPX file, or GeoJSON with a line.')
    .option('--around <lat,lon>', 'The centre of the city (default: Amsterdam).')
    .option(
      '--bug <name>',
      'A firmware bug ("sim bugs"): NAME for all locks, NAME:LOCKS for that many; can be repeated.',
      appendValue,
      [],
    )
    .option('--fault <name>', 'A network fault ("sim faults"), or all; can be repeated.', appendValue, [])
    .option('--out <file>', 'Virtual: the trace file to write, gzipped if it ends in .gz; - is the standard output.')
    .option('--start <date>', 'Virtual: the start of the run, RFC 3339 (default: 2026-01-05T00:00:00Z).')
    .option('--world', 'Virtual: also write world events to the trace: what really happened to the locks.')
    .option('--jobs <n>', 'Virtual: number of threads (default: 1); the bytes are the same.', wholeNumber(MAX_JOBS))
    .option('--gateway <url>', 'Live: mqtt://host:port, mqtts://…, or the operator’s interface [LOCKGATE_GATEWAY].')
    .option('--token <token>', 'Live: the operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'Live: the gateway’s data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--speed <n>', 'Live: how many times faster than real time.', parseSpeed, 1)
    .option('--secrets <file>', 'Live: a file with the locks and their secrets, lines of MAC,SECRET.')
    .option('--merchant <name>', 'Live: without --secrets, the merchant to add the locks to (default: the only one).')
    .option('--ca <file>', 'Live: a file with certificates (PEM) to trust for mqtts://.')
    .option('--list-bugs', 'List the firmware bugs and exit.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', RUN_HELP)
    .action(async (parsed: SimFlags, command: Command) => {
      const flags = { ...parsed, isSeedGiven: command.getOptionValueSource('seed') === 'cli' };
      if (flags.listBugs) return (await import('./tables.js')).printBugs(flags.json);
      const { runSim } = await import('./run.js');
      await runSim(flags, untilInterrupted());
    });
}

const MAX_PLANNED_LOCKS = 1_000_000;
const MAX_PLANNED_DAYS = 366;
const MAX_SAMPLED_LOCKS = 100_000;
const MAX_COMMANDS_PER_MONTH = 3000;
const MAX_CHAIN_BYTES = 100_000;
/** Approximately the settings that "sim run" without --mix draws at random for each lock. */
const DEFAULT_PLAN_MIX = 'mid=55,mid+ride=23,high=14,high+ride=6,recovery=2';

const PLAN_HELP = `
Simulates the fleet without a gateway and counts traffic as a gateway does: every MQTT frame in both directions,
including keepalives, and with --tls the overhead of TLS. Prints the traffic of a month of 30 days by part of the mix,
and the load by hour of the day. The measurement starts after a day.

--mix means the same as for "sim run". A lock whose battery is low at the start is charged some day. A fleet of more
than --sample locks is estimated from a sample of that size, each part of the mix separately, and the standard error is
shown. The prices mean the same as for "usage plan set". With --tls each connection has a full handshake (TLS 1.3, one
self-signed P-256 certificate); --chain adds the bytes of further certificates that your gateway sends.

Exit codes: 0 done, 2 a flag or file is wrong, 130 interrupted by Ctrl-C.

Example:
  $ lockgate sim plan --locks 20000 --mix mid=70,high=25,recovery=5 --per-mb 0.12 --per-sim 0.80 --currency EUR
  $ lockgate sim plan --locks 500 --days 30 --tls --chain 2400 --svg load.svg`;

function addPlan(sim: Command): void {
  sim
    .command('plan')
    .description('Estimate the connections, pings, data and costs of a fleet before you buy it.')
    .requiredOption('--locks <n>', 'Number of locks.', wholeNumber(MAX_PLANNED_LOCKS))
    .option('--mix <shares>', 'Shares of the locks’ first settings, such as mid=60,high+ride=20.', DEFAULT_PLAN_MIX)
    .option('--days <n>', 'Number of days to measure.', wholeNumber(MAX_PLANNED_DAYS), 7)
    .option('--seed <text>', 'The seed of all random choices.', DEFAULT_SEED)
    .addOption(
      new Option('--pace <pace>', 'How eventful the days are.').choices(['everyday', 'lively']).default('everyday'),
    )
    .option('--sample <n>', 'Maximum number of locks to simulate.', wholeNumber(MAX_SAMPLED_LOCKS), 1000)
    .option(
      '--commands <n>',
      'Number of commands (locate by GPS) per lock and month.',
      wholeNumber(MAX_COMMANDS_PER_MONTH),
      0,
    )
    .option('--tls', 'Count connections over TLS.')
    .option('--chain <bytes>', 'With --tls: the bytes of further certificates.', wholeNumber(MAX_CHAIN_BYTES))
    .option('--per-mb <price>', 'The price per MB (1,000,000 bytes), with at most 6 decimals.')
    .option('--per-sim <price>', 'The price per active SIM and month.')
    .option('--currency <code>', 'The currency: three letters (ISO 4217).')
    .option('--svg <file>', 'Write a chart of the load by hour of the day.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', PLAN_HELP)
    .action(async (flags: PlanFlags) => {
      const { planFleet } = await import('./plan/plan.js');
      await planFleet(flags, untilInterrupted());
    });
}

function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,6}$/.test(text) && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`Expected a whole number, 1 to ${max}.`);
  };
}

function parseDays(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MAX_DAYS) return value;
  throw new InvalidArgumentError(`Expected a number of days above 0, at most ${MAX_DAYS}.`);
}

function parseSpeed(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MAX_SPEED) return value;
  throw new InvalidArgumentError(`Expected a number above 0, at most ${MAX_SPEED}.`);
}

function appendValue(value: string, earlierValues: string[]): string[] {
  return [...earlierValues, value];
}
