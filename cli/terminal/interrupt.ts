/**
 * Ctrl-C and polite kills: what they mean to a command that ends by itself, and to one that goes on until it is told
 * to end. And SIGHUP, which asks a service to read its files again.
 */

/** What Ctrl-C (or a polite kill) means to a command that goes on until it is told to end. */
export interface Interruption {
  /** Fires at the first signal. A second one ends the process at once. */
  readonly signal: AbortSignal;
  /** 128 and the signal's number, as shells have it. */
  readonly exitCode: number;
  /** Resolves at the first signal. */
  readonly happened: Promise<void>;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

const endNow = (name: NodeJS.Signals): void => process.exit(SIGNALS[name as keyof typeof SIGNALS]);

/**
 * From now on a signal ends the process with 128 and its number, and what was shown on a terminal alone is cleared (by
 * those who listen for `exit`). Until somebody calls {@link untilInterrupted}, who ends by themselves.
 */
export function endAtSignals(): void {
  for (const name of Object.keys(SIGNALS)) process.on(name, endNow);
}

/** Begins to listen for SIGINT and SIGTERM. */
export function untilInterrupted(): Interruption {
  const controller = new AbortController();
  let exitCode: number = SIGNALS.SIGINT;
  const happened = new Promise<void>((resolve) => {
    for (const [name, code] of Object.entries(SIGNALS)) {
      process.off(name, endNow);
      process.on(name, () => {
        if (controller.signal.aborted) process.exit(code);
        exitCode = code;
        controller.abort();
        resolve();
      });
    }
  });
  return {
    signal: controller.signal,
    happened,
    get exitCode() {
      return exitCode;
    },
  };
}

/** SIGHUPs that came before anybody could act on them. */
let earlyHangUps = 0;

const noteHangUp = (): void => {
  earlyHangUps += 1;
};

/** From now on SIGHUP doesn't end the process; what comes before {@link onHangUp} is kept for it. */
export function holdHangUps(): void {
  process.on('SIGHUP', noteHangUp);
}

/** Calls `act` at each SIGHUP from now on, and once now where some came before. */
export function onHangUp(act: () => void): void {
  process.on('SIGHUP', act);
  process.off('SIGHUP', noteHangUp);
  if (earlyHangUps === 0) return;
  earlyHangUps = 0;
  act();
}
