/** The reference of the command line, from the command tree. Pure. */
import type { Command } from 'commander';
import { markdownTable } from '../../../proto/reference/generated-parts.js';

/** The page. `program` has all groups loaded. */
export function commandsPage(program: Command): string {
  const groups = program.commands.map((group) =>
    [`## ${pathOf(group)}`, group.description(), ...runnable(group).flatMap((each) => commandPart(each, group))].join(
      '\n\n',
    ),
  );
  return [
    '# Commands',
    'Every command with its flags, as `--help` shows them. `--json` is for programs. Exit codes: 0 done, 1 the ' +
      'command ran with a negative result, such as violations or a difference, 2 the command line or an input file ' +
      'is wrong, 3 the gateway can’t be reached or refuses, 4 an error in lockgate, 130 interrupted by Ctrl-C.',
    ...groups,
  ].join('\n\n');
}

/** A command and those below it, without those that only group others: these have no flags. */
function runnable(command: Command): readonly Command[] {
  const isGroup = command.commands.length > 0 && command.options.length === 0;
  return [...(isGroup ? [] : [command]), ...command.commands.flatMap(runnable)];
}

function commandPart(command: Command, group: Command): string[] {
  const isGroup = command === group;
  const help = command.createHelp();
  const rows = help
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help')
    .map((option) => [`\`${help.optionTerm(option)}\``, inline(help.optionDescription(option))]);
  return [
    ...(isGroup ? [] : [`### ${pathOf(command)}`, inline(command.description())]),
    `\`\`\`text\n${pathOf(command)} ${command.usage()}\n\`\`\``,
    ...(rows.length === 0 ? [] : [markdownTable(['flag', 'meaning'], rows)]),
    ...helpText(command),
  ];
}

/** What a command's help says below its flags: paragraphs, and what is indented as it is. */
function helpText(command: Command): string[] {
  let shown = '';
  // Without a width, commander wraps no lines.
  command.configureOutput({ writeOut: (text) => (shown += text) }).outputHelp();
  const after = shown.slice(command.helpInformation().length);
  return after
    .split(/\n{2,}/)
    .map((each) => each.replace(/^\n+|\n+$/g, ''))
    .filter((each) => each !== '')
    .flatMap(paragraph);
}

/** A paragraph; its lines stay as they are from the first one that is indented or has columns. */
function paragraph(text: string): string[] {
  const lines = text.split('\n');
  const firstFixed = lines.findIndex((line) => /^\s|\S {2,}\S/.test(line));
  const filled = firstFixed < 0 ? lines : lines.slice(0, firstFixed);
  const fixed = firstFixed < 0 ? [] : lines.slice(firstFixed);
  return [
    ...(filled.length === 0 ? [] : [inline(filled.join(' '))]),
    ...(fixed.length === 0 ? [] : [`\`\`\`text\n${fixed.join('\n')}\n\`\`\``]),
  ];
}

/** A text of the help as Markdown: what would be HTML, emphasis or a link stays as it is typed. */
function inline(text: string): string {
  return text.replace(/[<>*_[\]]/g, (sign) => `\\${sign}`);
}

/** The command as typed, such as `lockgate device list`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
