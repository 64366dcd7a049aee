/** The flags and help of `lockgate sim shadow`. Its code is loaded when it is called. */
import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../../proto/clock.js';
import { untilInterrupted } from '../../../terminal/interrupt.js';
import { addClientFlags } from '../../../terminal/shared-flags.js';
import type { ShadowFlags } from './flags.js';

const HELP = `
From the lock’s own uplinks its world is inferred: when it was unlocked, moved, charged or out of coverage. A simulated
lock of the protocol’s model, with the same settings, MAC and clock, lives in that world. Each difference is printed as
it becomes certain: an uplink that the model would not send, and one that the model owes. A difference that a later
uplink explains, such as one that waited in the lock, is withdrawn. The real lock may have any firmware: seconds more or
less for a fix, or another minute for the daily ping, are no difference.

A lock that is connected at the start is followed from its next connection. What the lock does not report at all, such
as a theft without any ping, the shadow cannot know either. A lock that owes something but has not been in touch for
30 min may be out of coverage; the line says so.

--for is in the gateway’s time, which may be sped up. The operator’s token must be allowed to record traces.

Exit codes: 0 no difference, 1 differences, 2 the command line is wrong, 3 the gateway can’t be reached or refuses.

Example:
  $ lockgate sim shadow A4:C1:38:F0:E1:D2
  $ lockgate sim shadow A4:C1:38:F0:E1:D2 --for 24h --json`;

/** Adds the command to the group. */
export function addSimShadow(sim: Command): void {
  addClientFlags(
    sim.command('shadow').description('Let a simulated lock live beside a real one, and print their differences.'),
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
