/**
 * Makes the man pages from the command tree: lockgate(1), and a page for each group with all its commands. generate.mjs
 * writes them to docs/man. They have neither date nor version, so that they change only with the commands.
 *
 * The format is roff with the macros of man(7): `.TH` the title, `.SH` and `.SS` a section and a part of it, `.PP` a
 * paragraph, `.TP` an entry with indented text, `.B`, `.I`, `.BR` and `.RI` bold, italic and roman words, `.EX` to
 * `.EE` lines that stay as they are, `.br` a line break.
 */
import type { Command } from 'commander';

/** The text of the section on environment variables. */
const ENVIRONMENT = `.BR lockgate\\-serve (1)
lists the settings. Each of its flags has an environment variable, such as
.B LOCKGATE_KEEP_DAYS
for
.BR \\-\\-keep\\-days .
`;
/** The comment at the start of each page. */
const ORIGIN = '.\\" Generated from the commands by cli/manual/generate.mjs.';

/** The pages by file name, such as `lockgate-device.1`. `program` has all groups loaded. */
export function manPages(program: Command): ReadonlyMap<string, string> {
  const groups = program.commands;
  const pages = groups.map((group) => [`${pageName(group)}.1`, groupPage(group)] as const);
  return new Map([[`${program.name()}.1`, rootPage(program, groups)], ...pages]);
}

function rootPage(program: Command, groups: readonly Command[]): string {
  return page(program.name(), program.description(), [
    section('SYNOPSIS', `.B ${program.name()}\n.I command\n.RI [ options ]\n`),
    section('DESCRIPTION', helpText(program)),
    section(
      'COMMANDS',
      groups.map((group) => `.TP\n.BR ${pageName(group)} (1)\n${roff(group.description())}\n`).join(''),
    ),
    section('OPTIONS', options(program)),
    section('ENVIRONMENT', ENVIRONMENT),
  ]);
}

function groupPage(group: Command): string {
  const commands = runnable(group);
  const synopsis = commands.map((each) => `.B ${roff(pathOf(each))}\n${roff(each.usage())}\n`).join('.br\n');
  const isSingle = commands.length === 1 && commands[0] === group;
  const parts = isSingle
    ? [section('DESCRIPTION', `${roff(group.description())}\n${helpText(group)}`), section('OPTIONS', options(group))]
    : [section('COMMANDS', commands.map(commandPart).join(''))];
  const seeAlso = section('SEE ALSO', '.BR lockgate (1)\n');
  return page(pageName(group), group.description(), [section('SYNOPSIS', synopsis), ...parts, seeAlso]);
}

/** A command and those below it, without those that only group others: these have no flags. */
function runnable(command: Command): readonly Command[] {
  const isGroup = command.commands.length > 0 && command.options.length === 0;
  return [...(isGroup ? [] : [command]), ...command.commands.flatMap(runnable)];
}

function commandPart(command: Command): string {
  const head = `.SS ${roff(`${pathOf(command)} ${command.usage()}`)}\n`;
  return `${head}${roff(command.description())}\n${options(command)}${helpText(command)}`;
}

function options(command: Command): string {
  const help = command.createHelp();
  return help
    .visibleOptions(command)
    .map((each) => `.TP\n.B ${roff(help.optionTerm(each))}\n${roff(help.optionDescription(each))}\n`)
    .join('');
}

/** What a command's help says below its options: paragraphs, and examples as they are. */
function helpText(command: Command): string {
  let shown = '';
  // Without a width, commander wraps no lines.
  command.configureOutput({ writeOut: (text) => (shown += text) }).outputHelp();
  const after = shown.slice(command.helpInformation().length);
  const paragraphs = after.split(/\n{2,}/).map((each) => each.replace(/^\n+|\n+$/g, ''));
  return paragraphs
    .filter((each) => each !== '')
    .map(paragraph)
    .join('');
}

/** A paragraph; its lines stay as they are from the first one that is indented or has columns. */
function paragraph(text: string): string {
  const lines = text.split('\n');
  const firstFixed = lines.findIndex((line) => /^\s|\S {2,}\S/.test(line));
  const filled = firstFixed < 0 ? lines : lines.slice(0, firstFixed);
  const fixed = firstFixed < 0 ? [] : lines.slice(firstFixed);
  const examples = fixed.length === 0 ? '' : `.PP\n.EX\n${fixed.map((line) => `${roff(line)}\n`).join('')}.EE\n`;
  return `${filled.length === 0 ? '' : `.PP\n${filled.map((line) => `${roff(line)}\n`).join('')}`}${examples}`;
}

function page(name: string, description: string, sections: readonly string[]): string {
  const about = roff(description.replace(/\.$/, ''));
  const head = `${ORIGIN}\n.TH ${name.toUpperCase()} 1 "" lockgate\n`;
  return `${head}.SH NAME\n${roff(name)} \\- ${about}\n${sections.join('')}`;
}

function section(title: string, body: string): string {
  return body === '' ? '' : `.SH ${title}\n${body}`;
}

function pageName(group: Command): string {
  return `lockgate-${group.name()}`;
}

/** The command as typed, such as `lockgate device list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** A text for roff: no line is a request, a hyphen is the character that one types, and all characters are ASCII. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('~', '\\(ti')
    .replaceAll('^', '\\(ha')
    .replaceAll('`', '\\(ga')
    .replace(/[\u0080-\uffff]/g, (char) => `\\[u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)
    .replace(/^(?=[.'])/gm, '\\&');
}
