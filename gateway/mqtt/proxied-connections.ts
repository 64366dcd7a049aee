/**
 * Waits for the PROXY protocol header of connections that come from a balancer which the operator named
 * (`--mqtt-proxies`), so that a lock's address is the lock's and not the balancer's. Other connections pass at once: a
 * header from anybody else could be invented, and is refused like any other wrong first packet.
 *
 * A balancer sends the header at once, so few connections wait, and only for a short time.
 */
import type { Socket } from 'node:net';
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import { Seconds } from '../../proto/clock.js';
import { type ProxyHeader, readProxyHeader } from '../network/proxy-header.js';
import type { RefusalCause } from './refusals/refusal-reason.js';

/** How long a balancer may take to send its header. */
export const HEADER_WITHIN: Milliseconds = Seconds(5);
/** How many connections may wait for their header at a time; each holds up to some 500 bytes. */
export const MAX_WAITING = 4096;

export interface ProxiedOptions {
  /** Whether this address is a balancer's. */
  readonly trusts: (address: string) => boolean;
  /** Runs in real time and never goes back. */
  readonly clock: Clock;
  /** A connection was refused and closed. `address` is the balancer's. */
  readonly onRefused: (address: string, cause: RefusalCause) => void;
}

/** Called with the client's address, and how many bytes of the socket were the balancer's header. */
export type OnClient = (address: string, headerBytes: number) => void;

/** A connection whose header has not come completely. */
interface Waiting {
  readonly raw: Socket;
  readonly address: string;
  readonly timer: Timer;
}

export class ProxiedConnections {
  readonly #options: ProxiedOptions;
  readonly #waiting = new Map<Socket, Waiting>();

  constructor(options: ProxiedOptions) {
    this.#options = options;
  }

  /** Takes a new connection of which no byte has been read. `onClient` is called once, unless it is refused. */
  take(raw: Socket, address: string, onClient: OnClient): void {
    if (!this.#options.trusts(address)) return void onClient(address, 0);
    if (this.#waiting.size >= MAX_WAITING)
      return void this.#refuse(raw, address, {
        reason: 'crowd',
        why: `${MAX_WAITING} connections wait for a PROXY header`,
      });
    const late = { reason: 'slow', why: `no PROXY header came within ${HEADER_WITHIN / Seconds(1)} s` } as const;
    const timer = this.#options.clock.after(HEADER_WITHIN, () => this.#refuse(raw, address, late));
    this.#waiting.set(raw, { raw, address, timer });
    let received: Buffer = Buffer.alloc(0);
    const readMore = (): void => {
      const chunk = raw.read() as Buffer | null;
      if (chunk === null) return;
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const header = readProxyHeader(received);
      if (header.is === 'incomplete') return;
      raw.off('readable', readMore);
      this.#completed(raw, address, received, header, onClient);
    };
    raw.on('readable', readMore);
    raw.on('error', ignoreError);
    raw.once('close', () => this.#forget(raw));
  }

  /** Closes the connections that still wait. */
  close(): void {
    for (const { raw } of this.#waiting.values()) raw.destroy();
  }

  #completed(
    raw: Socket,
    address: string,
    received: Buffer,
    header: Exclude<ProxyHeader, { is: 'incomplete' }>,
    onClient: OnClient,
  ): void {
    if (header.is === 'wrong') return void this.#refuse(raw, address, { reason: 'malformed', why: header.why });
    this.#forget(raw);
    raw.off('error', ignoreError);
    const rest = received.subarray(header.bytes);
    if (rest.length > 0) raw.unshift(rest);
    onClient(header.address ?? address, header.bytes);
  }

  #refuse(raw: Socket, address: string, cause: RefusalCause): void {
    this.#forget(raw);
    raw.destroy();
    this.#options.onRefused(address, cause);
  }

  #forget(raw: Socket): void {
    this.#waiting.get(raw)?.timer.cancel();
    this.#waiting.delete(raw);
  }
}

/** A connection that breaks before its header came needs no report; it also closes. */
function ignoreError(): void {
  // Nothing is left to do.
}
