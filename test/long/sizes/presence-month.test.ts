/** The long version of test/gateway/locks/presence-month.slow.test.ts: a month instead of ten days. */
process.env.LOCKGATE_LONG = '1';
await import('../../gateway/locks/presence-month.slow.test.js');
