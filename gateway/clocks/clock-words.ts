/** Sentences for people about a clock that leapt. Pure. */
import { describeSpan } from '../../proto/power/judge/words.js';
import { isDatable, toDate } from '../../proto/wire/ping-json.js';
import type { ClockAuthority, ClockReading } from './clock-guard.js';

/** How the machine's clock compares, and what follows from that, as one sentence. */
export function clockText({ state, machineMs, confirmedMs, needed }: ClockReading): string {
  if (state === 'agrees') return `the machine’s clock says ${dateText(machineMs)}, and is believed`;
  const by = `${describeSpan(machineMs - confirmedMs)} ${state === 'ahead' ? 'ahead of' : 'behind'}`;
  const locks = needed === null ? 'locks' : needed === 1 ? '1 lock' : `${needed} locks`;
  const until = `until fresh pings of ${locks} agree with it, or "lockgate config confirm-clock" says that it is right`;
  const meanwhile =
    state === 'ahead'
      ? 'nothing is deleted for its age, no month is closed and nothing expires by it'
      : 'what expires, and receipts, go on by the later time';
  return (
    `the machine’s clock says ${dateText(machineMs)}, ${by} what was last noted (${dateText(confirmedMs)}): ` +
    `${meanwhile}, ${until}`
  );
}

/** Why it is trusted again. */
export function believedText(by: ClockAuthority): string {
  if (by === 'locks') return 'fresh pings of locks agree with it';
  return by === 'operator' ? 'an operator confirmed it' : 'it came back to the time that was noted';
}

function dateText(timeMs: number): string {
  return isDatable(timeMs) ? toDate(timeMs) : `${timeMs} ms after 1970`;
}
