/** The rules for several gateways on one store, as small models of which every state is explored. */
import t from 'tap';
import { COMMIT_GUARDS, type CommitBounds, type CommitGuard, CommitModel } from './commit-model.js';
import { explore } from './explore.js';

// They take some 5 s of CPU time.
t.setTimeout(170_000);

/** Two bounds of which each rule is needed in at least one: late commits and doubts, and three owners in a row. */
const COMMIT_BOUNDS: readonly CommitBounds[] = [
  { names: 2, gateways: 2, cuts: 1, failovers: 1 },
  { names: 1, gateways: 3, cuts: 0, failovers: 1 },
];

t.test('commits to a slot lose nothing and double nothing', async (t) => {
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
