/**
 * Shell completion: offers words of the command tree, and values that a running gateway knows. The shells' scripts
 * (scripts.ts) call this at every Tab.
 *
 * The output is a line for each word; in zsh and fish, which show meanings, a tab and the word's meaning follow. A last
 * line `:files` or `:folders` makes the script also offer names of files or folders. Nothing else may be printed, not
 * even an error.
 */
import type { Argument, Command, Option } from 'commander';
import { print } from '../../terminal/output.js';
import { readBashLine } from './bash-line.js';
import { valuesFor, type WordValue } from './values.js';

/** Builds the command tree with the groups that these words call. */
type LoadTree = (words: readonly string[]) => Promise<Command>;

/** What may be typed at the cursor: words, and possibly names of files or folders. */
interface Offer {
  readonly values: readonly WordValue[];
  readonly paths?: 'files' | 'folders';
}

/**
 * Answers a shell. Arguments: `bash` and the line up to the cursor; or `zsh` or `fish` and the words after the
 * program's name, the last of which is being typed.
 */
export async function printCompletions([shell, ...args]: readonly string[], load: LoadTree): Promise<void> {
  try {
    const line = shell === 'bash' ? readBashLine(args[0] ?? '') : null;
    const words = line?.words.slice(1) ?? [...args];
    const typed = words.pop() ?? '';
    const { values, paths } = await offerFor(await load(words), words, typed);
    for (const { value, means = '' } of values.filter((each) => matchesStart(each.value, typed))) {
      if (line === null) print(means === '' ? value : `${value}\t${means}`);
      else print(line.toShellText(value));
    }
    if (paths !== undefined) print(`:${paths}`);
  } catch {
    // After an error there are no completions.
  }
}

const MAC = /^[0-9A-F]{2}(?::[0-9A-F]{2}){5}$/;

/** Whether `typed` is the start of the value; a MAC can be typed in any spelling. */
function matchesStart(value: string, typed: string): boolean {
  if (value.startsWith(typed)) return true;
  const digits = typed.replace(/[:.-]/g, '').toUpperCase();
  return MAC.test(value) && digits !== '' && value.replaceAll(':', '').startsWith(digits);
}

async function offerFor(program: Command, wordsBefore: readonly string[], typed: string): Promise<Offer> {
  const { command, awaitingOption, flags, isAfterDashes } = readWords(program, wordsBefore);
  const context = { flags, words: wordsBefore };
  if (awaitingOption !== undefined) return await valuesOf(command, awaitingOption, context);
  if (!isAfterDashes && typed.startsWith('-')) {
    const [flag, value] = splitFlag(typed);
    if (value === undefined) return { values: flagsOf(command) };
    const option = findOption(command, flag);
    if (option === undefined) return { values: [] };
    const { values } = await valuesOf(command, option, context);
    return { values: values.map((each) => ({ ...each, value: `${flag}=${each.value}` })) };
  }
  const commands = command.commands.map((each) => ({ value: each.name(), means: each.description() }));
  const argument = argumentAt(command, countArguments(command, wordsBefore));
  const offer = argument === undefined ? { values: [] } : await valuesOf(command, argument, context);
  const isGroup = command.commands.length > 0;
  const help = isGroup && command.parent === null ? [{ value: 'help', means: 'Show help for a command.' }] : [];
  return { ...offer, values: [...commands, ...help, ...offer.values] };
}

/** What the words before the cursor mean. */
interface WordsBefore {
  readonly command: Command;
  /** The flag whose value is being typed, if any. */
  readonly awaitingOption: Option | undefined;
  /** The values of the flags. */
  readonly flags: ReadonlyMap<string, string>;
  /** Whether `--` came before the cursor, after which no word is a flag. */
  readonly isAfterDashes: boolean;
}

/** Interprets the words before the cursor. */
function readWords(program: Command, wordsBefore: readonly string[]): WordsBefore {
  let command = program;
  let awaitingOption: Option | undefined;
  let isAfterDashes = false;
  const flags = new Map<string, string>();
  for (const word of wordsBefore) {
    if (awaitingOption !== undefined) {
      flags.set(awaitingOption.long ?? '', word);
      awaitingOption = undefined;
    } else if (word === '--') isAfterDashes = true;
    else if (!isAfterDashes && word.startsWith('-')) {
      const [flag, value] = splitFlag(word);
      const option = findOption(command, flag);
      if (value !== undefined) flags.set(flag, value);
      else if (option?.required) awaitingOption = option;
    } else command = command.commands.find((each) => each.name() === word) ?? command;
  }
  return { command, awaitingOption, flags, isAfterDashes };
}

/** The number of words before the cursor that are arguments of the command: neither command names nor flags. */
function countArguments(command: Command, wordsBefore: readonly string[]): number {
  // The names of the command and its groups are no arguments, so counting starts below zero by their number.
  let count = -depthOf(command);
  let isValue = false;
  for (const word of wordsBefore) {
    if (isValue) isValue = false;
    else if (word.startsWith('-')) {
      const [flag, value] = splitFlag(word);
      isValue = value === undefined && findOption(command, flag)?.required === true;
    } else count += 1;
  }
  return Math.max(count, 0);
}

/** How many names the command is called by: 2 for `device show`. */
function depthOf(command: Command): number {
  return command.parent === null ? 0 : 1 + depthOf(command.parent);
}

/** The argument at an index; a variadic one, which is the last, takes all further words. */
function argumentAt(command: Command, index: number): Argument | undefined {
  const all = command.registeredArguments;
  const last = all.at(-1);
  return all[index] ?? (last?.variadic ? last : undefined);
}

function splitFlag(word: string): [flag: string, value?: string] {
  const equals = word.indexOf('=');
  return equals < 0 ? [word] : [word.slice(0, equals), word.slice(equals + 1)];
}

/** Finds a flag of the command or of a group that it belongs to. */
function findOption(command: Command, flag: string): Option | undefined {
  const ownFlag = command.options.find(({ long, short }) => long === flag || short === flag);
  return ownFlag ?? (command.parent === null ? undefined : findOption(command.parent, flag));
}

function flagsOf(command: Command): WordValue[] {
  const ownFlags = command.options.filter(({ hidden }) => !hidden);
  const flags = ownFlags.map(({ long, description }) => ({ value: long ?? '', means: description }));
  return [...flags, { value: '--help', means: 'Show help.' }];
}

/** The values that an argument or a flag takes. */
async function valuesOf(
  command: Command,
  target: Argument | Option,
  context: { readonly flags: ReadonlyMap<string, string>; readonly words: readonly string[] },
): Promise<Offer> {
  if (target.argChoices !== undefined) return { values: target.argChoices.map((value) => ({ value })) };
  // What the value is: for a flag the name in angle brackets, such as <file>.
  const valueName = 'flags' in target ? (/<([^>]+)>$/.exec(target.flags)?.[1] ?? '') : target.name();
  if (valueName === 'file' || valueName === 'folder') return { values: [], paths: `${valueName}s` };
  const name = 'flags' in target ? (target.long ?? '') : `<${target.name()}>`;
  return { values: await valuesFor(pathOf(command), name, valueName, context) };
}

/** The command's words without the program's name: `device show`. */
function pathOf(command: Command): string {
  if (command.parent === null) return '';
  return `${pathOf(command.parent)} ${command.name()}`.trim();
}
