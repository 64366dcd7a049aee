/**
 * The long version of test/system/restart.slow.test.ts: three stops under load instead of one, and each of three ports
 * in use.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/restart.slow.test.js');
