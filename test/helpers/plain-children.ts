/**
 * Has the processes that a test starts run as users run them. tap would have each of them report which files it loads,
 * through a loader in a thread of its own; nothing here reads that, and a gateway takes half as long again to start.
 * To be imported by whatever starts processes.
 */

/** Where tap's hook keeps whom it tells of a new process; nobody else uses it. Absent where a test runs without tap. */
const HOOK = Symbol.for('process-on-spawn@*:singletonId');

const hook = (globalThis as { [HOOK]?: { listeners: unknown[] } })[HOOK];
if (hook !== undefined) hook.listeners = [];
