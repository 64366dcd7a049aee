/**
 * The long version of test/proto/power/permutation-check.slow.test.ts, which checks that the judge comes to the same
 * result in whatever order uplinks arrive: more random lives of locks, over more months, in more orders of arrival.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/power/permutation-check.slow.test.js');
