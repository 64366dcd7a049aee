/**
 * The long version of test/system/console/trace-browser.slow.test.ts: 100,000 lines are dropped onto the page.
 */
process.env.LOCKGATE_LONG = '1';
await import('../../system/console/trace-browser.slow.test.js');
