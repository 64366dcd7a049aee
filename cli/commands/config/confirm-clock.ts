/** `lockgate config confirm-clock`: an operator says that the machine's clock, which leapt, is right. */
import { describeSpan } from '../../../proto/power/judge/words.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { print, printJson } from '../../terminal/output.js';

export type ConfirmFlags = ConnectionFlags & { readonly json?: boolean; readonly dryRun?: boolean };

/** How the machine's clock stands, as the operator's interface answers it. */
interface ClockJson {
  readonly state: 'agrees' | 'ahead' | 'behind';
  readonly machine: string | null;
  readonly confirmed: string | null;
  readonly locks_agreeing: number;
  readonly locks_needed: number | null;
}

interface Confirmed {
  readonly confirmed: boolean;
  readonly before: ClockJson;
  readonly clock: ClockJson;
}

/** @throws LockgateError `gateway-…` where the gateway can't be asked */
export async function confirmClock(flags: ConfirmFlags): Promise<void> {
  const client = new GatewayClient(flags);
  const isDry = flags.dryRun === true;
  const answer = isDry ? await look(client) : await client.post<Confirmed>('/clock/confirm', {});
  if (flags.json === true) return printJson(answer);
  printClock(answer.before);
  if (answer.before.state === 'agrees') return print('It is believed: there is nothing to confirm.');
  if (isDry) return print('Nothing was changed. Without --dry-run it is confirmed.');
  print('Confirmed: it is believed from now on, and what is over or too old by it goes.');
}

async function look(client: GatewayClient): Promise<Confirmed> {
  const clock = await client.get<ClockJson>('/clock');
  return { confirmed: false, before: clock, clock };
}

function printClock({ state, machine, confirmed, locks_agreeing: agreeing, locks_needed: needed }: ClockJson): void {
  print(`The machine's clock says  ${machine ?? 'a time outside the years 1970–9999'}`);
  if (state === 'agrees') return;
  const away = describeSpan(Date.parse(machine ?? '') - Date.parse(confirmed ?? ''));
  print(`The time last noted is    ${confirmed}${machine === null ? '' : `: the machine's is ${away} ${state}`}`);
  const locks = needed === null ? 'there are none that could' : `${needed} would confirm it`;
  print(`Locks that agree with it  ${agreeing}; ${locks}`);
}
