/**
 * The long version of test/system/kill-sabotage.slow.test.ts: the healthy run beside the sabotaged ones, longer runs.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/kill-sabotage.slow.test.js');
