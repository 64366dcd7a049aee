/** The parts (locks, and the phones that act for them) that this gateway owns, in memory: asked for each uplink. */
import type { Source } from '../../../../proto/wire/ping.js';
import type { LockPart } from '../../contract/slots/ownership.js';

export class OwnParts {
  readonly #ids: Readonly<Record<Source, Set<number>>> = { lock: new Set(), phone: new Set() };

  has(deviceId: number, source: Source): boolean {
    return this.#ids[source].has(deviceId);
  }

  add({ deviceId, source }: LockPart): void {
    this.#ids[source].add(deviceId);
  }

  delete({ deviceId, source }: LockPart): void {
    this.#ids[source].delete(deviceId);
  }
}

/** The key of a part in maps. */
export function partKey({ deviceId, source }: LockPart): string {
  return `${deviceId}/${source}`;
}
