/**
 * Sends commands to simulated locks in runs without a gateway, by the gateway's rules (protocol.md §1, `down`). A
 * command waits until the lock has connected and sent an uplink. Commands are sent one at a time, in order, and again
 * on each new connection until acknowledged or expired. A lock in a state that takes no commands gets none.
 */
import { type Clock, Hours, type Milliseconds, Minutes, type Timer } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, Downlink, Uplink } from '../../proto/wire/ping.js';

/** How commands are sent. */
export interface CommandQueueOptions {
  readonly clock: Clock;
  /** Sends a command. If it does not arrive, it is sent again on the lock's next connection. */
  readonly send: (mac: Mac, downlink: Downlink) => void;
  /** Called with each command just before it is sent. */
  readonly onSend: (mac: Mac, downlink: Downlink) => void;
}

/** How long a command that could be sent, after an uplink or once it is queued, still waits. */
const SEND_DELAY_MS: Milliseconds = 150;
/** Maximum number of commands queued for one lock. Beyond it the oldest unsent command is discarded. */
const MAX_QUEUED_COMMANDS = 8;

/** The commands of one lock. */
interface LockQueue {
  readonly mac: Mac;
  queue: Downlink[];
  /** Whether the first command of the queue has been sent on the current connection. */
  isSent: boolean;
  /** Whether the lock is connected, has sent an uplink, and is in a state that takes commands. */
  isReady: boolean;
  timer: Timer | undefined;
}

/** The commands of all locks of a run. The caller reports each connection and uplink to it. */
export class CommandQueue {
  readonly #options: CommandQueueOptions;
  readonly #locks = new Map<Mac, LockQueue>();
  #lastId = 0;

  constructor(options: CommandQueueOptions) {
    this.#options = options;
  }

  /** Sends a command to a lock, after a short delay or when the lock is next ready. */
  enqueue(mac: Mac, command: Command): void {
    const lock = this.#queueOf(mac);
    this.#lastId += 1;
    lock.queue.push({ id: this.#lastId, command, expiresMs: this.#options.clock.now() + commandLifetime(command) });
    // A command that was sent is awaiting its answer and is not discarded.
    if (lock.queue.length > MAX_QUEUED_COMMANDS) lock.queue.splice(lock.isSent ? 1 : 0, 1);
    this.#sendSoon(lock);
  }

  /** The lock has connected. It gets commands only after its first uplink. */
  connected(mac: Mac): void {
    this.#reset(this.#queueOf(mac));
  }

  /** The lock's connection has ended. Commands wait for the next one. */
  disconnected(mac: Mac): void {
    this.#reset(this.#queueOf(mac));
  }

  /**
   * An uplink has arrived: the acknowledgement of a command, or a ping, which shows whether the lock takes commands.
   */
  uplink(mac: Mac, { body, power }: Uplink): void {
    const lock = this.#queueOf(mac);
    if (body.kind === 'ack') {
      const [first] = lock.queue;
      if (first?.id === body.commandId) {
        lock.queue.shift();
        lock.isSent = false;
      }
    } else lock.isReady = effectiveRow(POWER_MODEL, power, body.batteryPercent).commands;
    this.#sendSoon(lock);
  }

  #reset(lock: LockQueue): void {
    lock.isSent = false;
    lock.isReady = false;
    lock.timer?.cancel();
    lock.timer = undefined;
  }

  #queueOf(mac: Mac): LockQueue {
    const known = this.#locks.get(mac);
    if (known !== undefined) return known;
    const lock: LockQueue = { mac, queue: [], isSent: false, isReady: false, timer: undefined };
    this.#locks.set(mac, lock);
    return lock;
  }

  #sendSoon(lock: LockQueue): void {
    if (!lock.isReady || lock.isSent || lock.timer !== undefined || lock.queue.length === 0) return;
    lock.timer = this.#options.clock.after(SEND_DELAY_MS, () => {
      lock.timer = undefined;
      this.#sendNow(lock);
    });
  }

  #sendNow(lock: LockQueue): void {
    const { clock, send, onSend } = this.#options;
    if (lock.isSent || !lock.isReady) return;
    lock.queue = lock.queue.filter(({ expiresMs }) => expiresMs > clock.now());
    const [first] = lock.queue;
    if (first === undefined) return;
    lock.isSent = true;
    onSend(lock.mac, first);
    send(lock.mac, first);
  }
}

/** How long a command is valid. It is short for commands that would surprise a person if late (protocol.md §1). */
export function commandLifetime({ type }: Command): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? Minutes(2) : Hours(24);
}
