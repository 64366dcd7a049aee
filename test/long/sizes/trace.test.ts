/** The long version of test/proto/trace/trace.test.ts: three times as many changed lines. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/trace/trace.test.js');
