/** The long version of test/system/unplugged.test.ts: a stop and a kill of ten minutes each, instead of a stop. */
process.env.LOCKGATE_LONG = '1';
await import('../../system/unplugged.test.js');
