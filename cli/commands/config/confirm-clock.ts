/** `lockgate config confirm-clock`: confirms the system clock after a jump. */
import { describeSpan } from '../../../proto/power/judge/words.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { print, printJson } from '../../terminal/output.js';

/** The flags of `lockgate config confirm-clock`. */
export type ConfirmFlags = ConnectionFlags & { readonly json?: boolean; readonly dryRun?: boolean };

/** The system clock, as the operator interface reports it. */
interface ClockJson {
  /** How the machine's clock compares with the last trusted time. */
  readonly state: 'agrees' | 'ahead' | 'behind';
  /** RFC 3339; null outside the years 1970–9999, which such a date can't have. */
  readonly machine: string | null;
  /** The last trusted time; null as for `machine`. */
  readonly confirmed: string | null;
  /** How many locks have sent fresh pings whose times agree with the machine's clock. */
  readonly locks_agreeing: number;
  /** How many must do so to confirm the clock without a person; null if no lock can. */
  readonly locks_needed: number | null;
}

/** The answer of `GET /clock`: also the run's clock, which is not confirmed. */
interface ShownClockJson extends ClockJson {
  readonly run_clock: string;
  /** How many seconds of the run's clock pass in a second: 1, or more in a demonstration. */
  readonly run_speed: number;
}

/** The result of the command. */
interface Confirmed {
  readonly confirmed: boolean;
  readonly before: ClockJson;
  readonly clock: ClockJson;
}

/** Confirms the clock, or with --dry-run only shows it. @throws LockgateError as {@link GatewayClient.post} */
export async function confirmClock(flags: ConfirmFlags): Promise<void> {
  const client = new GatewayClient(flags);
  const isDry = flags.dryRun === true;
  const answer = isDry ? await readClock(client) : await client.post<Confirmed>('/clock/confirm', {});
  if (flags.json === true) return printJson(answer);
  printClock(answer.before);
  if (answer.before.state === 'agrees') return print('The clock is trusted: there is nothing to confirm.');
  if (isDry) return print('Nothing was changed. To confirm the clock, omit --dry-run.');
  print('Confirmed: the clock is trusted from now on; expired history is deleted and ended months are closed.');
}

async function readClock(client: GatewayClient): Promise<Confirmed> {
  const { run_clock: _run, run_speed: _speed, ...clock } = await client.get<ShownClockJson>('/clock');
  return { confirmed: false, before: clock, clock };
}

function printClock({ state, machine, confirmed, locks_agreeing: agreeing, locks_needed: needed }: ClockJson): void {
  print(`System clock        ${machine ?? 'a time outside the years 1970–9999'}`);
  if (state === 'agrees') return;
  const difference = describeSpan(Date.parse(machine ?? '') - Date.parse(confirmed ?? ''));
  print(`Last trusted time   ${confirmed}${machine === null ? '' : ` (the system clock is ${difference} ${state})`}`);
  const locks = needed === null ? 'no lock can confirm it' : `${needed} confirm it`;
  print(`Locks that agree    ${agreeing}; ${locks}`);
}
