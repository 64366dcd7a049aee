/** The long version of the tests of the trace format and of dates: three times as many samples and changed lines. */
process.env.LOCKGATE_LONG = '1';
await import('../../proto/trace/trace.test.js');
await import('../../proto/trace/canonical-line.test.js');
await import('../../proto/date.test.js');
