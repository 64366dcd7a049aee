/** `lockgate sim shadow`: flags and help. run.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../../proto/clock.js';
import { untilInterrupted } from '../../../terminal/interrupt.js';
import { addClientFlags } from '../../../terminal/shared-flags.js';
import type { ShadowFlags } from './flags.js';

const HELP = `
The command infers from the real lock’s uplinks what happens to the lock: when it is unlocked, moved, charged or out of
coverage. A simulated lock that follows the protocol’s model, with the same settings, MAC and clock, goes through the
same. The command prints each difference when it is certain: an uplink that the model would not send, or one that the
real lock should have sent. A later uplink may explain a difference, for example one that had waited in the lock; the
difference is then withdrawn. Small deviations of firmware are no difference: seconds more or less for a GPS fix, or
another minute for the daily ping.

A lock that is connected at the start is followed from its next connection. Events that the lock does not report at all,
such as a theft without any ping, can’t be inferred. If an uplink is missing but the lock has been silent for 30 min,
the lock may be out of coverage; the printed line says so.

--for is in the gateway’s time, which may be sped up. The operator’s token must be allowed to record traces.

Exit codes: 0 no difference, 1 differences, 2 the command line is wrong, 3 the gateway can’t be reached or refuses.

Example:
  $ lockgate sim shadow A4:C1:38:F0:E1:D2
  $ lockgate sim shadow A4:C1:38:F0:E1:D2 --for 24h --json`;

/** Adds the command to the group. */
export function addSimShadow(sim: Command): void {
  addClientFlags(
    sim.command('shadow').description('Compare a real lock with a simulated one while it runs, and print differences.'),
  )
    .argument('<mac>', 'The real lock.')
    .option('--for <time>', 'End after this time, such as 30m, 1h or 7d (default: at Ctrl-C).', parseSpan)
    .addHelpText('after', HELP)
    .action(async (mac: string, flags: ShadowFlags) => {
      const { runShadow } = await import('./run.js');
      await runShadow(mac, flags, untilInterrupted());
    });
}

const UNITS = { s: Seconds(1), m: Minutes(1), h: Hours(1), d: Days(1) } as const;
const MAX_SPAN = Days(366);

function parseSpan(text: string): Milliseconds {
  const [, count = '', unit = ''] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? [];
  const span = Number(count) * (UNITS[unit as keyof typeof UNITS] ?? 0);
  if (span > 0 && span <= MAX_SPAN) return span;
  throw new InvalidArgumentError('Expected a time up to 366d, such as 30m, 1h or 7d.');
}
