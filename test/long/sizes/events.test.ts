/** The long version of test/system/events.slow.test.ts: twenty kills instead of one. */
process.env.LOCKGATE_LONG = '1';
await import('../../system/events.slow.test.js');
