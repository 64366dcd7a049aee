/** Makes sentences for people about a machine clock that jumped. Pure. */
import { describeSpan } from '../../proto/power/judge/words.js';
import { formatDate, isDatable } from '../../proto/wire/ping-json.js';
import type { ClockAuthority, ClockReading } from './clock-guard.js';

/** One sentence: how the machine's clock compares with the confirmed one, and the consequences. */
export function clockText({ state, machineMs, confirmedMs, needed }: ClockReading): string {
  if (state === 'agrees') return `the machine’s clock shows ${dateText(machineMs)}, and is trusted`;
  const by = `${describeSpan(machineMs - confirmedMs)} ${state === 'ahead' ? 'ahead of' : 'behind'}`;
  const locks = needed === null ? 'locks' : needed === 1 ? '1 lock' : `${needed} locks`;
  const until = `until fresh pings of ${locks} agree with it, or "lockgate config confirm-clock" confirms it`;
  const meanwhile =
    state === 'ahead'
      ? 'nothing is deleted for its age, no month is closed and nothing expires by it'
      : 'expiry and times of receipt continue from the later time';
  return (
    `the machine’s clock shows ${dateText(machineMs)}, ${by} the last recorded time (${dateText(confirmedMs)}): ` +
    `${meanwhile}, ${until}`
  );
}

/** Why the machine's clock is trusted again. */
export function trustedText(by: ClockAuthority): string {
  if (by === 'locks') return 'fresh pings of locks agree with it';
  return by === 'operator' ? 'an operator confirmed it' : 'it returned to the recorded time';
}

function dateText(timeMs: number): string {
  return isDatable(timeMs) ? formatDate(timeMs) : `${timeMs} ms after 1970`;
}
