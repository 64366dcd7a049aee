/** `lockgate sim …`: names, flags and help. What a command does is loaded when it is called. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import type { PlanFlags, SimFlags } from './flags.js';
import { addSimShell } from './shell/command.js';

const MOST_LOCKS = 100_000;
const MOST_DAYS = 3660;
const MOST_SPEED = 3600;
const DEFAULT_SEED = '1';

/** Flags of live runs; they make no sense without a gateway. */
const LIVE_FLAGS = ['gateway', 'token', 'data', 'speed', 'secrets', 'merchant', 'ca'];

/** Flags for what a scenario file already says. */
const SCENARIO_FLAGS = ['locks', 'days', 'pace', 'mix', 'route', 'around', 'fault', 'start', 'fromTrace'];

/** Flags for how a fleet is generated; with a trace it is not. */
const FLEET_FLAGS = ['locks', 'days', 'seed', 'pace', 'mix', 'bug', 'fault', 'start', 'route', 'around'];

/** Adds the group to the program. */
export function addSimCommands(program: Command): void {
  const sim = program.command('sim').description('Simulate locks, with firmware bugs and network faults.');
  addRun(sim);
  addPlan(sim);
  addSimShell(sim);
  sim
    .command('scenarios')
    .description('List the built-in scenarios, or print one as a start for your own.')
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
    .description('List the firmware bugs that locks can have, and the rule that each one breaks.')
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
docs/scenarios.md describes the format. "sim run --scenario" plays one and checks what it expects.

Example:
  $ lockgate sim scenarios
  $ lockgate sim scenarios theft > mine.yaml
  $ lockgate sim run --virtual --scenario mine.yaml`;

const RUN_HELP = `
With --virtual it needs no gateway and does not wait: the trace of the whole run is written as fast as possible, and the
same seed and options give the same bytes (gzipped, the same text: the compression is Node's). "trace check" judges it.
Without --out only the counts are shown.

Without --virtual the locks are live, over MQTT, until Ctrl-C or for --days. --gateway names either the operator's
interface (http://…; by default that of this folder), which then says where locks connect and, without --secrets, adds
each lock as a simulated device with a new secret; or the address where locks connect (mqtt://host:port or mqtts://…).
With --secrets the locks are the first of that file (mac,secret). A live run takes its boot numbers from the current
time, so that it never repeats the uplink numbers of an earlier run.

With --speed other than 1 the gateway must run at the same speed, as that of "lockgate demo" does: otherwise the judge
and presence, which use the gateway's clock, find everything late or early.

--mix gives shares of the locks' first settings: words joined by + (mid, high, ride, recovery, airplane, low-battery),
such as mid=50,mid+ride=20,high=20,recovery=5,low-battery=5. Without it most are in MID, some in HIGH. With --route the
bicycles live where the file's route starts. They are ridden along it after a minute, and then there and back at the
times that --pace gives: at the recorded speed if the file has times, otherwise at 3.5 to 6.5 m/s. Ride tracking is on
unless --mix says otherwise. With --around the streets are generated around another point, in its solar time zone.

--bug and --fault may be given more than once; a bug is for all locks, or as NAME:LOCKS for that many.

--from-trace FILE simulates the locks of a recorded trace (plain or .gz), each in a world of its own: when it was
unlocked, ridden, stolen, charged or out of reach is inferred from its pings, or taken from the trace's world events. A
healthy lock in that world makes the same pings; at the end both are counted by reason, with the first difference. For a
lock that misbehaved the difference is the bug. In a live run all times are shifted to now.

--scenario plays a scenario, by its name ("sim scenarios") or from a file, and checks what it expects: virtual, or live
against a gateway, whose operator's interface then sends its commands and creates credentials for its phones. The exit
code is 1 if an expectation is not met, or the judge finds something that the scenario does not allow.

Exit codes: 0 done, 1 the scenario failed, 2 a flag or file is wrong, 3 the gateway can’t be reached or refuses,
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
    .description('Run a fleet: without a gateway, writing a trace, or live against a gateway.')
    .addOption(new Option('--virtual', 'Without a gateway and without waiting.').conflicts(LIVE_FLAGS))
    .addOption(
      new Option('--scenario <name>', 'Play a scenario: its name ("sim scenarios"), or a file.').conflicts(
        SCENARIO_FLAGS,
      ),
    )
    .option('--locks <n>', 'How many locks (default: 12, or all of --secrets).', whole(MOST_LOCKS))
    .option('--days <n>', 'How many days of the run’s time (default: 1; live: until Ctrl-C).', days)
    .option('--seed <text>', 'The seed from which everything is generated.', DEFAULT_SEED)
    .addOption(new Option('--pace <pace>', 'How eventful it is.').choices(['everyday', 'lively']).default('everyday'))
    .addOption(
      new Option('--from-trace <file>', 'Infer the locks and what happens to them from a recorded trace.').conflicts(
        FLEET_FLAGS,
      ),
    )
    .option('--mix <shares>', 'Shares of their first settings, such as mid=60,high+ride=20.')
    .option('--route <file>', 'The route that all ride, there and back: a GPX file, or GeoJSON with a line.')
    .option('--around <lat,lon>', 'The middle of the city that they live in (default: Amsterdam).')
    .option('--bug <name>', 'A firmware bug: NAME for all locks, NAME:LOCKS for that many ("sim bugs").', collect, [])
    .option('--fault <name>', 'A network fault, or "all" ("sim faults").', collect, [])
    .option('--out <file>', 'Virtual: the file of the trace, gzipped if it ends in .gz; - is the standard output.')
    .option('--start <date>', 'Virtual: the start of the run, RFC 3339 (default: 2026-01-05T00:00:00Z).')
    .option('--world', 'Virtual: also write world events, the ground truth around the locks, to the trace.')
    .option('--gateway <url>', 'Live: mqtt://host:port, mqtts://…, or the operator’s interface [LOCKGATE_GATEWAY].')
    .option('--token <token>', 'Live: the operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'Live: the gateway’s data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--speed <n>', 'Live: how many times faster than real time.', speed, 1)
    .option('--secrets <file>', 'Live: the locks and their secrets, lines of MAC,SECRET.')
    .option('--merchant <name>', 'Live: the merchant of locks that are added; optional if there is only one.')
    .option('--ca <file>', 'Live: the certificates (PEM) to trust for mqtts://.')
    .option('--list-bugs', 'List the firmware bugs and exit.')
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
/** Approximately the settings of a fleet without a mix, which "sim run" draws for each lock. */
const PLAN_MIX = 'mid=55,mid+ride=23,high=14,high+ride=6,recovery=2';

const PLAN_HELP = `
It simulates the fleet without a gateway, counts its traffic as a gateway's meter would (every MQTT frame in both
directions, including keepalives, and with --tls the overhead of TLS), and prints the traffic of a month of 30 days by
part of the mix, and the load by hour of the day. The measurement starts after a day.

--mix is that of "sim run": the locks' first settings. A lock whose battery is low at the start is charged some day. A
fleet of more than --sample locks is estimated from a sample of that size, each part of the mix separately, and the
standard error is shown. The prices are those of "usage plan set". With --tls each connection has a full handshake (TLS
1.3, one self-signed P-256 certificate); --chain adds the bytes of further certificates that your gateway sends.

Exit codes: 0 done, 2 a flag or file is wrong, 130 ended by Ctrl-C.

Example:
  $ lockgate sim plan --locks 20000 --mix mid=70,high=25,recovery=5 --per-mb 0.12 --per-sim 0.80 --currency EUR
  $ lockgate sim plan --locks 500 --days 30 --tls --chain 2400 --svg load.svg`;

function addPlan(sim: Command): void {
  sim
    .command('plan')
    .description('Size a fleet before it is bought: connections, pings, data and its price.')
    .requiredOption('--locks <n>', 'How many locks.', whole(MOST_PLANNED_LOCKS))
    .option('--mix <shares>', 'Shares of their first settings, such as mid=60,high+ride=20.', PLAN_MIX)
    .option('--days <n>', 'How many days to measure.', whole(MOST_PLANNED_DAYS), 7)
    .option('--seed <text>', 'The seed from which everything is generated.', DEFAULT_SEED)
    .addOption(new Option('--pace <pace>', 'How eventful it is.').choices(['everyday', 'lively']).default('everyday'))
    .option('--sample <n>', 'The most locks to simulate.', whole(MOST_SAMPLED), 1000)
    .option('--commands <n>', 'Commands (locate by GPS) to each lock per month.', whole(MOST_COMMANDS), 0)
    .option('--tls', 'Locks connect over TLS.')
    .option('--chain <bytes>', 'With --tls: bytes of further certificates.', whole(MOST_CHAIN_BYTES))
    .option('--per-mb <price>', 'The price of an MB (1,000,000 bytes), with at most 6 decimals.')
    .option('--per-sim <price>', 'The price of an active SIM for a month.')
    .option('--currency <code>', 'ISO 4217, three letters.')
    .option('--svg <file>', 'Write a chart of the load by hour of the day.')
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
