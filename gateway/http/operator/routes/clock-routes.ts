/**
 * The operators' routes for the system clock: show it, and confirm that it is right. The gateway does not trust a clock
 * that jumps or that differs from the locks' clocks (clocks/clock-guard.ts).
 *
 * The system clock is the machine's. The run clock, which dates what arrives from locks, never goes back, follows the
 * system clock only as far as the gateway trusts it, and is faster in a demonstration.
 */
import { Type } from 'typebox';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { pick } from '../json/audit-terms.js';
import { ClockAnswer, clockJson, RunSpeed } from '../json/clock.js';
import type { Route } from '../routes.js';
import { Time } from '../schemas.js';

/** Every route for the clock. */
export const CLOCK_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/clock',
    operation: 'clock.show',
    summary: 'The system clock, and the time that the gateway trusts if they differ.',
    success: 200,
    answer: Type.Object({ ...ClockAnswer.properties, run_clock: Time, run_speed: RunSpeed }),
    handle: async ({ clock, clocks }) => ({
      ...clockJson(clocks.reading()),
      run_clock: formatDate(clock.now()),
      run_speed: clocks.speed,
    }),
  },
  {
    method: 'POST',
    path: '/clock/confirm',
    operation: 'clock.confirm',
    summary: 'Confirms that the system clock is right; expired history is then deleted and ended months are closed.',
    success: 200,
    answer: Type.Object({ confirmed: Type.Boolean(), before: ClockAnswer, clock: ClockAnswer }),
    audit: {
      object: () => '',
      before: async ({ clocks }) => ({ ...pick(clockJson(clocks.reading()), 'state', 'machine', 'confirmed') }),
      after: (_request, answer) => ({ ...pick(answer, 'confirmed'), ...pick(answer?.clock, 'state') }),
    },
    handle: async ({ clocks }) => {
      const before = clocks.reading();
      await clocks.confirm();
      return {
        confirmed: before.state !== 'agrees',
        before: clockJson(before),
        clock: clockJson(clocks.reading()),
      };
    },
  },
];
