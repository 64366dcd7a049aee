/**
 * Decides whether a new connection may have a file descriptor. Every connection and every open file takes one. When
 * none is left, nobody can connect, not even the operator, and the store can't open its files. So some descriptors are
 * a reserve, of which each kind of connection must leave a part free: locks all of it, merchants half, operators a
 * quarter.
 *
 * The system gives a new connection the lowest free number. A number within the reserve means that all numbers below
 * are in use, so one comparison per connection shows how many are left, without counting.
 */
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { countOpenFiles, readOpenFileLimit } from './descriptor-limit.js';

/** The reserve as a share of the limit, and its minimum and maximum. */
const RESERVE_SHARE = 1 / 8;
const MIN_RESERVE = 32;
const MAX_RESERVE = 256;

/** Who connects. Each must leave descriptors free for those named after it. */
export type Caller = 'lock' | 'merchant' | 'operator';

/**
 * What to do with a new connection: *enough*: serve it; *short*: answer with a refusal and close; *none*: close at
 * once.
 */
export type DescriptorRoom = 'enough' | 'short' | 'none';

/** Up to which share of the reserve a caller's connection has *enough* room, and up to which it has *short* room. */
const USABLE_SHARES: Readonly<Record<Caller, { readonly enough: number; readonly short: number }>> = {
  lock: { enough: 0, short: 1 / 2 },
  merchant: { enough: 1 / 2, short: 3 / 4 },
  operator: { enough: 3 / 4, short: 1 },
};

/** The file descriptors of this process. */
export class Descriptors {
  /** How many descriptors this process may have open; undefined if there is no limit. */
  readonly limit: number | undefined;
  /** How many descriptors locks must leave free. */
  readonly reserve: number;

  constructor(limit: number | undefined = readOpenFileLimit()) {
    this.limit = limit;
    this.reserve = reserveOf(limit ?? 0);
  }

  /** How many descriptors are open; undefined if unknown. */
  get open(): number | undefined {
    return countOpenFiles();
  }

  /** Maximum number of connected locks, if everything else needs no more than the reserve. */
  get forLocks(): number {
    return this.limit === undefined ? Number.POSITIVE_INFINITY : Math.max(this.limit - this.reserve, 0);
  }

  /**
   * Whether every descriptor outside the reserve is in use. Opens a file to find out, which takes some microseconds.
   */
  get isShort(): boolean {
    if (this.limit === undefined) return false;
    try {
      const lowest = openSync('/dev/null', 'r');
      closeSync(lowest);
      return lowest >= this.limit - this.reserve;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === 'EMFILE' || code === 'ENFILE';
    }
  }

  /** What to do with a new connection, by the number of its descriptor. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const descriptor = descriptorOf(socket);
    if (this.limit === undefined || descriptor === undefined) return 'enough';
    const { enough, short } = USABLE_SHARES[caller];
    const reserveStart = this.limit - this.reserve;
    if (descriptor < reserveStart + enough * this.reserve) return 'enough';
    return descriptor < reserveStart + short * this.reserve ? 'short' : 'none';
  }
}

/** The limit that leaves `count` descriptors in addition to the reserve. */
export function descriptorsFor(count: number): number {
  return count + reserveOf(Math.ceil(count / (1 - RESERVE_SHARE)));
}

function reserveOf(limit: number): number {
  return Math.min(Math.max(Math.ceil(limit * RESERVE_SHARE), MIN_RESERVE), MAX_RESERVE);
}

/** The socket's descriptor; undefined on systems without descriptors. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd === undefined || handle.fd < 0 ? undefined : handle.fd;
}
