/**
 * The operator's side of commands where there is no gateway: one at a time to each lock, kept until the lock has
 * acknowledged it or it has expired (protocol.md §1).
 */
import { type Clock, Hours, type Milliseconds, Minutes } from '../proto/clock.js';
import type { Mac } from '../proto/mac.js';
import type { Command, Downlink, Uplink } from '../proto/ping.js';
import type { MemoryGateway } from './link-memory.js';

/** What moves or sounds a lock dies young; the others live for a day (protocol.md §1). */
const SHORT_LIFE: Milliseconds = Minutes(2);
const LONG_LIFE: Milliseconds = Hours(24);
/** Commands that wait for one lock. */
const MOST_WAITING = 100;

export class CommandDesk {
  readonly #gateway: MemoryGateway;
  readonly #clock: Clock;
  readonly #sent: (mac: Mac, downlink: Downlink) => void;
  readonly #waiting = new Map<Mac, Downlink[]>();
  #lastId = 0;

  /** @param sent told of each command when it leaves */
  constructor(gateway: MemoryGateway, clock: Clock, sent: (mac: Mac, downlink: Downlink) => void) {
    this.#gateway = gateway;
    this.#clock = clock;
    this.#sent = sent;
  }

  /** Sends a command at once, or when the lock connects next. */
  send(mac: Mac, command: Command): void {
    const isShort = command.type === 'unlock' || command.type === 'lock' || command.type === 'siren';
    const expiresMs = this.#clock.now() + (isShort ? SHORT_LIFE : LONG_LIFE);
    const waiting = this.#waiting.get(mac) ?? [];
    if (waiting.length >= MOST_WAITING) throw new Error(`over ${MOST_WAITING} commands wait for ${mac}`);
    this.#lastId += 1;
    waiting.push({ id: this.#lastId, expiresMs, command });
    this.#waiting.set(mac, waiting);
    if (waiting.length === 1) this.#sendSoon(mac);
  }

  /** The lock has connected. */
  connected(mac: Mac): void {
    if (this.#waiting.has(mac)) this.#sendSoon(mac);
  }

  /** The lock has sent something: perhaps that it is done with a command. */
  uplink(mac: Mac, { body }: Uplink): void {
    const waiting = this.#waiting.get(mac);
    if (waiting === undefined || body.kind !== 'ack') return;
    const left = waiting.filter(({ id }) => id !== body.commandId);
    if (left.length > 0) this.#waiting.set(mac, left);
    else this.#waiting.delete(mac);
    if (left.length > 0) this.#sendSoon(mac);
  }

  /** Not at once: whoever calls stands within the lock's own doing. */
  #sendSoon(mac: Mac): void {
    this.#clock.after(0, () => this.#sendFirst(mac));
  }

  #sendFirst(mac: Mac): void {
    const nowMs = this.#clock.now();
    const alive = (this.#waiting.get(mac) ?? []).filter(({ expiresMs }) => expiresMs > nowMs);
    this.#waiting.set(mac, alive);
    const [first] = alive;
    if (first === undefined) {
      this.#waiting.delete(mac);
      return;
    }
    if (!this.#gateway.isConnected(mac)) return;
    this.#sent(mac, first);
    this.#gateway.send(mac, first);
  }
}
