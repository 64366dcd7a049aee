/** `lockgate trace …`: names, flags and help. The code of a command is loaded when it is called. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { addClientFlags, addGatewayFlags } from '../../terminal/shared-flags.js';
import type { AnonymiseFlags } from './anonymiser.js';
import { addTraceCertify } from './certify/command.js';
import { addCheckCommand } from './check/command.js';
import { appendValue, FILES_ARGUMENT } from './command-line.js';
import { addDiff } from './diff/diff-command.js';
import type { ImportFlags } from './import/import.js';
import type { ShowFlags } from './listing.js';
import type { MqttTarget } from './replay/connection.js';
import type { ReplaySpeed } from './replay/player.js';
import type { ReplayFlags } from './replay/replay.js';
import { addShrink } from './shrink/shrink-command.js';
import type { ExportFlags, RecordFlags } from './source.js';
import { addWhatIf } from './what-if/what-if-command.js';
import { addTraceWhy } from './why/command.js';

/** Adds the group to the program. */
export function addTraceCommands(program: Command): void {
  const trace = program.command('trace').description('Judge, list, anonymise, record and replay traces of locks.');
  trace.addHelpText(
    'after',
    '\nA trace is JSON Lines: docs/traces.md describes the format, docs/protocol.md the rules.',
  );
  addCheckCommand(trace);
  addShow(trace);
  addTraceWhy(trace);
  addTraceCertify(trace);
  addAnonymise(trace);
  addExport(trace);
  addRecord(trace);
  addReplay(trace);
  addImport(trace);
  addShrink(trace);
  addDiff(trace);
  addWhatIf(trace);
}

function addShow(trace: Command): void {
  trace
    .command('show')
    .description('List the pings of traces, one line each, or all events and findings.')
    .argument(...FILES_ARGUMENT)
    .option('--mac <mac>', 'Only this lock.')
    .option('--reason <reason>', 'Only pings with this reason, such as REASON_THEFT.')
    .option('--all', 'A timeline: also connections, commands, answers, other events, and findings.')
    .option('--since <date>', 'Only what was received at or after this time (RFC 3339).')
    .option('--until <date>', 'Only what was received before this time (RFC 3339).')
    .option('--json', 'Print one JSON line per ping, or per event and finding with --all.')
    .addHelpText(
      'after',
      '\nEach finding is below the line that it is about, as "trace check" names it; "trace why" explains it.' +
        '\n\nExample:\n  $ lockgate trace show ride.jsonl --reason REASON_THEFT --since 2026-11-20T06:00:00Z\n' +
        '  $ lockgate trace show ride.jsonl.gz --all --mac A4:C1:38:F0:E1:D2',
    )
    .action(async (files: string[], flags: ShowFlags) => {
      const { showTraces } = await import('./listing.js');
      await showTraces(files, flags);
    });
}

function addAnonymise(trace: Command): void {
  trace
    .command('anonymise')
    .description('Copy a trace with different MACs, places and times but the same findings.')
    .argument('<file>', FILES_ARGUMENT[1].replace('Traces', 'A trace'))
    .option('--out <file>', 'The file to write, gzipped if it ends in .gz (default: standard output).')
    .option('--seed <text>', 'Make the copy reproducible. Keep the seed secret: it can reveal the originals.')
    .addHelpText(
      'after',
      '\nThe copy has no notes and no raw bytes. The detail of an acknowledgement becomes a meaningless word. A world' +
        '\nevent, which says what really happened around a simulated lock, becomes a line with only a time.' +
        '\n\nExample:\n  $ lockgate trace anonymise field.jsonl --out report.jsonl.gz',
    )
    .action(async (file: string, flags: AnonymiseFlags) => {
      const { anonymiseTrace } = await import('./anonymiser.js');
      await anonymiseTrace(file, flags);
    });
}

const REPLAY_HELP = `
Each lock of the trace opens its own MQTT connection and sends its uplinks: the original bytes (raw) if a line has
them, otherwise the encoded fields. Locks are replayed in parallel; each waits for the PUBACK of an uplink before its
next step. For an uplink outside a connection the replay opens one. After a refused CONNECT, a lost connection or a
missing PUBACK (10 s), a lock is silent until the trace connects it again. Events of phones and commands of operators
are not replayed, and a replayed lock accepts no commands.

--as-now shifts the times of all uplinks so that the first event is now by the gateway’s clock. It also raises a lock’s
boot numbers above the gateway’s highest, where necessary, so that no uplink counts as a repeat. It encodes all uplinks
again.

Differences are: refused or closed connections, uplinks that are not acknowledged or are quarantined, and findings that
only the gateway or only "trace check" makes. Only rules about content count. Two kinds of findings are shown as notes:
those about receipt, connections or the passing of time, which depend on the speed and the day, and those that depend
on the trace’s header or commands, which the gateway does not see.

Exit codes: 0 no differences, 1 differences, 2 a file or flag is wrong, 3 the gateway can’t be reached or refuses.

Example:
  $ lockgate trace replay ride.jsonl --provision --merchant "Amber Bikes" --speed 60
  $ lockgate trace replay field.jsonl.gz --secrets locks.csv --speed max --as-now --json`;

function addReplay(trace: Command): void {
  addClientFlags(
    trace.command('replay').description('Replay a trace against a running gateway, and report differences.'),
  )
    .argument('<file>', FILES_ARGUMENT[1].replace('Traces', 'A trace'))
    .option('--mqtt <url>', 'Where locks connect, mqtt://host:port (default: as the gateway reports).', parseMqttUrl)
    .option('--secrets <file>', 'Read the locks’ secrets from this file: lines of MAC,SECRET.')
    .addOption(
      new Option(
        '--provision',
        'Add unknown locks as simulated locks, and give known simulated locks a new secret.',
      ).conflicts('secrets'),
    )
    .option('--merchant <name>', 'The merchant to which --provision adds locks (default: the only one).')
    .option('--speed <times>', 'How many times faster than the trace; max for no pauses.', parseSpeed, 1)
    .option('--as-now', 'Replay as if the first event happened now, with new uplink numbers.')
    .addHelpText('after', REPLAY_HELP)
    .action(async (file: string, flags: ReplayFlags) => {
      const { replayTrace } = await import('./replay/replay.js');
      await replayTrace(file, flags, untilInterrupted());
    });
}

const DEFAULT_MQTT_PORT = 1883;

function parseMqttUrl(text: string): MqttTarget {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol !== 'mqtt:' || url.hostname === '')
    throw new InvalidArgumentError('Expected mqtt://host:port.');
  // A URL has an IPv6 address in brackets, mqtt://[::1]:1883; a socket needs it without them.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { host, port: url.port === '' ? DEFAULT_MQTT_PORT : Number(url.port) };
}

function parseSpeed(text: string): ReplaySpeed {
  const speed = Number(text);
  if (text === 'max' || (speed > 0 && Number.isFinite(speed))) return text === 'max' ? text : speed;
  throw new InvalidArgumentError('Expected a number above 0, or max.');
}

function addExport(trace: Command): void {
  addGatewayFlags(trace.command('export').description('Write a trace from the events in a gateway’s store.'))
    .option('--mac <mac>', 'Only this lock; can be repeated.', appendValue, [])
    .option('--since <date>', 'Only events received at or after this time (RFC 3339).')
    .option('--until <date>', 'Only events received before this time (RFC 3339).')
    .option('--out <file>', 'The file to write, gzipped if it ends in .gz (default: standard output).')
    .addHelpText(
      'after',
      '\nThe trace’s header has each lock’s last known state before the range.' +
        '\n\nExample:\n  $ lockgate trace export --mac A4:C1:38:F0:E1:D2 --since 2026-11-20T00:00:00Z --out day.jsonl',
    )
    .action(async (flags: ExportFlags) => {
      const { exportTraces } = await import('./source.js');
      await exportTraces(flags);
    });
}

function addRecord(trace: Command): void {
  addGatewayFlags(trace.command('record').description('Write a trace of events from now on, until Ctrl-C.'))
    .option('--mac <mac>', 'Only this lock; can be repeated.', appendValue, [])
    .option('--out <file>', 'The file to write, gzipped if it ends in .gz (default: standard output).')
    .addHelpText('after', '\nExample:\n  $ lockgate trace record --mac A4:C1:38:F0:E1:D2 --out ride.jsonl.gz')
    .action(async (flags: RecordFlags) => {
      const { recordTraces } = await import('./source.js');
      await recordTraces(flags);
    });
}

const IMPORT_HELP = `
Formats (docs/import.md has the details):
  pcap           captures of tcpdump or Wireshark: plain MQTT 3.1.1. TLS can’t be read.
  mosquitto-log  what "mosquitto_sub -F '%I %t %x'" printed, and Mosquitto’s own log.
  traccar-csv    Traccar’s CSV export of positions.
  csv            any CSV file; --map says which columns hold what.
  at-log         a modem’s log of AT+QMT… commands, with times.

Several files become one trace, in order of time. Files may be gzipped. What is not imported is counted and reported,
on stderr if the trace goes to stdout. Connections and uplink numbers that a recording lacks are inferred.

Exit codes: 0 done, 2 a file or flag is wrong, or a recording has no event of a lock.

Example:
  $ lockgate trace import --from pcap bench.pcap --out bench.jsonl
  $ lockgate trace import --from mosquitto-log sub.log mosquitto.log --out field.jsonl.gz
  $ lockgate trace import --from csv positions.csv --map columns.yaml --json --out positions.jsonl`;

function addImport(trace: Command): void {
  trace
    .command('import')
    .description('Turn recordings of other programs into a trace.')
    .argument('<file...>', 'Recordings of one format; - is the standard input.')
    .addOption(
      new Option('--from <format>', 'The format of the recordings.')
        .choices(['pcap', 'mosquitto-log', 'traccar-csv', 'csv', 'at-log'])
        .makeOptionMandatory(),
    )
    .option('--map <file>', 'Which columns of a CSV file hold what (YAML).')
    .option('--mac <mac>', 'The lock of rows that name none.')
    .option('--port <n>', 'The port of MQTT in captures; can be repeated (default: 1883).', appendPort, [])
    .option('--utc-offset <offset>', 'The offset of times without one, such as +01:00 (default: UTC).')
    .option('--out <file>', 'The file to write, gzipped if it ends in .gz (default: standard output).')
    .option('--json', 'Print the report as JSON; needs --out.')
    .addHelpText('after', IMPORT_HELP)
    .action(async (files: string[], flags: ImportFlags) => {
      const { importRecordings } = await import('./import/import.js');
      await importRecordings(files, flags);
    });
}

const MAX_PORT = 65_535;

function appendPort(text: string, before: number[]): number[] {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > MAX_PORT)
    throw new InvalidArgumentError(`Expected a port, 1 to ${MAX_PORT}.`);
  return [...before, port];
}
