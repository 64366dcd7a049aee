/**
 * Signals: what SIGINT and SIGTERM do to commands that end by themselves and to those that run until they are stopped;
 * and SIGHUP, which asks a service to reread its files.
 */

/** The interruption of a command that runs until it is stopped. */
export interface Interruption {
  /** Fires at the first signal. A second one ends the process at once. */
  readonly signal: AbortSignal;
  /** 128 plus the signal's number, as in shells. */
  readonly exitCode: number;
  /** Resolves at the first signal. */
  readonly happened: Promise<void>;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

const endNow = (name: NodeJS.Signals): void => process.exit(SIGNALS[name as keyof typeof SIGNALS]);

/**
 * From now on a signal ends the process with 128 plus its number; `exit` listeners clean up the terminal. This holds
 * until {@link untilInterrupted} is called.
 */
export function endAtSignals(): void {
  for (const name of Object.keys(SIGNALS)) process.on(name, endNow);
}

/** Starts to listen for SIGINT and SIGTERM. */
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

/** SIGHUPs that arrived before {@link onHangUp}. */
let earlyHangUps = 0;

const noteHangUp = (): void => {
  earlyHangUps += 1;
};

/** From now on SIGHUP doesn't end the process; {@link onHangUp} gets those that arrive before it. */
export function holdHangUps(): void {
  process.on('SIGHUP', noteHangUp);
}

/** Calls `act` at each SIGHUP from now on, and once now if one has already arrived. */
export function onHangUp(act: () => void): void {
  process.on('SIGHUP', act);
  process.off('SIGHUP', noteHangUp);
  if (earlyHangUps === 0) return;
  earlyHangUps = 0;
  act();
}
