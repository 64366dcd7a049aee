/**
 * The long version of test/system/unplugged.slow.test.ts: the gateway is stopped, and in another run killed, and is
 * away for ten minutes each time; the short version only stops it, for less time.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/unplugged.slow.test.js');
