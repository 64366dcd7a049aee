// Passes an error that nobody caught to the test that it belongs to. tap's bundle has this in place of the package
// async-hook-domain, which does the same but follows the creation and the end of each promise: that took 8 to 10 % of
// the CPU time of tests. Here Node.js passes the domain on (AsyncLocalStorage).
import { AsyncLocalStorage } from 'node:async_hooks';

/** The domain in which code runs: that of the innermost test that called or awaits it. */
const current = new AsyncLocalStorage();
/** How many domains are not destroyed. The process's events are listened to while there are any. */
let livingCount = 0;

/** Gets the errors of the code that runs after its creation in the same asynchronous scope. */
export class Domain {
  #isDestroyed = false;
  #parent = current.getStore();

  /** @param onerror gets an error and the name of the process's event, such as `unhandledRejection` */
  constructor(onerror) {
    this.onerror = onerror;
    current.enterWith(this);
    livingCount += 1;
    if (livingCount === 1) listen();
  }

  /** From now on errors of its code go to the domain around it. */
  destroy() {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    livingCount -= 1;
    if (livingCount === 0) ignore();
  }

  /** This domain, or the first around it that is not destroyed; undefined if there is none. */
  living() {
    return this.#isDestroyed ? this.#parent?.living() : this;
  }
}

const emit = process.emit;

function listen() {
  process.on('uncaughtExceptionMonitor', handleException);
  process.emit = emitUnlessHandled;
}

function ignore() {
  process.removeListener('uncaughtExceptionMonitor', handleException);
  process.emit = emit;
}

/** Passes the error to its domain. Returns whether there is one. A test with its own handler gets its errors itself. */
function pass(error, event) {
  if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0) return false;
  const domain = current.getStore()?.living();
  domain?.onerror(error, event);
  return domain !== undefined;
}

function handleException(error, event) {
  // Without a callback Node.js ends the process after this event. The callback gets this one error and removes itself.
  if (pass(error, event))
    process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null));
}

function emitUnlessHandled(event, ...args) {
  const isRejection = event === 'unhandledRejection' && process.listenerCount(event) === 0;
  if (isRejection && pass(args[0], event)) return true;
  return emit.call(process, event, ...args);
}
