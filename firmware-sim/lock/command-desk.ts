/**
 * The gateway's part in commands, for runs without one. As the gateway does it (protocol.md §1, `down`), a command
 * waits until the lock is connected and has said a first word, goes out one at a time and in order, again with the next
 * connection until it is acknowledged or expires, and never in a state that takes none.
 */
import { type Clock, Hours, type Milliseconds, Minutes, type Timer } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow } from '../../proto/power/step/reading.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, Downlink, Uplink } from '../../proto/wire/ping.js';

export interface CommandDeskOptions {
  readonly clock: Clock;
  /** Sends it; false where the lock is not connected. */
  readonly send: (mac: Mac, downlink: Downlink) => boolean;
  /** Told of each command right before it is sent. */
  readonly onSend: (mac: Mac, downlink: Downlink) => void;
}

/** Between a lock's word and the command that it lets out. */
const LATENCY: Milliseconds = 150;
/** Commands that wait for one lock; the oldest is taken back. */
const MOST_WAITING = 8;

interface Waiting {
  readonly mac: Mac;
  queue: Downlink[];
  /** Whether the first of the queue has gone out on this connection. */
  isSent: boolean;
  /** Whether the lock is connected, has said something, and is in a state that takes commands. */
  listens: boolean;
  timer: Timer | undefined;
}

/** See the head of this file. It is told what a gateway would see of the locks. */
export class CommandDesk {
  readonly #options: CommandDeskOptions;
  readonly #locks = new Map<Mac, Waiting>();
  #lastId = 0;

  constructor(options: CommandDeskOptions) {
    this.#options = options;
  }

  /** Has a lock asked to do something: at once, or when it next listens. */
  ask(mac: Mac, command: Command): void {
    const lock = this.#of(mac);
    this.#lastId += 1;
    lock.queue.push({ id: this.#lastId, command, expiresMs: this.#options.clock.now() + lifeOf(command) });
    // What has been sent is waited for; of the others the oldest goes.
    if (lock.queue.length > MOST_WAITING) lock.queue.splice(lock.isSent ? 1 : 0, 1);
    this.#sendSoon(lock);
  }

  connected(mac: Mac): void {
    this.#silence(this.#of(mac));
  }

  ended(mac: Mac): void {
    this.#silence(this.#of(mac));
  }

  uplink(mac: Mac, { body, power }: Uplink): void {
    const lock = this.#of(mac);
    if (body.kind === 'ack') {
      const [first] = lock.queue;
      if (first?.id === body.commandId) {
        lock.queue.shift();
        lock.isSent = false;
      }
    } else lock.listens = effectiveRow(POWER_MODEL, power, body.batteryPercent).commands;
    this.#sendSoon(lock);
  }

  #silence(lock: Waiting): void {
    lock.isSent = false;
    lock.listens = false;
    lock.timer?.cancel();
    lock.timer = undefined;
  }

  #of(mac: Mac): Waiting {
    const known = this.#locks.get(mac);
    if (known !== undefined) return known;
    const lock: Waiting = { mac, queue: [], isSent: false, listens: false, timer: undefined };
    this.#locks.set(mac, lock);
    return lock;
  }

  #sendSoon(lock: Waiting): void {
    if (!lock.listens || lock.isSent || lock.timer !== undefined || lock.queue.length === 0) return;
    lock.timer = this.#options.clock.after(LATENCY, () => {
      lock.timer = undefined;
      this.#sendNow(lock);
    });
  }

  #sendNow(lock: Waiting): void {
    const { clock, send, onSend } = this.#options;
    if (lock.isSent || !lock.listens) return;
    lock.queue = lock.queue.filter(({ expiresMs }) => expiresMs > clock.now());
    const [first] = lock.queue;
    if (first === undefined) return;
    lock.isSent = true;
    onSend(lock.mac, first);
    send(lock.mac, first);
  }
}

/** Unlock, lock and siren die young (protocol.md §1). */
function lifeOf({ type }: Command): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? Minutes(2) : Hours(24);
}
