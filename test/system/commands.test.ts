/**
 * Commands are sent to locks among other traffic, with reconnects and restarts: no command is lost, and each is
 * executed once (quality.md §2). The check compares the locks' diaries with the requested commands;
 * sabotage/commands.slow.test.ts shows that it detects a gateway that loses or repeats commands on purpose. Long
 * version: test/long/commands.test.ts, with ten thousand commands.
 */
import t from 'tap';
import { type CommandDiary, checkCommands } from '../helpers/commands/command-run.js';
import { testCommandsDown } from '../helpers/commands/commands-down.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const FILE = 'dist/test/system/commands.test.js';

t.setTimeout(170_000);

t.test('the check reports each broken promise', async (t) => {
  const asked = new Map([['A', new Set([1, 2])]]);
  const good: CommandDiary = { mac: 'A', carriedOut: [1, 2], answered: new Set([1, 2]), sentAfterAnswer: [] };
  const broken = (members: Partial<CommandDiary>): string[] =>
    checkCommands(asked, [{ ...good, ...members }]).map((finding) => `${finding.broken} ${finding.id}`);
  t.same(broken({}), []);
  t.same(broken({ carriedOut: [1] }), ['missing 2']);
  t.same(broken({ carriedOut: [1, 2, 1] }), ['twice 1']);
  t.same(broken({ carriedOut: [1, 2, 3] }), ['never-requested 3']);
  t.same(broken({ answered: new Set([1]) }), ['unanswered 2']);
  t.same(broken({ sentAfterAnswer: [2] }), ['sent-after-answer 2']);
});

// The run gives up 20 s after the last new line in a lock's diary.
testCommandsDown(t, { seed, locks: 20, commandsPerLock: 12, kills: 1, stallSeconds: 20 }, FILE);
