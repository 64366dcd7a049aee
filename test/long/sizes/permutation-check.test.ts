/** The long version of test/proto/power/permutation-check.test.ts: more walks, months and orders of arrival. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/power/permutation-check.test.js');
