/**
 * The long version of test/gateway/store/log-layout.test.ts: four random sequences of operations on the log instead of
 * one.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../gateway/store/log-layout.test.js');
