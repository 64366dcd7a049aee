/**
 * The operators' route for the command `why` (interfaces.md §4), which explains an event or a lock's silence by a chain
 * of steps, each with a sentence and the section of the documents that it rests on.
 */
import { Type } from 'typebox';

import { LockgateError } from '../../../../proto/errors.js';
import { SECTIONS, STEP_KINDS } from '../../../../proto/why/step.js';
import { stepToJson } from '../../../../proto/why/step-json.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { explain } from '../../../why/why.js';
import { textOf } from '../query.js';
import type { Route } from '../routes.js';
import { Exact, MaybeText, MaybeTime, OneOf, Time } from '../schemas.js';

const Chain = Type.Object({
  about: Type.Object({ kind: Type.String(), id: Type.String(), mac: MaybeText }),
  /** The time of the answer by the run's clock (the gateway's or a simulated run's), which may be sped up. */
  now: Time,
  /** The same moment in wall-clock time. */
  wall_now: Time,
  steps: Type.Array(
    Type.Object({
      kind: OneOf(STEP_KINDS),
      code: Type.String(),
      sentence: Type.String(),
      rests_on: OneOf(Object.values(SECTIONS)),
      link: Type.String({ description: 'Where that section is: a path from lockgate’s folder, with an anchor.' }),
      at: MaybeTime,
      /** The clock of `at`: the run's, the wall clock, or the lock's own. */
      clock: OneOf(['run', 'wall', 'lock']),
    }),
  ),
});
const Question = Exact({ id: Type.Optional(Type.String()), at: Type.Optional(Type.String()) });

export const WHY_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/why',
    summary:
      'Explains an event, a delivery, an uplink, a finding, a command or a lock’s silence (then `at` is the time).',
    operation: 'why.ask',
    success: 200,
    query: Question,
    answer: Chain,
    handle: async (parts, { query }) => {
      const id = textOf(query, 'id');
      if (id === undefined)
        throw new LockgateError('input-why', '"id" is missing: expected what to explain, such as an event’s id');
      const { about, nowMs, wallNowMs, steps } = await explain(parts, id, textOf(query, 'at'));
      return {
        about: { ...about, mac: about.mac === null ? null : formatMac(about.mac) },
        now: formatDate(nowMs),
        wall_now: formatDate(wallNowMs),
        steps: steps.map(stepToJson),
      };
    },
  },
];
