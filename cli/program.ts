/**
 * Builds the command tree. A group's file is loaded only if the group is called, so that `--help` and each command load
 * only what they need; the tree has only the name and description of the remaining groups.
 */
import { Command, type ErrorOptions } from 'commander';
import { VERSION } from '../gateway/version.js';
import { COMMAND_GROUPS } from './command-groups.js';
import { terminalWidth } from './terminal/output.js';
import { readMacText } from './terminal/shared-flags.js';
import { wrapWords } from './terminal/word-wrap.js';
import { wrongWordText } from './terminal/wrong-word.js';

const ROOT_HELP = `
Exit codes: 0 done, 1 the command ran with a negative result, such as violations or a difference, 2 the command line or
an input file is wrong, 3 the gateway can't be reached or refuses, 4 an error in lockgate, 130 interrupted by Ctrl-C.
--json is for programs; NO_COLOR is respected.

Example:
  $ lockgate serve --allow-webhook-range 127.0.0.0/8
  $ lockgate device list --watch
  $ lockgate completion bash --help`;

/** The groups to load for a command line. */
export function calledGroups(words: readonly string[]): ReadonlySet<string> {
  // Two words, because `help device` needs the group `device`.
  const firstWords = words.filter((word) => !word.startsWith('-')).slice(0, 2);
  return new Set(firstWords.filter((word) => COMMAND_GROUPS.some(({ name }) => name === word)));
}

/** Builds the command tree. Groups that are not in `loadedGroups` have only name and description. */
export async function makeProgram(loadedGroups: ReadonlySet<string> | 'all'): Promise<Command> {
  const program = new LockgateCommand('lockgate')
    .description('Device protocol gateway and simulator for cellular/GPS locks.')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help for a command.')
    .configureHelp({
      sortSubcommands: false,
      showGlobalOptions: false,
      // The root lists only names: the arguments of groups that aren't loaded are unknown.
      subcommandTerm(command) {
        const isOfRoot = command.parent !== null && command.parent.parent === null;
        return isOfRoot ? command.name() : Object.getPrototypeOf(this).subcommandTerm.call(this, command);
      },
      // A flag that can be repeated has an empty list as default, which help need not show.
      optionDescription(option) {
        return Object.getPrototypeOf(this).optionDescription.call(this, option).replace(' (default: [])', '');
      },
    })
    .configureOutput({ writeOut: (text) => process.stdout.write(fitHelp(text)) })
    .showSuggestionAfterError(false)
    .addHelpText('after', ROOT_HELP)
    .exitOverride();
  for (const { name, description, load } of COMMAND_GROUPS) {
    if (loadedGroups === 'all' || loadedGroups.has(name)) (await load())(program);
    else program.command(name).description(description);
  }
  acceptMacSpellings(program);
  return program;
}

/** Makes every argument and flag that takes a MAC accept all common spellings, such as `a4c1.38f0.e1d2`. */
function acceptMacSpellings(command: Command): void {
  for (const argument of command.registeredArguments)
    if (argument.name() === 'mac' && argument.parseArg === undefined) argument.argParser(readMacText);
  for (const option of command.options)
    if (option.flags.endsWith(' <mac>') && option.parseArg === undefined) option.argParser(readMacText);
  for (const each of command.commands) acceptMacSpellings(each);
}

/** Help texts are written with lines of up to 120 columns. */
const HELP_WIDTH = 120;
/** A line of a help text that is longer than this belongs to the same paragraph as the next line. */
const MIN_CONTINUED_LENGTH = 90;

/** Wraps a help text for a terminal narrower than {@link HELP_WIDTH}: rewraps paragraphs, but not examples. */
function fitHelp(text: string): string {
  const columns = terminalWidth();
  if (columns >= HELP_WIDTH) return text;
  const lines: string[] = [];
  let isContinued = false;
  for (const line of text.split('\n')) {
    const isExample = /^\s*\$ /.test(line);
    if (isContinued && /^\S/.test(line)) lines.push(`${lines.pop() ?? ''} ${line}`);
    else lines.push(line);
    isContinued = !isExample && line.length > MIN_CONTINUED_LENGTH;
  }
  return lines.flatMap((line) => (/^\s*\$ /.test(line) ? [line] : fitLine(line, columns))).join('\n');
}

/** Wraps a line. An entry of a list (`  --flag  description`) is continued below its description. */
function fitLine(line: string, columns: number): string[] {
  const [, firstColumn = '', description = ''] = /^( {2,}\S.*? {2,})(\S.*)$/.exec(line) ?? [];
  const indent = firstColumn.length;
  if (line.length <= columns || indent === 0 || indent > columns / 2) return wrapWords(line, columns);
  const [firstLine = '', ...moreLines] = wrapWords(description, columns - indent);
  return [firstColumn + firstLine, ...moreLines.map((each) => ' '.repeat(indent) + each)];
}

/** A command that reports errors in one sentence: what is wrong, what was likely meant, and how to get help. */
class LockgateCommand extends Command {
  override createCommand(name?: string): Command {
    return new LockgateCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    const commandNames = ['help'];
    const flags: string[] = [];
    for (let command: Command | null = this; command !== null; command = command.parent)
      flags.push(...command.options.flatMap(({ long }) => long ?? []));
    for (const command of this.commands) commandNames.push(command.name());
    const sentence = wrongWordText(message, { words: commandNames, flags: ['--help', ...flags] });
    return super.error(`lockgate: ${sentence} (see ${commandPath(this)} --help)`, options);
  }
}

/** The command as a user types it, such as `lockgate device list`. */
function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}
