/**
 * Checks, when an operator sets a URL, whether webhooks may be sent to its address, so that a refused address is
 * reported at once and not by failing attempts. The rule itself is applied to every connection
 * (guarded-connections.ts). So a name that can't be resolved at the moment, or resolves to another address later, is
 * accepted here.
 */
import { isIP } from 'node:net';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { RequestFaults } from '../../faults.js';
import { type AddressRange, isAllowedAddress, specialRangeOf } from './address-rule.js';
import type { LookupAll } from './name-service.js';

/** The operator waits meanwhile. A name whose look-up takes longer counts as one that can't be resolved. */
const MAX_LOOKUP_WAIT = Seconds(2);

/** The error code for an address to which webhooks may not be sent. */
const REFUSED_TARGET_CODE = 'input-webhook-address';

export class TargetCheck {
  readonly #allowed: readonly AddressRange[];
  readonly #lookUp: LookupAll;

  constructor(allowed: readonly AddressRange[], lookUp: LookupAll) {
    this.#allowed = allowed;
    this.#lookUp = lookUp;
  }

  /**
   * Resolves if webhooks may be sent to at least one address of the URL's host, or if its addresses are unknown. Does
   * not check the text's form.
   *
   * @param member the member of the request that has the URL, for the error's pointer
   * @throws RequestFaults {@link REFUSED_TARGET_CODE}, naming the range and the setting that allows it
   */
  async check(text: string, member = 'url'): Promise<void> {
    if (!URL.canParse(text)) return;
    const host = new URL(text).hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isIP(host) === 0 ? await this.#addressesOf(host) : [host];
    const [first] = addresses;
    if (first === undefined || addresses.some((address) => isAllowedAddress(address, this.#allowed))) return;
    const { range, kind } = specialRangeOf(first);
    const subject = first === host ? first : `${host} resolves to ${first}, which`;
    const detail =
      `${subject} is in ${range} (${kind}), and webhooks go to public addresses only. ` +
      `To allow it, start the gateway with --allow-webhook-range ${range}`;
    throw new RequestFaults(REFUSED_TARGET_CODE, detail, [{ pointer: `/${member}`, detail }]);
  }

  /** The addresses of a name; none if it can't be resolved at the moment. */
  #addressesOf(host: string): Promise<readonly string[]> {
    return new Promise((resolve) => {
      const timer = systemClock.after(MAX_LOOKUP_WAIT, () => resolve([]));
      this.#lookUp(host, { all: true }, (error, addresses) => {
        timer.cancel();
        resolve(error === null ? addresses.map(({ address }) => address) : []);
      });
    });
  }
}
