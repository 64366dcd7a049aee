/** The long version of test/system/events.test.ts: twenty kills instead of one. */
process.env.LOCKGATE_LONG = '1';
await import('../../system/events.test.js');
