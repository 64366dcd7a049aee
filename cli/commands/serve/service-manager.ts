/**
 * Tells the service manager, systemd, when the gateway is ready, when it rereads its files, when it stops, and at
 * intervals that it is alive (protocol: sd_notify). Node.js can't send datagrams, which the manager's socket takes, so
 * the program `systemd-notify`, a part of systemd, sends them; deploy/lockgate.service allows it (`NotifyAccess=all`).
 *
 * Without `NOTIFY_SOCKET` in the environment no manager listens, and nothing is sent.
 */
import { execFile } from 'node:child_process';
import type { Clock, Milliseconds, Timer } from '../../../proto/clock.js';

/** The messages to systemd, as sd_notify(3) defines them. */
export type ManagerMessage = 'READY=1' | 'RELOADING=1' | 'STOPPING=1' | 'WATCHDOG=1';

/** Sends a message. @throws Error if it can't be sent */
export type SendMessage = (message: ManagerMessage) => Promise<void>;

/** A message that could not be sent within this time is given up, so that the next one can be sent. */
const SEND_LIMIT: Milliseconds = 10_000;

/** How many signs of life the manager gets within the time that it waits for one; systemd advises 2 or more. */
const SIGNS_OF_LIFE = 3;

/** What a {@link ServiceManager} needs. */
export interface ServiceManagerParts {
  readonly environment: Readonly<Partial<Record<string, string>>>;
  /** Measures when the next sign of life is due, in real time. */
  readonly clock: Clock;
  /** Called with the first message that could not be sent; later failures are most likely the same. */
  readonly onFailure: (error: Error) => void;
  /** Replaces `systemd-notify`, for tests. */
  readonly send?: SendMessage;
  /** Replaces the id of this process, for tests. */
  readonly pid?: number;
}

/** The service manager that started the gateway, if there is one. */
export class ServiceManager {
  readonly #parts: ServiceManagerParts;
  readonly #send: SendMessage | undefined;
  /** How long the manager waits for a sign of life before it ends the gateway; undefined if it does not watch. */
  readonly #patience: Milliseconds | undefined;
  #timer: Timer | undefined;
  /** Messages are sent one after another: the manager must not hear READY before RELOADING. */
  #sent: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(parts: ServiceManagerParts) {
    this.#parts = parts;
    const { NOTIFY_SOCKET: socket } = parts.environment;
    if (socket) this.#send = parts.send ?? ((message) => notify(socket, message));
    this.#patience = patienceOf(parts.environment, parts.pid ?? process.pid);
  }

  /** The gateway accepts connections. From now on it also gives signs of life, if the manager wants them. */
  ready(): Promise<void> {
    if (this.#timer === undefined) this.#scheduleSign();
    return this.#tell('READY=1');
  }

  /** The gateway begins to reread its files; {@link ready} must follow. */
  reloading(): Promise<void> {
    return this.#tell('RELOADING=1');
  }

  /** The gateway stops. It gives no more signs of life. */
  stopping(): Promise<void> {
    this.#timer?.cancel();
    return this.#tell('STOPPING=1');
  }

  /** Schedules the next sign of life. It comes from the event loop: if that hangs, the manager gets none. */
  #scheduleSign(): void {
    if (this.#send === undefined || this.#patience === undefined) return;
    this.#timer = this.#parts.clock.after(this.#patience / SIGNS_OF_LIFE, () => {
      this.#scheduleSign();
      void this.#tell('WATCHDOG=1');
    });
  }

  /** Sends a message after all earlier ones. Never throws: a gateway that works must not end because this fails. */
  #tell(message: ManagerMessage): Promise<void> {
    const send = this.#send;
    if (send === undefined) return this.#sent;
    this.#sent = this.#sent.then(async () => {
      try {
        await send(message);
      } catch (error) {
        if (!this.#hasFailed) this.#parts.onFailure(error as Error);
        this.#hasFailed = true;
      }
    });
    return this.#sent;
  }
}

/** How long the manager waits for a sign of life; undefined if it does not watch, or watches another process. */
function patienceOf(environment: ServiceManagerParts['environment'], pid: number): Milliseconds | undefined {
  const { WATCHDOG_USEC: microseconds, WATCHDOG_PID: watched = String(pid) } = environment;
  const patience = Number(microseconds) / 1000;
  return patience > 0 && Number.isFinite(patience) && watched === String(pid) ? patience : undefined;
}

/** Runs `systemd-notify`, which gets nothing else of the environment: it has no use for secrets. */
function notify(socket: string, message: ManagerMessage): Promise<void> {
  const env = { PATH: process.env.PATH, NOTIFY_SOCKET: socket };
  return new Promise((resolve, reject) => {
    execFile('systemd-notify', [message], { env, timeout: SEND_LIMIT }, (error) => (error ? reject(error) : resolve()));
  });
}
