/**
 * File descriptors: every connection takes one, and so does every file. When there are none left, nobody gets in, not
 * even the operator who could help, and the store can't open what it needs. So each kind of connection has to leave
 * some to those that matter more: locks the most, then merchants, then operators.
 *
 * The system gives a new connection the lowest number that is free. A number that reaches into the reserve says that
 * all below it are taken, so one comparison for each connection shows how many are left, and none are counted.
 */
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { mostOpenFiles, openFiles } from './descriptor-limit.js';

/** The part of the limit that is kept back from locks, and its bounds. */
const RESERVED_PART = 1 / 8;
const RESERVED_LEAST = 32;
const RESERVED_MOST = 256;

/** Who connects; each leaves some to those named after it. */
export type Caller = 'lock' | 'merchant' | 'operator';

/**
 * What there is for a new connection: a place like any other; one for as long as it takes to answer it, which it is to
 * be told no with; or nothing, and it is to be closed.
 */
export type DescriptorRoom = 'enough' | 'short' | 'none';

/** Up to which part of the reserve a caller has enough, and has a short place. */
const PARTS: Readonly<Record<Caller, { readonly enough: number; readonly short: number }>> = {
  lock: { enough: 0, short: 1 / 2 },
  merchant: { enough: 1 / 2, short: 3 / 4 },
  operator: { enough: 3 / 4, short: 1 },
};

export class Descriptors {
  /** The most that this process may have open; undefined where nothing limits it. */
  readonly limit: number | undefined;
  /** How many are kept back from locks. */
  readonly reserve: number;

  constructor(limit: number | undefined = mostOpenFiles()) {
    this.limit = limit;
    this.reserve = reserveOf(limit ?? 0);
  }

  /** How many are open; undefined where the system does not tell. */
  get open(): number | undefined {
    return openFiles();
  }

  /** How many locks can be connected at most, when everything else needs no more than the reserve. */
  get forLocks(): number {
    return this.limit === undefined ? Number.POSITIVE_INFINITY : Math.max(this.limit - this.reserve, 0);
  }

  /** Whether all that is not reserved is taken. It opens a file for that, which costs some microseconds. */
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

  /** What there is for this connection, which has just come. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const number = descriptorOf(socket);
    if (this.limit === undefined || number === undefined) return 'enough';
    const { enough, short } = PARTS[caller];
    const base = this.limit - this.reserve;
    if (number < base + enough * this.reserve) return 'enough';
    return number < base + short * this.reserve ? 'short' : 'none';
  }
}

/** The limit that leaves so many besides the reserve. */
export function descriptorsFor(count: number): number {
  return count + reserveOf(Math.ceil(count / (1 - RESERVED_PART)));
}

function reserveOf(limit: number): number {
  return Math.min(Math.max(Math.ceil(limit * RESERVED_PART), RESERVED_LEAST), RESERVED_MOST);
}

/** Its number; undefined where the system has none. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd === undefined || handle.fd < 0 ? undefined : handle.fd;
}
