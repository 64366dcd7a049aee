/** Errors of the gateway name the flag that the user typed, not the member of the JSON that was sent. */
import type { Command } from 'commander';
import t from 'tap';
import { makeProgram } from '../../../cli/program.js';
import { FLAGS_OF_MEMBERS, withFlagNames } from '../../../cli/terminal/flag-names.js';

let program: Command;

t.before(async () => {
  program = await makeProgram('all');
});

function commandOf(path: string): Command {
  return path.split(' ').reduce((group, name) => {
    const found = group.commands.find((each) => each.name() === name);
    if (found === undefined) throw new Error(`no command ${path}`);
    return found;
  }, program);
}

function everyFlag(command: Command): (string | undefined)[] {
  return [...command.options.map(({ long }) => long), ...command.commands.flatMap(everyFlag)];
}

/** Per case: the command, the gateway's sentence, its JSON pointers to the wrong members, and what the user reads. */
const SENTENCES: readonly (readonly [string, string, readonly string[], string])[] = [
  [
    'webhook rotate-secret',
    'the body, /grace_seconds: expected a number',
    ['/grace_seconds'],
    '--grace: expected a number',
  ],
  ['usage plan set', '"abc" is no price: expected 0.12', ['/per_mb'], '--per-mb: "abc" is no price: expected 0.12'],
  ['sim plan', '"EU" is no currency', ['/currency'], '--currency: "EU" is no currency'],
  ['webhook recover', 'since is "x": expected a date', [], '--since is "x": expected a date'],
  ['webhook add', 'the body, /headers/X: expected a string', ['/headers/X'], '--header: expected a string'],
  ['webhook add', 'the body, /url: expected a string', ['/url'], '<url>: expected a string'],
  ['webhook add', '10.0.0.8 is in 10.0.0.0/8', ['/url'], '10.0.0.8 is in 10.0.0.0/8'],
  ['webhook set', '10.0.0.8 is in 10.0.0.0/8', ['/url'], '--url: 10.0.0.8 is in 10.0.0.0/8'],
  ['command send', 'parameters.seconds is 0: expected more', [], '--seconds is 0: expected more'],
  ['command send', 'not_before is "x": expected a date', [], '--at is "x": expected a date'],
  ['audit', 'cursor: expected the next_cursor', [], '--cursor: expected the next_cursor'],
  ['merchant add', 'the body, /name: it is empty', ['/name'], '<name>: it is empty'],
  ['merchant list', 'the body, /other: it is wrong', ['/other'], 'the body, /other: it is wrong'],
  ['device list', 'limit is 0 and cursor is wrong', ['/limit', '/cursor'], '--limit is 0 and cursor is wrong'],
];

t.test('the sentence has the flag of the command', async (t) => {
  for (const [command, sentence, pointers, expected] of SENTENCES)
    t.equal(withFlagNames({ sentence, pointers }, commandOf(command)), expected, command);
});

t.test('every flag whose name differs from its JSON member exists', async (t) => {
  const flags = new Set(everyFlag(program));
  t.same(
    Object.values(FLAGS_OF_MEMBERS).filter((flag) => !flags.has(flag)),
    [],
  );
});
