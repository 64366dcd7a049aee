/** What the broker refused: counted, and told to operators without what a stranger may have let slip. */
import type { Clock } from '../../proto/clock.js';
import type { GatewayEvents, Refused } from '../events.js';
import { scrubSecrets } from '../log-scrub.js';

/** What a stranger calls himself is shown to operators, but not at any length. */
const SHOWN_CLIENT_ID = 64;

/** How many of each kind were refused since the start. */
export type RefusalCounts = Readonly<Record<Refused['what'], number>>;

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

  /** `id` is the client's, as far as one is known. */
  tell(what: Refused['what'], id: string | null | undefined, address: string, why: string): void {
    this.#counts[what] += 1;
    // Somebody may have typed a secret where the name belongs.
    const clientId = scrubSecrets((id ?? '').slice(0, SHOWN_CLIENT_ID));
    this.#events.emit('refused', { atMs: this.#clock.now(), what, clientId, address, why: scrubSecrets(why) });
  }
}
