/** The long version of test/proto/trace/function-mutants.slow.test.ts: six weeks of 60 locks, each mutant twice. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/trace/function-mutants.slow.test.js');
