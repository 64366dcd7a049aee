/**
 * The gateway's clocks, for ages and spans. Times in the gateway's answers come from its clocks, never from the clock
 * of the machine that runs this program: that one may be wrong, and in a demonstration the gateway's clock is faster.
 * Every command that compares a time of the gateway with the present reads the present here.
 */
import { readFutureTime, readPastTime } from './terminal/time-text.js';

/** The present by each of the gateway's clocks, ms since the epoch. */
export interface GatewayClocks {
  /**
   * The run's clock, by which the gateway judges locks, and which a demonstration speeds up: for times at which uplinks
   * were received, the presence of locks (online, asleep, late), commands, and reasons why the gateway is not ready.
   */
  readonly runMs: number;
  /** For credentials, users, merchants, notices and the audit log. */
  readonly dateMs: number;
  /** For attempts of webhooks, and the gateway's start. */
  readonly machineMs: number;
}

/** The client of the operators' interface. */
interface ClockSource {
  get<T>(requestPath: string, signal?: AbortSignal): Promise<T>;
}

/**
 * The members of the gateway's answer that are read here: the times of its run's clock and of its machine's clock, and
 * the date that it trusts (`confirmed`) even if someone sets the machine's clock wrong. A time outside the years
 * 1970–9999 is null.
 */
interface ClocksJson {
  readonly run_clock: string;
  readonly machine: string | null;
  readonly confirmed: string | null;
}

/** Reads the gateway's clocks. @throws LockgateError if the gateway can't be reached or refuses */
export async function readClocks(client: ClockSource, signal?: AbortSignal): Promise<GatewayClocks> {
  const { run_clock: run, machine, confirmed } = await client.get<ClocksJson>('/clock', signal);
  const runMs = Date.parse(run);
  const machineMs = machine === null ? runMs : Date.parse(machine);
  return { runMs, machineMs, dateMs: confirmed === null ? machineMs : Date.parse(confirmed) };
}

/**
 * Parses the flag of an expiry; a span counts from the gateway's date.
 *
 * @returns RFC 3339; undefined without the flag
 * @throws LockgateError as {@link readFutureTime} and {@link readClocks}
 */
export async function readExpiry(client: ClockSource, text: string | undefined): Promise<string | undefined> {
  if (text === undefined) return undefined;
  return await readFutureTime('--expires', text, async () => (await readClocks(client)).dateMs);
}

/**
 * Parses the flag of a past time; a span counts back from the present by this clock.
 *
 * @returns RFC 3339; undefined without the flag
 * @throws LockgateError as {@link readPastTime} and {@link readClocks}
 */
export async function readSince(
  client: ClockSource,
  [flag, text]: readonly [flag: string, text: string | undefined],
  clock: keyof GatewayClocks,
): Promise<string | undefined> {
  if (text === undefined) return undefined;
  return await readPastTime(flag, text, async () => (await readClocks(client))[clock]);
}
