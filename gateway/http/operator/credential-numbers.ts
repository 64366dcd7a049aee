/**
 * Numbers the credentials of each source (a lock, or the phones of a lock) for a trace (protocol.md §4): 1 for the
 * oldest, then by age. Uplinks with the same boot and sequence but different credentials are different uplinks, so a
 * trace must tell them apart. Does no I/O.
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { CredentialOwner } from '../../store/contract/devices/device.js';

export class CredentialNumbers {
  readonly #numbers = new Map<number, number>();
  /** How many credentials each lock has, and how many its phones have. */
  readonly #counts = new Map<string, number>();

  /** @param owners oldest first */
  constructor(owners: readonly CredentialOwner[]) {
    for (const { credentialId, mac, source } of owners) this.#add(credentialId, mac, source);
  }

  /**
   * The number of a credential; undefined if the source has only this one. A credential that was added later is
   * numbered when it is first used.
   */
  numberOf(credentialId: number, mac: Mac, source: Source): number | undefined {
    const number = this.#numbers.get(credentialId) ?? this.#add(credentialId, mac, source);
    return this.#counts.get(`${mac} ${source}`) === 1 ? undefined : number;
  }

  #add(credentialId: number, mac: Mac, source: Source): number {
    const number = 1 + (this.#counts.get(`${mac} ${source}`) ?? 0);
    this.#counts.set(`${mac} ${source}`, number);
    this.#numbers.set(credentialId, number);
    return number;
  }
}
