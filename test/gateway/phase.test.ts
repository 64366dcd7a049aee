/** `nextPhase` (gateway/phase.ts) checks changes of an object's phase against a table, and refuses all others. */
import t from 'tap';
import { type NextPhases, nextPhase } from '../../gateway/phase.js';

const NEXT: NextPhases<'new' | 'open' | 'closed'> = { new: ['open', 'closed'], open: ['closed'], closed: [] };

t.test('a phase may follow as the table allows', async (t) => {
  t.equal(nextPhase('a gate', NEXT, 'new', 'open'), 'open');
  t.equal(nextPhase('a gate', NEXT, 'open', 'closed'), 'closed');
});

t.test('any other change throws an error that names both phases', async (t) => {
  t.throws(() => nextPhase('a gate', NEXT, 'closed', 'open'), { message: 'a gate cannot go from "closed" to "open"' });
  t.throws(() => nextPhase('a gate', NEXT, 'open', 'open'), { message: 'a gate cannot go from "open" to "open"' });
});
