/**
 * The check of commands.test.ts can fail: it detects a gateway that loses commands, gives them new ids, or forgets that
 * they were answered. What the check finds is called a finding.
 */
import t from 'tap';
import { type CommandFinding, CommandRun, type CommandRunOptions } from '../../helpers/commands/command-run.js';
import type { SabotageName } from '../../helpers/durability/sabotage.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- test/system/sabotage/commands.slow.test.ts`;

t.setTimeout(170_000);

t.test('the same check detects each sabotage', async (t) => {
  const small: CommandRunOptions = { seed, locks: 10, commandsPerLock: 10, kills: 1, stallSeconds: 3 };
  const expected: Readonly<Partial<Record<SabotageName, CommandFinding['broken']>>> = {
    'forget-commands': 'missing',
    'new-command-ids': 'never-requested',
    'forget-answers': 'sent-after-answer',
  };
  const runs = Object.entries(expected).map(async ([sabotage, broken]) => {
    const { findings } = await CommandRun.run(t, { ...small, sabotage: sabotage as SabotageName });
    const hits = findings.filter((finding) => finding.broken === broken).length;
    t.ok(hits > 0, `${sabotage}: ${hits} of ${findings.length} findings are "${broken}"; repeat: ${repeat}`);
  });
  await Promise.all(runs);
});
