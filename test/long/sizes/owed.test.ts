/** The long version of test/proto/trace/owed.test.ts: 15 locks in a week and 6 lively ones in a day. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/trace/owed.test.js');
