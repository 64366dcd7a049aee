/**
 * The gateway's part in commands, for runs without a gateway. As the gateway does it (protocol.md §1, `down`), a
 * command waits until the lock has connected and sent an uplink; commands are sent one at a time and in order, again
 * with each new connection until acknowledged or expired, and never in a state that takes none.
 */
import { type Clock, Hours, type Milliseconds, Minutes, type Timer } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, Downlink, Uplink } from '../../proto/wire/ping.js';

export interface CommandQueueOptions {
  readonly clock: Clock;
  /** Sends it; false where the lock is not connected. */
  readonly send: (mac: Mac, downlink: Downlink) => boolean;
  /** Called with each command just before it is sent. */
  readonly onSend: (mac: Mac, downlink: Downlink) => void;
}

/** Between an uplink of the lock and the command that it triggers. */
const SEND_DELAY_MS: Milliseconds = 150;
/** The most commands waiting for one lock; past it the oldest unsent one is discarded. */
const MAX_QUEUED_COMMANDS = 8;

interface LockQueue {
  readonly mac: Mac;
  queue: Downlink[];
  /** Whether the first of the queue has been sent on this connection. */
  isSent: boolean;
  /** Whether the lock is connected, has sent an uplink, and is in a state that takes commands. */
  isReady: boolean;
  timer: Timer | undefined;
}

/** See the head of this file. It is notified of what a gateway would see of the locks. */
export class CommandQueue {
  readonly #options: CommandQueueOptions;
  readonly #locks = new Map<Mac, LockQueue>();
  #lastId = 0;

  constructor(options: CommandQueueOptions) {
    this.#options = options;
  }

  /** Sends a command to a lock, at once or when it is next ready. */
  enqueue(mac: Mac, command: Command): void {
    const lock = this.#queueOf(mac);
    this.#lastId += 1;
    lock.queue.push({ id: this.#lastId, command, expiresMs: this.#options.clock.now() + commandLifetime(command) });
    // The one that was sent is awaiting its answer; the oldest of the others is discarded.
    if (lock.queue.length > MAX_QUEUED_COMMANDS) lock.queue.splice(lock.isSent ? 1 : 0, 1);
    this.#sendSoon(lock);
  }

  connected(mac: Mac): void {
    this.#reset(this.#queueOf(mac));
  }

  disconnected(mac: Mac): void {
    this.#reset(this.#queueOf(mac));
  }

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

/** How long a command is valid: briefly where a late one could surprise somebody (protocol.md §1). */
export function commandLifetime({ type }: Command): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? Minutes(2) : Hours(24);
}
