/** The long version of test/gateway/store/log-layout.test.ts: four random lives of the log instead of one. */
process.env.LOCKGATE_LONG = '1';
await import('../../gateway/store/log-layout.test.js');
