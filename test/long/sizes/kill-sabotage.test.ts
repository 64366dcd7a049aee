/**
 * The long version of test/system/kill-sabotage.test.ts: the healthy run beside the sabotaged ones, and longer runs.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/kill-sabotage.test.js');
