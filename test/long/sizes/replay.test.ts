/** The long version of test/cli/trace/replay/replay.test.ts: every trace of the rules is replayed. */
process.env.LOCKGATE_LONG = '1';
await import('../../cli/trace/replay/replay.test.js');
