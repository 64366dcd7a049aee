/**
 * Acts on what other gateways that share the store signal (../store/contract/slots/signals.ts). A lost signal delays
 * something but loses nothing: after a gap in which some may have been lost, everything is read again, and new commands
 * are looked for every few seconds in any case.
 */
import { type Clock, Minutes, Seconds, type Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Commands } from '../commands/commands.js';
import type { GatewayEvents } from '../events.js';
import type { Sessions } from '../mqtt/sessions.js';
import type { Ownership } from '../store/contract/slots/ownership.js';
import type { Signal } from '../store/contract/slots/signals.js';
import type { Store } from '../store/contract/store.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';
import type { NewEventSignal } from '../webhooks/new-event-signal.js';

/** How often commands that other gateways stored are looked for, in case their signal was lost. */
const COMMAND_INTERVAL = Seconds(5);
/** Commands of this time are looked for, by the gateways' clocks, which differ a little. */
const COMMAND_SPAN = Minutes(10);

/** A cache of locks' data. */
interface LockCache {
  changed(macs?: readonly Mac[]): void;
}

export interface SignalRelayParts {
  readonly store: Pick<Store, 'listMerchants'>;
  readonly ownership: Ownership;
  readonly commands: Pick<Commands, 'takeNew'>;
  readonly sessions: Pick<Sessions, 'endOfMerchant'>;
  readonly dispatcher: Pick<Dispatcher, 'wake' | 'wakeAll' | 'changedElsewhere' | 'forgetLockHere'>;
  readonly newEvents: Pick<NewEventSignal, 'wake' | 'wakeAll'>;
  /** What remembers locks' data. */
  readonly caches: readonly LockCache[];
  readonly events: GatewayEvents;
  /** The clock of all stored times: wall-clock time, since gateways that share a store run at no other speed. */
  readonly clock: Clock;
  /** A monotonic clock, for {@link COMMAND_INTERVAL}. */
  readonly timers: Clock;
}

export class SignalRelay {
  readonly #parts: SignalRelayParts;
  #timer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: SignalRelayParts) {
    this.#parts = parts;
  }

  /** Does nothing if this gateway has the store to itself. */
  start(): void {
    const { ownership } = this.#parts;
    if (ownership.locks.isSole) return;
    ownership.signals.onSignal((signal) => {
      if (!this.#isStopped) this.#receive(signal);
    });
    this.#lookLater();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#working;
  }

  #receive(signal: Signal): void {
    const { dispatcher, newEvents, caches, sessions, commands } = this.#parts;
    switch (signal.type) {
      case 'events':
        if (signal.merchantIds === null) {
          dispatcher.wakeAll();
          newEvents.wakeAll();
          return;
        }
        dispatcher.wake(new Set(signal.merchantIds), 0);
        newEvents.wake(new Set(signal.merchantIds));
        return;
      case 'commands':
        this.#do(() => commands.takeNew({ deviceIds: signal.deviceIds }));
        return;
      case 'locks':
        for (const cache of caches) cache.changed(signal.macs ?? undefined);
        return;
      case 'erased':
        dispatcher.forgetLockHere(signal.deviceId);
        return;
      case 'merchant-closed':
        this.#do(() => sessions.endOfMerchant(signal.merchantId));
        return;
      case 'url':
        dispatcher.changedElsewhere(signal);
        return;
      case 'missed':
        this.#do(() => this.#readAgain());
        return;
      // Other parts of the gateway listen to the remaining types.
      default:
    }
  }

  async #readAgain(): Promise<void> {
    const { store, dispatcher, newEvents, caches, sessions } = this.#parts;
    dispatcher.wakeAll();
    newEvents.wakeAll();
    for (const cache of caches) cache.changed();
    for (const { id, closedAtMs } of await store.listMerchants())
      if (closedAtMs !== null) await sessions.endOfMerchant(id);
    await this.#takeCommands();
  }

  async #takeCommands(): Promise<void> {
    const { commands, clock } = this.#parts;
    await commands.takeNew({ sinceMs: clock.now() - COMMAND_SPAN });
  }

  #lookLater(): void {
    if (this.#isStopped) return;
    this.#timer = this.#parts.timers.after(COMMAND_INTERVAL, () => {
      this.#do(() => this.#takeCommands());
      this.#lookLater();
    });
  }

  /** Does one thing after the other. */
  #do(work: () => Promise<void>): void {
    this.#working = this.#working.then(work).catch((error: Error) => {
      const { events, clock } = this.#parts;
      events.emit('store-failed', { atMs: clock.now(), why: error.message });
    });
  }
}
