/** Counts what the broker refuses, and emits `refused` events for operators, with secrets removed. */
import type { Clock } from '../../../proto/clock.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { GatewayEvents } from '../../events.js';
import type { Refused } from '../../lock-events.js';
import { scrubSecrets } from '../../log/log-scrub.js';
import type { RefusalCause } from './refusal-reason.js';

/** How much of a refused client id operators see. */
const SHOWN_CLIENT_ID_CHARS = 64;
/** A phone's client id, with its lock's MAC in any spelling: 12 digits, and up to five separators. */
const PHONE_CLIENT_ID = /^phone-(.{12,17})-[^-]*$/;

/** The number of refusals of each kind since the start. */
export type RefusalCounts = Readonly<Record<Refused['what'], number>>;

/** The client that was refused, as far as it is known. */
export interface RefusedClient {
  readonly clientId: string;
  readonly userName: string;
  /** The sender, if the client is authenticated. */
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

  /** Counts a refusal and announces it. `what` is refused: a CONNECT, a publish and so on. */
  report(what: Refused['what'], client: RefusedClient, { reason, why }: RefusalCause): void {
    this.#counts[what] += 1;
    const { address, sender } = client;
    const { mac, source } = sender ?? claimedBy(client);
    this.#events.emit('refused', {
      atMs: this.#clock.now(),
      what,
      // A user may have entered a secret in the wrong field.
      clientId: scrubSecrets(client.clientId.slice(0, SHOWN_CLIENT_ID_CHARS)),
      mac,
      source,
      isAuthenticated: sender !== undefined,
      address,
      reason,
      why: scrubSecrets(why),
    });
  }
}

/** The lock that a client claims to be. The MAC may have any spelling, and be in the client id or the user name. */
function claimedBy({ clientId, userName }: RefusedClient): { mac: Mac | null; source: Source } {
  const phone = PHONE_CLIENT_ID.exec(clientId)?.[1];
  const source = phone === undefined ? 'lock' : 'phone';
  for (const text of [phone ?? clientId, userName]) {
    const mac = parseMac(text);
    if (mac.ok) return { mac: mac.value, source };
  }
  return { mac: null, source };
}
