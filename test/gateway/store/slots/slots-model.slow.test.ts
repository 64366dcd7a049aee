/**
 * The rules for several gateways on one store: a small model of their commits, of which every state is explored, has no
 * fault; without any one of the rules it has one.
 */
import t from 'tap';
import { COMMIT_GUARDS, type CommitBounds, type CommitGuard, CommitModel } from './commit-model.js';
import { explore } from './explore.js';

// The explorations take some 5 s of CPU time.
t.setTimeout(170_000);

/**
 * How much may happen in each model: in the first, late commits and commits in doubt; in the second, three owners in a
 * row. Each rule is needed in at least one.
 */
const COMMIT_BOUNDS: readonly CommitBounds[] = [
  { names: 2, gateways: 2, cuts: 1, failovers: 1 },
  { names: 1, gateways: 3, cuts: 0, failovers: 1 },
];

t.test('with all rules, commits to a slot lose nothing and store nothing twice', async (t) => {
  for (const bounds of COMMIT_BOUNDS) {
    const { states, story } = explore(new CommitModel(bounds));
    t.equal(story, undefined, `${states} states`);
    t.ok(states > 20_000, 'the model was explored');
  }
});

for (const guard of Object.keys(COMMIT_GUARDS) as CommitGuard[])
  t.test(`without the rule ${guard}: ${COMMIT_GUARDS[guard]}`, async (t) => {
    let story: readonly string[] | undefined;
    for (const bounds of COMMIT_BOUNDS) story ??= explore(new CommitModel(bounds, guard)).story;
    t.ok(story, 'a fault is found');
    t.comment(story?.join(' · ') ?? '');
  });
