/**
 * The tree of commands. A group's file is loaded only where the group is called, so that `--help` and every command
 * cost what they themselves need; the root knows each group's name and what it is for.
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
reached or refuses, 4 lockgate broke, 130 ended by Ctrl-C. --json is for programs; NO_COLOR is honoured.

Example:
  $ lockgate serve --allow-webhook-range 127.0.0.0/8
  $ lockgate device list --watch
  $ lockgate completion bash --help`;

/** Names of groups among the first words of a command line; those are the ones to load for it. */
export function calledGroups(words: readonly string[]): ReadonlySet<string> {
  // Two words, since `help device` is one of help's.
  const first = words.filter((word) => !word.startsWith('-')).slice(0, 2);
  return new Set(first.filter((word) => COMMAND_GROUPS.some(({ name }) => name === word)));
}

/** Builds the command line; of groups that are not `wanted` there are name and description alone. */
export async function makeProgram(wanted: ReadonlySet<string> | 'all'): Promise<Command> {
  const program = new LockgateCommand('lockgate')
    .description('Device protocol gateway and simulator for cellular/GPS locks.')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help for a command.')
    .configureHelp({
      sortSubcommands: false,
      showGlobalOptions: false,
      // The root says names alone: of a group that isn't loaded it knows no more.
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

/** Wherever a MAC is taken it may be spelled in any way, and is checked before anything is done. */
function readMacsIn(command: Command): void {
  for (const argument of command.registeredArguments)
    if (argument.name() === 'mac' && argument.parseArg === undefined) argument.argParser(readMacText);
  for (const option of command.options)
    if (option.flags.endsWith(' <mac>') && option.parseArg === undefined) option.argParser(readMacText);
  for (const each of command.commands) readMacsIn(each);
}

/** Prose in help is written for 120 columns: a line that is over so many goes on in the next. */
const FULL_LINE = 90;

/** Help for this terminal: on a narrower one the words of a paragraph flow on, but those of examples don't. */
function fitHelp(text: string): string {
  const room = terminalWidth();
  if (room >= 120) return text;
  const lines: string[] = [];
  let goesOn = false;
  for (const line of text.split('\n')) {
    const isExample = /^\s*\$ /.test(line);
    if (goesOn && /^\S/.test(line)) lines.push(`${lines.pop() ?? ''} ${line}`);
    else lines.push(line);
    goesOn = !isExample && line.length > FULL_LINE;
  }
  return lines.flatMap((line) => (/^\s*\$ /.test(line) ? [line] : fitLine(line, room))).join('\n');
}

/** A line of a list goes on below its second column. */
function fitLine(line: string, room: number): string[] {
  const [, head = '', rest = ''] = /^( {2,}\S.*? {2,})(\S.*)$/.exec(line) ?? [];
  if (line.length <= room || head === '' || head.length > room / 2) return wrapWords(line, room);
  const [first = '', ...more] = wrapWords(rest, room - head.length);
  return [head + first, ...more.map((each) => ' '.repeat(head.length) + each)];
}

/** A command whose complaints are one sentence of ours: what is wrong, what was likely meant, where help is. */
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
    return super.error(`lockgate: ${told} (${pathOf(this)} --help says what there is)`, options);
  }
}

/** As it is typed: `lockgate device list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
