/**
 * Signals between gateways, by NOTIFY on a connection of their own: within a commit it would make the commits of all
 * gateways take turns. What is to be sent is gathered for 20 ms, so that a gateway sends at most 50 times a second.
 *
 * The link is *up* or *down*. While it is down nothing is received, and what is to be sent is dropped; when it is up
 * again, this gateway tells itself and all others that signals may have been lost.
 */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import type { Signal, Signals } from '../../contract/slots/signals.js';
import type { Connections, WatchedClient } from '../connections/connections.js';
import { plannedOnce } from '../sql.js';

const CHANNEL = 'lockgate';
const GATHER_TIME: Milliseconds = 20;
const RECONNECT_DELAY = Seconds(1);
/** How often an idle link is tried out: a connection may break without a sign. */
const CHECK_INTERVAL = Seconds(5);
/** PostgreSQL takes less than 8,000 bytes; ids have up to 16 digits, MACs 12. */
const MAX_LIST_LENGTH = 300;
/** Maximum number of signals that wait to be sent; beyond it they are replaced by one that says that some are lost. */
const MAX_WAITING = 1_000;
const NOTIFY = plannedOnce('SELECT pg_notify(@channel, text) FROM unnest(@texts::text[]) AS text');
const MISSED: Signal = { type: 'missed' };

/** A notification's text. Each gateway gets its own ones too, which it ignores by the slot. */
interface Sent {
  readonly from: number;
  readonly signal: Signal;
}

export class SignalLink implements Signals {
  readonly #connections: Pick<Connections, 'open'>;
  readonly #slot: number;
  readonly #listeners: ((signal: Signal) => void)[] = [];
  #client: WatchedClient | undefined;
  #waiting: Signal[] = [];
  /** The merchants of waiting `events`; null: all. */
  #merchantIds: Set<number> | null = new Set();
  #gathering: Timer | undefined;
  #sending: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isStopped = false;

  /** @param slot this gateway's slot */
  constructor(connections: Pick<Connections, 'open'>, slot: number) {
    this.#connections = connections;
    this.#slot = slot;
  }

  /** Listens. @throws what connecting throws */
  async start(): Promise<void> {
    await this.#connect();
    this.#checkLater();
  }

  onSignal(listener: (signal: Signal) => void): void {
    this.#listeners.push(listener);
  }

  send(signal: Signal): void {
    if (this.#isStopped) return;
    if (signal.type === 'events') this.#addMerchants(signal.merchantIds);
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(...partsOf(signal));
    else this.#waiting = [MISSED];
    this.#sendSoon();
  }

  #sendSoon(): void {
    this.#gathering ??= systemClock.after(GATHER_TIME, () => {
      this.#sending = this.#sendWaiting().then(() => {
        this.#gathering = undefined;
        if (this.#waiting.length > 0 || this.#merchantIds?.size !== 0) this.#sendSoon();
      });
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#sending;
    await this.#client?.client.end().catch(() => undefined);
  }

  #addMerchants(merchantIds: readonly number[] | null): void {
    if (merchantIds === null) this.#merchantIds = null;
    else for (const id of merchantIds) this.#merchantIds?.add(id);
  }

  async #sendWaiting(): Promise<void> {
    const signals = this.#waiting;
    const ids = this.#merchantIds;
    this.#waiting = [];
    this.#merchantIds = new Set();
    // Waking all merchants is faster than naming so many.
    if (ids === null || ids.size > MAX_LIST_LENGTH) signals.push({ type: 'events', merchantIds: null });
    else if (ids.size > 0) signals.push({ type: 'events', merchantIds: [...ids] });
    const client = this.#client;
    if (signals.length === 0 || client === undefined) return;
    const texts = signals.map((signal) => JSON.stringify({ from: this.#slot, signal } satisfies Sent));
    await client.sql.get(NOTIFY, { channel: CHANNEL, texts }).catch(() => this.#broken(client));
  }

  async #connect(): Promise<void> {
    const watched = await this.#connections.open();
    watched.client.on('notification', ({ payload = '' }) => {
      const { from, signal } = JSON.parse(payload) as Sent;
      if (from !== this.#slot) this.#emit(signal);
    });
    watched.client.on('end', () => this.#broken(watched));
    await watched.sql.run(`LISTEN ${CHANNEL}`);
    this.#client = watched;
  }

  #emit(signal: Signal): void {
    for (const listener of this.#listeners) listener(signal);
  }

  #checkLater(delay: Milliseconds = CHECK_INTERVAL): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = systemClock.after(delay, () => void this.#check());
  }

  async #check(): Promise<void> {
    const client = this.#client;
    if (client === undefined) {
      await this.#connect().then(
        () => {
          this.#emit(MISSED);
          this.send(MISSED);
          this.#checkLater();
        },
        () => this.#checkLater(RECONNECT_DELAY),
      );
      return;
    }
    const limit = systemClock.after(CHECK_INTERVAL, () => this.#broken(client));
    await client.sql.get('SELECT 1 AS one').catch(() => this.#broken(client));
    limit.cancel();
    if (this.#client === client) this.#checkLater();
  }

  /** Gives the connection up, and has another one opened after a while. */
  #broken(client: WatchedClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    void client.client.end().catch(() => undefined);
    this.#checkLater(RECONNECT_DELAY);
  }
}

/** The signal, in several parts if its list is long. */
function partsOf(signal: Signal): Signal[] {
  if (signal.type === 'commands')
    return chunksOf(signal.deviceIds).map((deviceIds) => ({ type: 'commands', deviceIds }));
  if (signal.type === 'locks' && signal.macs !== null)
    return signal.macs.length > MAX_LIST_LENGTH ? [{ type: 'locks', macs: null }] : [signal];
  return [signal];
}

function chunksOf<T>(items: readonly T[]): T[][] {
  const chunks: T[][] = [];
  for (let start = 0; start < items.length; start += MAX_LIST_LENGTH)
    chunks.push(items.slice(start, start + MAX_LIST_LENGTH));
  return chunks;
}
