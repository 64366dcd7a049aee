/**
 * File descriptors: every connection takes one, and so does every file. When none is left, nobody can connect, not even
 * the operator who could help, and the store can't open its files. So each kind of connection must leave some free for
 * more important ones: locks the most, then merchants, then operators.
 *
 * The system gives a new connection the lowest free number. A number within the reserve means that all below are taken,
 * so one comparison for each connection shows how many are left, without counting.
 */
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { mostOpenFiles, openFiles } from './descriptor-limit.js';

/** The part of the limit that is reserved from locks, and its bounds. */
const RESERVED_PART = 1 / 8;
const RESERVED_LEAST = 32;
const RESERVED_MOST = 256;

/** Who connects; each must leave some free for those named after it. */
export type Caller = 'lock' | 'merchant' | 'operator';

/**
 * The room for a new connection: *enough*; *short*, so that it is answered with a refusal and closed; or *none*, so
 * that it is closed at once.
 */
export type DescriptorRoom = 'enough' | 'short' | 'none';

/** Up to which part of the reserve a caller has *enough* room, and *short* room. */
const PARTS: Readonly<Record<Caller, { readonly enough: number; readonly short: number }>> = {
  lock: { enough: 0, short: 1 / 2 },
  merchant: { enough: 1 / 2, short: 3 / 4 },
  operator: { enough: 3 / 4, short: 1 },
};

export class Descriptors {
  /** How many this process may have open; undefined where there is no limit. */
  readonly limit: number | undefined;
  /** How many are reserved from locks. */
  readonly reserve: number;

  constructor(limit: number | undefined = mostOpenFiles()) {
    this.limit = limit;
    this.reserve = reserveOf(limit ?? 0);
  }

  /** How many are open; undefined where that is unknown. */
  get open(): number | undefined {
    return openFiles();
  }

  /** How many locks can be connected at most, if everything else needs no more than the reserve. */
  get forLocks(): number {
    return this.limit === undefined ? Number.POSITIVE_INFINITY : Math.max(this.limit - this.reserve, 0);
  }

  /** Whether everything outside the reserve is taken. It opens a file to see that, which costs some microseconds. */
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

  /** The room for a new connection. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const number = descriptorOf(socket);
    if (this.limit === undefined || number === undefined) return 'enough';
    const { enough, short } = PARTS[caller];
    const base = this.limit - this.reserve;
    if (number < base + enough * this.reserve) return 'enough';
    return number < base + short * this.reserve ? 'short' : 'none';
  }
}

/** The limit with which there are `count` beside the reserve. */
export function descriptorsFor(count: number): number {
  return count + reserveOf(Math.ceil(count / (1 - RESERVED_PART)));
}

function reserveOf(limit: number): number {
  return Math.min(Math.max(Math.ceil(limit * RESERVED_PART), RESERVED_LEAST), RESERVED_MOST);
}

/** The socket's descriptor; undefined where the system has none. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd === undefined || handle.fd < 0 ? undefined : handle.fd;
}
