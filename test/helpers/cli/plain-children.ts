/**
 * Has the processes that a test starts run as users run them. tap would have each of them report which files it loads,
 * through a loader in a thread of its own; nothing here reads that, and a command takes twice as long to start. To be
 * imported by whatever starts processes.
 */

/** What tap's hook adds to the options of Node: in the environment of the test, and at each start of a process. */
const REPORTER = /"?--import=[^"\s]*\/@tapjs\/processinfo\/[^"\s]*"?/;
/** Where it keeps whom it tells of a new process; nobody else uses it. Absent where a test runs without tap. */
const HOOK = Symbol.for('process-on-spawn@*:singletonId');

const hook = (globalThis as { [HOOK]?: { listeners: unknown[] } })[HOOK];
if (hook !== undefined) hook.listeners = [];
const options = process.env.NODE_OPTIONS?.replace(REPORTER, '').trim();
if (options === '') delete process.env.NODE_OPTIONS;
else if (options !== undefined) process.env.NODE_OPTIONS = options;
