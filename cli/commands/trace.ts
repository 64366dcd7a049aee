/** `lockgate trace check|show|anonymise|export|record`: names, flags and help. What they do is loaded when it is called. */
import { type Command, Option } from 'commander';
import { withGateway } from '../connection-flags.js';
import type { AnonymiseFlags } from '../trace-anonymiser.js';
import type { CheckFlags } from '../trace-checker.js';
import type { ShowFlags } from '../trace-listing.js';
import type { ExportFlags, RecordFlags } from '../trace-source.js';

const FILES = ['<file...>', 'Traces; a name that ends in .gz is gzipped, - is the standard input.'] as const;

/** Adds the group to the program. */
export function addTraceCommands(program: Command): void {
  const trace = program.command('trace').description('What locks did, as files: judged, listed, made anonymous.');
  addCheck(trace);
  addShow(trace);
  addAnonymise(trace);
  addExport(trace);
  addRecord(trace);
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
      const { checkTraces } = await import('../trace-checker.js');
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
      const { showTraces } = await import('../trace-listing.js');
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
      const { anonymiseTrace } = await import('../trace-anonymiser.js');
      await anonymiseTrace(file, flags);
    });
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
      const { exportTraces } = await import('../trace-source.js');
      await exportTraces(flags);
    });
}

function addRecord(trace: Command): void {
  withGateway(trace.command('record').description('Write what happens from now on as a trace, until Ctrl-C.'))
    .option('--mac <mac>', 'Only this lock’s; may be given more than once.', collect, [])
    .option('--out <file>', 'Write there, gzipped where the name ends in .gz; else to the standard output.')
    .addHelpText('after', '\nExample:\n  $ lockgate trace record --mac A4:C1:38:F0:E1:D2 --out ride.jsonl.gz')
    .action(async (flags: RecordFlags) => {
      const { recordTraces } = await import('../trace-source.js');
      await recordTraces(flags);
    });
}
