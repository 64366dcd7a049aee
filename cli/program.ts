/**
 * Builds the command tree. A group's file is loaded only if the group is called, so that `--help` and each command load
 * only what they need; of the other groups only name and description are known.
 */
import { Command, type ErrorOptions } from 'commander';
import { VERSION } from '../gateway/version.js';
import { COMMAND_GROUPS } from './command-groups.js';
import { terminalWidth } from './terminal/output.js';
import { readMacText } from './terminal/shared-flags.js';
import { wrapWords } from './terminal/word-wrap.js';
import { wrongWordText } from './terminal/wrong-word.js';

const ROOT_HELP = `
Exit codes: 0 done, 1 it ran and the answer is no, 2 the command line or an input file is wrong, 3 the gateway can't be
reached or refuses, 4 an error in lockgate, 130 interrupted by Ctrl-C. --json is for programs; NO_COLOR is respected.

Example:
  $ lockgate serve --allow-webhook-range 127.0.0.0/8
  $ lockgate device list --watch
  $ lockgate completion bash --help`;

/** The groups to load for a command line. */
export function calledGroups(words: readonly string[]): ReadonlySet<string> {
  // Two words, since `help device` is one of help's.
  const first = words.filter((word) => !word.startsWith('-')).slice(0, 2);
  return new Set(first.filter((word) => COMMAND_GROUPS.some(({ name }) => name === word)));
}

/** Builds the command tree; groups that are not `wanted` have only name and description. */
export async function makeProgram(wanted: ReadonlySet<string> | 'all'): Promise<Command> {
  const program = new LockgateCommand('lockgate')
    .description('Device protocol gateway and simulator for cellular/GPS locks.')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help for a command.')
    .configureHelp({
      sortSubcommands: false,
      showGlobalOptions: false,
      // Only names at the root: the arguments of groups that aren't loaded are unknown.
      subcommandTerm(command) {
        const isOfRoot = command.parent !== null && command.parent.parent === null;
        return isOfRoot ? command.name() : Object.getPrototypeOf(this).subcommandTerm.call(this, command);
      },
    })
    .configureOutput({ writeOut: (text) => process.stdout.write(fitHelp(text)) })
    .showSuggestionAfterError(false)
    .addHelpText('after', ROOT_HELP)
    .exitOverride();
  for (const { name, description, load } of COMMAND_GROUPS) {
    if (wanted === 'all' || wanted.has(name)) (await load())(program);
    else program.command(name).description(description);
  }
  readMacsIn(program);
  return program;
}

/** Accepts MACs in any common spelling, for every argument and flag that takes one. */
function readMacsIn(command: Command): void {
  for (const argument of command.registeredArguments)
    if (argument.name() === 'mac' && argument.parseArg === undefined) argument.argParser(readMacText);
  for (const option of command.options)
    if (option.flags.endsWith(' <mac>') && option.parseArg === undefined) option.argParser(readMacText);
  for (const each of command.commands) readMacsIn(each);
}

/** Help is written for 120 columns; a line longer than this continues in the next. */
const FULL_LINE = 90;

/** Wraps help for this terminal: on a narrow one paragraphs are rewrapped, but not examples. */
function fitHelp(text: string): string {
  const room = terminalWidth();
  if (room >= 120) return text;
  const lines: string[] = [];
  let continues = false;
  for (const line of text.split('\n')) {
    const isExample = /^\s*\$ /.test(line);
    if (continues && /^\S/.test(line)) lines.push(`${lines.pop() ?? ''} ${line}`);
    else lines.push(line);
    continues = !isExample && line.length > FULL_LINE;
  }
  return lines.flatMap((line) => (/^\s*\$ /.test(line) ? [line] : fitLine(line, room))).join('\n');
}

/** Wraps a line; a list entry continues below its second column. */
function fitLine(line: string, room: number): string[] {
  const [, head = '', rest = ''] = /^( {2,}\S.*? {2,})(\S.*)$/.exec(line) ?? [];
  if (line.length <= room || head === '' || head.length > room / 2) return wrapWords(line, room);
  const [first = '', ...more] = wrapWords(rest, room - head.length);
  return [head + first, ...more.map((each) => ' '.repeat(head.length) + each)];
}

/** A command that reports errors in one sentence: what is wrong, what was likely meant, and how to get help. */
class LockgateCommand extends Command {
  override createCommand(name?: string): Command {
    return new LockgateCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    const words = ['help'];
    const flags: string[] = [];
    for (let command: Command | null = this; command !== null; command = command.parent)
      flags.push(...command.options.flatMap(({ long }) => long ?? []));
    for (const command of this.commands) words.push(command.name());
    const told = wrongWordText(message, { words, flags: ['--help', ...flags] });
    return super.error(`lockgate: ${told} (see ${pathOf(this)} --help)`, options);
  }
}

/** The command as it is typed: `lockgate device list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
