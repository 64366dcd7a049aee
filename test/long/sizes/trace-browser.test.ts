/** The long version of test/system/console/trace-browser.test.ts: a trace of 100,000 lines is dropped onto the page. */
process.env.LOCKGATE_LONG = '1';
await import('../../system/console/trace-browser.test.js');
