/** Schedules commands for a fleet without a gateway: each lock gets commands at times drawn from the seed. */
import { type Clock, Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command } from '../../proto/wire/ping.js';
import type { CommandQueue } from '../link/command-queue.js';
import { Prng } from '../prng.js';

/** How many commands each lock gets, and of which kinds. */
export interface CommandSchedule {
  /** Mean number of commands per lock and day. */
  readonly perDay: number;
  /** The commands to choose from. */
  readonly commands: readonly Command[];
}

/** A schedule, and the locks that get its commands. */
export interface CommandScheduleOptions extends CommandSchedule {
  readonly seed: string | number;
  readonly clock: Clock;
  readonly macs: readonly Mac[];
}

/** Enqueues commands for as long as the clock runs. */
export function scheduleCommands(
  { seed, clock, macs, perDay, commands }: CommandScheduleOptions,
  queue: CommandQueue,
): void {
  const prng = new Prng(seed).fork('commands');
  for (const mac of macs) {
    const lockPrng = prng.fork(mac);
    const planNext = (): void => {
      // A wait between 0 and twice the mean has the wanted mean.
      clock.after(Math.round(lockPrng.between(0, (2 * Days(1)) / perDay)), () => {
        queue.enqueue(mac, lockPrng.pick(commands));
        planNext();
      });
    };
    planNext();
  }
}
