/**
 * The long version of test/system/sabotage/kill.slow.test.ts: the healthy run beside the sabotaged ones, longer runs.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/sabotage/kill.slow.test.js');
