/** Commands for a fleet without a gateway: each lock is asked to do something now and then, as its seed has it. */
import { type Clock, Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command } from '../../proto/wire/ping.js';
import type { CommandDesk } from '../lock/command-desk.js';
import { Prng } from '../prng.js';

/** What locks are asked to do. */
export interface CommandOrder {
  /** How many commands each lock gets a day, on the average. */
  readonly perDay: number;
  /** What they are drawn from. */
  readonly commands: readonly Command[];
}

export interface CommandOrdersOptions extends CommandOrder {
  readonly seed: string | number;
  readonly clock: Clock;
  readonly macs: readonly Mac[];
}

/** Has the desk ask, for as long as the clock goes. */
export function placeOrders({ seed, clock, macs, perDay, commands }: CommandOrdersOptions, desk: CommandDesk): void {
  const prng = new Prng(seed).fork('commands');
  for (const mac of macs) {
    const own = prng.fork(mac);
    const planNext = (): void => {
      clock.after(Math.round(own.between(0, (2 * Days(1)) / perDay)), () => {
        desk.ask(mac, own.pick(commands));
        planNext();
      });
    };
    planNext();
  }
}
