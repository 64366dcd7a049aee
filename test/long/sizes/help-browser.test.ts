/** The long version of test/system/help/help-browser.slow.test.ts: axe checks every page of the help. */
process.env.LOCKGATE_LONG = '1';
await import('../../system/help/help-browser.slow.test.js');
