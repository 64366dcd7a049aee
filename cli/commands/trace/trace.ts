/** `lockgate trace …`: names, flags and help. What a command does is loaded when it is called. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { withConnection, withGateway } from '../../terminal/shared-flags.js';
import type { AnonymiseFlags } from './anonymiser.js';
import type { CheckFlags } from './checker.js';
import type { ShowFlags } from './listing.js';
import type { MqttTarget } from './replay/connection.js';
import type { ReplaySpeed } from './replay/player.js';
import type { ReplayFlags } from './replay/replay.js';
import type { ExportFlags, RecordFlags } from './source.js';

const FILES = ['<file...>', 'Traces; a name that ends in .gz is gzipped, - is the standard input.'] as const;

/** Adds the group to the program. */
export function addTraceCommands(program: Command): void {
  const trace = program.command('trace').description('Judge, list, anonymise, record and replay traces of locks.');
  addCheck(trace);
  addShow(trace);
  addAnonymise(trace);
  addExport(trace);
  addRecord(trace);
  addReplay(trace);
}

function addCheck(trace: Command): void {
  trace
    .command('check')
    .description('Judge traces by the rules of the protocol. No gateway is needed.')
    .argument(...FILES)
    .option('--coverage', 'Show which states, triggers and reasons the traces have been through.')
    .addOption(new Option('--json', 'Print one JSON document.').conflicts('junit'))
    .addOption(new Option('--junit', 'Print JUnit XML: a suite for each file, a case for each rule.'))
    .addOption(
      new Option('--fail-on <severity>', 'Exit with 1 from this severity on.')
        .choices(['violation', 'warning'])
        .default('violation'),
    )
    .option('--ignore <rule>', 'Leave out findings of this rule; may be given more than once.', collect, [])
    .addHelpText(
      'after',
      '\nExit codes: 0 no violation, 1 violations (or warnings, with --fail-on warning), 2 a file can’t be read.' +
        '\n\nExample:\n  $ lockgate trace check field/*.jsonl.gz --coverage\n' +
        '  $ lockgate trace check ride.jsonl --json --fail-on warning --ignore clock-ahead',
    )
    .action(async (files: string[], flags: CheckFlags) => {
      const { checkTraces } = await import('./checker.js');
      await checkTraces(files, flags);
    });
}

function addShow(trace: Command): void {
  trace
    .command('show')
    .description('List the pings of traces, one line each.')
    .argument(...FILES)
    .option('--mac <mac>', 'Only this lock’s.')
    .option('--reason <reason>', 'Only of this reason, such as REASON_THEFT.')
    .option('--since <date>', 'Only those received from this time on (RFC 3339).')
    .option('--until <date>', 'Only those received before this time (RFC 3339).')
    .option('--json', 'Print one JSON line for each.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate trace show ride.jsonl --reason REASON_THEFT --since 2026-11-20T06:00:00Z',
    )
    .action(async (files: string[], flags: ShowFlags) => {
      const { showTraces } = await import('./listing.js');
      await showTraces(files, flags);
    });
}

function addAnonymise(trace: Command): void {
  trace
    .command('anonymise')
    .description('Copy a trace with other MACs, another place and another time: what is found in it stays the same.')
    .argument('<file>', FILES[1].replace('Traces', 'A trace'))
    .option('--out <file>', 'Write there, gzipped where the name ends in .gz; else to the standard output.')
    .option('--seed <text>', 'The same seed gives the same copy; keep it secret, since it leads back.')
    .addHelpText(
      'after',
      '\nNotes, texts and the members of world events are left out, and bytes (raw) are dropped.' +
        '\n\nExample:\n  $ lockgate trace anonymise field.jsonl --out report.jsonl.gz',
    )
    .action(async (file: string, flags: AnonymiseFlags) => {
      const { anonymiseTrace } = await import('./anonymiser.js');
      await anonymiseTrace(file, flags);
    });
}

const REPLAY_HELP = `
Each lock of the trace connects by itself and sends its uplinks over MQTT: the very bytes (raw) where a line has them.
Locks play side by side; of each, an uplink is acknowledged before what follows is done. An uplink outside a connection
makes one. After a CONNECT refused, a connection lost or a PUBACK missing (10 s), a lock is silent until the trace
connects it again. What phones did and what operators commanded is left out, and a replayed lock takes no commands.

--as-now moves the times of all uplinks by one span, so that the first event is now by the gateway’s clock, and raises
all boots of a lock by one number where its lowest is not above the gateway’s highest, so that no uplink passes for a
repeat. Uplinks are encoded anew then.

What differs: refused or ended connections, uplinks not acknowledged or put in quarantine, and findings that the gateway
made and "trace check" of the same file does not, or the other way round. Only rules that rest on content count. What
rests on receipt, connections or time passing differs with the speed and the day, and what rests on the trace’s header
or commands is unknown to the gateway: such findings are notes.

Exit codes: 0 nothing differed, 1 something did, 2 a file or flag is wrong, 3 the gateway can’t be reached or refuses.

Example:
  $ lockgate trace replay ride.jsonl --provision --merchant "Amber Bikes" --speed 60
  $ lockgate trace replay field.jsonl.gz --secrets locks.csv --speed max --as-now --json`;

function addReplay(trace: Command): void {
  withConnection(
    trace.command('replay').description('Play a trace to a running gateway, and say what it made of it otherwise.'),
  )
    .argument('<file>', FILES[1].replace('Traces', 'A trace'))
    .option('--mqtt <url>', 'Where locks connect, mqtt://host:port (default: what the gateway says).', readMqtt)
    .option('--secrets <file>', 'The locks’ secrets: lines of MAC,SECRET.')
    .addOption(
      new Option(
        '--provision',
        'Add locks that the gateway does not know, as simulated, and give simulated ones a new secret.',
      ).conflicts('secrets'),
    )
    .option('--merchant <name>', 'Whose the added locks are; may be left out where there is one merchant only.')
    .option('--speed <times>', 'How many times as fast as the trace, or max.', readSpeed, 1)
    .option('--as-now', 'As if the first event happened now, under new names.')
    .addHelpText('after', REPLAY_HELP)
    .action(async (file: string, flags: ReplayFlags) => {
      const { replayTrace } = await import('./replay/replay.js');
      await replayTrace(file, flags, untilInterrupted());
    });
}

const DEFAULT_MQTT_PORT = 1883;

function readMqtt(text: string): MqttTarget {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol !== 'mqtt:' || url.hostname === '')
    throw new InvalidArgumentError('Expected mqtt://host:port.');
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? DEFAULT_MQTT_PORT : Number(url.port) };
}

function readSpeed(text: string): ReplaySpeed {
  const speed = Number(text);
  if (text === 'max' || (speed > 0 && Number.isFinite(speed))) return text === 'max' ? text : speed;
  throw new InvalidArgumentError('Expected a number above 0, or max.');
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function addExport(trace: Command): void {
  withGateway(trace.command('export').description('Write what a gateway has stored of its locks as a trace.'))
    .option('--mac <mac>', 'Only this lock’s; may be given more than once.', collect, [])
    .option('--since <date>', 'Only what was received from this time on (RFC 3339).')
    .option('--until <date>', 'Only what was received before this time (RFC 3339).')
    .option('--out <file>', 'Write there, gzipped where the name ends in .gz; else to the standard output.')
    .addHelpText(
      'after',
      '\nThe header says what was known of each lock when the range begins.' +
        '\n\nExample:\n  $ lockgate trace export --mac A4:C1:38:F0:E1:D2 --since 2026-11-20T00:00:00Z --out day.jsonl',
    )
    .action(async (flags: ExportFlags) => {
      const { exportTraces } = await import('./source.js');
      await exportTraces(flags);
    });
}

function addRecord(trace: Command): void {
  withGateway(trace.command('record').description('Write what happens from now on as a trace, until Ctrl-C.'))
    .option('--mac <mac>', 'Only this lock’s; may be given more than once.', collect, [])
    .option('--out <file>', 'Write there, gzipped where the name ends in .gz; else to the standard output.')
    .addHelpText('after', '\nExample:\n  $ lockgate trace record --mac A4:C1:38:F0:E1:D2 --out ride.jsonl.gz')
    .action(async (flags: RecordFlags) => {
      const { recordTraces } = await import('./source.js');
      await recordTraces(flags);
    });
}
