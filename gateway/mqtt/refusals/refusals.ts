/** Counts what the broker refuses, and reports it to operators, with secrets removed. */
import type { Clock } from '../../../proto/clock.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { GatewayEvents, Refused } from '../../events.js';
import { scrubSecrets } from '../../log/log-scrub.js';
import type { RefusalCause } from './refusal-reason.js';

/** How much of a stranger's client id operators are shown, in characters. */
const SHOWN_CLIENT_ID = 64;
/** A phone's client id, its MAC in any spelling. */
const PHONE_CLIENT_ID = /^phone-(.{12,17})-[^-]*$/;

/** How many of each kind were refused since the start. */
export type RefusalCounts = Readonly<Record<Refused['what'], number>>;

/** Who was refused, as far as that is known. */
export interface RefusedClient {
  readonly clientId: string;
  readonly userName: string;
  /** The sender, where it is authenticated. */
  readonly sender: { readonly mac: Mac; readonly source: Source } | undefined;
  readonly address: string;
}

export class Refusals {
  readonly #counts = { connect: 0, packet: 0, publish: 0, subscribe: 0, connection: 0 };
  readonly #events: GatewayEvents;
  readonly #clock: Clock;

  constructor({ events, clock }: { readonly events: GatewayEvents; readonly clock: Clock }) {
    this.#events = events;
    this.#clock = clock;
  }

  get counts(): RefusalCounts {
    return this.#counts;
  }

  report(what: Refused['what'], client: RefusedClient, { reason, why }: RefusalCause): void {
    this.#counts[what] += 1;
    const { address, sender } = client;
    const { mac, source } = sender ?? claimedBy(client);
    this.#events.emit('refused', {
      atMs: this.#clock.now(),
      what,
      // Somebody may have typed a secret into the wrong field.
      clientId: scrubSecrets(client.clientId.slice(0, SHOWN_CLIENT_ID)),
      mac,
      source,
      isAuthenticated: sender !== undefined,
      address,
      reason,
      why: scrubSecrets(why),
    });
  }
}

/** Whom a client claims to be. A MAC counts in any spelling, and in either of the two fields. */
function claimedBy({ clientId, userName }: RefusedClient): { mac: Mac | null; source: Source } {
  const phone = PHONE_CLIENT_ID.exec(clientId)?.[1];
  const source = phone === undefined ? 'lock' : 'phone';
  for (const text of [phone ?? clientId, userName]) {
    const mac = parseMac(text);
    if (mac.ok) return { mac: mac.value, source };
  }
  return { mac: null, source };
}
