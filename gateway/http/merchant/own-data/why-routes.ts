/** The route that explains what happened to a merchant's lock (interfaces.md §2). */
import { Type } from 'typebox';
import { LockgateError } from '../../../../proto/errors.js';
import { SECTIONS, STEP_KINDS } from '../../../../proto/why/step.js';
import { stepToJson } from '../../../../proto/why/step-json.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { explainOwn } from '../../../why/why.js';
import { Refusal } from '../refusal.js';
import { type Call, type MerchantRoute, problemResponse } from '../route.js';
import { nullable } from './lock-json.js';
import { ownDataRoute } from './own-data-route.js';

/**
 * What counts against the merchant's budget of rows: up to 2,500 uplinks and as many connection events are judged
 * again.
 */
const ROWS_OF_EXPLANATION = 5_000;
const MAX_TIME_CHARS = 100;

const TIME = { type: 'string', format: 'date-time' };
const words = (list: readonly string[]) => Type.Unsafe<string>({ type: 'string', enum: [...list] });

const Why = Type.Object(
  {
    about: Type.Object({
      kind: Type.String(),
      id: Type.String(),
      mac_addr: nullable<string>({ type: 'string' }, 'The lock; null for a test webhook.'),
    }),
    now: Type.String({ format: 'date-time', description: 'By the clock of locks.' }),
    steps: Type.Array(
      Type.Object({
        kind: words(STEP_KINDS),
        code: Type.String({ description: 'The kind of step, for programs.' }),
        sentence: Type.String(),
        rests_on: words(Object.values(SECTIONS)),
        at: nullable<string>(TIME, 'Null if the step is about no moment.'),
        /** Whose clock `at` is by: the gateway's or the simulated run's, the wall clock, or the lock's own. */
        clock: words(['run', 'wall', 'lock']),
      }),
    ),
  },
  { title: 'Why', description: 'An explanation, step by step.' },
);

const EXAMPLE = {
  about: { kind: 'finding', id: 'finding:12', mac_addr: 'A4:C1:38:F0:E1:D2' },
  now: '2026-11-20T06:30:00.000Z',
  steps: [
    {
      kind: 'rule-broken',
      code: 'period-too-soon',
      sentence: 'It breaks period-too-soon: a period ping came 3 h after the one before.',
      rests_on: SECTIONS.judge,
      at: '2026-11-20T06:00:00.000Z',
      clock: 'run',
    },
  ],
};

/** Why something happened. */
export const OWN_WHY_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/why/{id}',
    operationId: 'explain',
    tag: 'locks',
    keyScope: 'locks:read',
    summary: 'Explains an event, a delivery, a finding, a command or the silence of an own lock.',
    params: Type.Object({
      id: Type.String({
        description: '`evt_…` (an event), `evt_…/1` (its delivery to a URL), `finding:12`, `command:7`, or a MAC.',
      }),
    }),
    query: Type.Object({
      at: Type.Optional(
        Type.String({ maxLength: MAX_TIME_CHARS, description: 'With a MAC: the moment to explain; now by default.' }),
      ),
    }),
    responses: {
      200: { description: 'The explanation.', schema: Why, example: EXAMPLE },
      400: problemResponse('The id has none of the forms, or the time is not valid.'),
      404: problemResponse('The merchant has nothing by this id.'),
    },
    handle: async (call) => {
      const { parts, merchantId, signal } = call;
      const { readTurns } = parts.ownData;
      parts.budgets.chargeRows(merchantId, ROWS_OF_EXPLANATION);
      const { about, nowMs, steps } = await readTurns.runExclusive(() => explainFor(call), signal);
      const mac = about.mac === null ? null : formatMac(about.mac);
      const body = { about: { kind: about.kind, id: about.id, mac_addr: mac }, now: formatDate(nowMs) };
      return { status: 200, body: { ...body, steps: steps.map(stepToJson) } };
    },
  }),
];

async function explainFor({ parts, merchantId, params, query }: Call) {
  const { webhooks, commands, uplinkBudgets, locks, refusals, runClock } = parts.ownData;
  const lockParts = { webhooks, commands, budgets: uplinkBudgets, locks, refusals };
  const whyParts = { ...lockParts, store: parts.store, clock: runClock, wallClock: parts.clock };
  try {
    return await explainOwn(whyParts, params.id ?? '', (query as { at?: string }).at, merchantId);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Returns the refusal of a bad question, with a pointer; any other error unchanged. */
function refusalOf(error: unknown): unknown {
  if (!(error instanceof LockgateError)) return error;
  const { code, message } = error;
  if (code.startsWith('no-such-'))
    return new Refusal({ status: 404, code: 'no-such-subject', detail: 'there is nothing of yours by this id' });
  const pointer = code === 'input-why' ? '/id' : code === 'input-at' ? '/at' : undefined;
  if (pointer === undefined) return error;
  return new Refusal({ status: 400, code, detail: message, faults: [{ pointer, detail: message }] });
}
