/**
 * Signal handlers. SIGINT (Ctrl-C) and SIGTERM end a short command at once, and ask a long-running command to stop.
 * SIGHUP asks the gateway to reread its files.
 */

/** The interruption of a command that runs until it is stopped. */
export interface Interruption {
  /** Fires at the first SIGINT or SIGTERM. A second signal ends the process at once. */
  readonly signal: AbortSignal;
  /** 128 plus the signal's number, as shells report it. */
  readonly exitCode: number;
  /** Resolves at the first signal. */
  readonly happened: Promise<void>;
}

/** The exit code for each signal: 128 plus the signal's number, as shells report it. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

const exitAtOnce = (name: NodeJS.Signals): void => process.exit(SIGNALS[name as keyof typeof SIGNALS]);

/**
 * From now on SIGINT and SIGTERM end the process with 128 plus the signal's number; `exit` listeners clean up the
 * terminal. {@link untilInterrupted} removes these handlers.
 */
export function exitAtSignals(): void {
  for (const name of Object.keys(SIGNALS)) process.on(name, exitAtOnce);
}

/** From now on SIGINT and SIGTERM no longer end the process but fire the returned signal. */
export function untilInterrupted(): Interruption {
  const controller = new AbortController();
  let exitCode: number = SIGNALS.SIGINT;
  const happened = new Promise<void>((resolve) => {
    for (const [name, code] of Object.entries(SIGNALS)) {
      process.off(name, exitAtOnce);
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

const countHangUp = (): void => {
  earlyHangUps += 1;
};

/** From now on SIGHUP doesn't end the process. {@link onHangUp} handles SIGHUPs that arrive before it is called. */
export function holdHangUps(): void {
  process.on('SIGHUP', countHangUp);
}

/** Calls `act` at each SIGHUP from now on, and once now if one has already arrived. */
export function onHangUp(act: () => void | Promise<void>): void {
  process.on('SIGHUP', act);
  process.off('SIGHUP', countHangUp);
  if (earlyHangUps === 0) return;
  earlyHangUps = 0;
  void act();
}
