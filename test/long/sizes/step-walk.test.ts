/** The long version of test/proto/power/step-walk.test.ts: 600 random walks of `step`. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/power/step-walk.test.js');
