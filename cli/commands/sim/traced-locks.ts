/** `lockgate sim run --from-trace`: reads the locks of a trace, and compares their simulated pings with the trace. */

import { locksFromTrace, type TracedLock } from '../../../firmware-sim/inference/from-trace.js';
import { LockTraceReader, type LockTraces } from '../../../firmware-sim/inference/lock-trace.js';
import {
  countReasons,
  type FirstDifference,
  firstDifference,
} from '../../../firmware-sim/inference/ping-comparison.js';
import type { CommandReplay } from '../../../firmware-sim/inference/switches.js';
import { LockgateError } from '../../../proto/errors.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { isPingUplink, type PingUplink, type Uplink } from '../../../proto/wire/ping.js';
import { formatDate, isDatable } from '../../../proto/wire/ping-json.js';
import { paint, print } from '../../terminal/output.js';
import { printTable } from '../../terminal/table.js';
import { readTraceFile } from '../trace/trace-file.js';
import { plural } from './summary.js';

/** The maximum number of locks whose first difference is printed; the remaining locks are counted. */
const MAX_PRINTED_DIFFERENCES = 10;

/**
 * Reads the locks of a trace.
 *
 * @throws LockgateError `input-trace` (with file and line), `input-file` if the file can't be read
 */
export async function readLockTraces(file: string): Promise<LockTraces> {
  let reader: LockTraceReader | undefined;
  // Adds file and line to the errors of `act`.
  const addingPosition = <T>(line: number | null, act: () => T): T => {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      const name = file === '-' ? 'standard input' : file;
      throw new LockgateError(error.code, `${name}${line === null ? '' : `:${line}`}: ${error.message}`);
    }
  };
  await readTraceFile(file, {
    header: (header) => {
      reader = new LockTraceReader(header);
    },
    event: (event, line) => addingPosition(line, () => reader?.add(event)),
  });
  // The header has been read: a file without one is refused above.
  return addingPosition(null, () => (reader as LockTraceReader).end());
}

/** The locks of a trace, to be simulated, and the pings that the simulated locks have made. */
export class TracedLocks {
  readonly locks: readonly TracedLock[];
  readonly #simulatedPings = new Map<Mac, PingUplink[]>();

  /**
   * @param commandReplay whether the simulated locks receive the recorded commands again (`sent`), or the commands'
   *   effects happen at the lock (`done-by-hand`)
   * @param shiftMs what is added to all times of the trace
   */
  constructor(traces: LockTraces, commandReplay: CommandReplay, shiftMs = 0) {
    this.locks = locksFromTrace(traces, { commandReplay, shiftMs });
    for (const { mac } of this.locks) this.#simulatedPings.set(mac, []);
  }

  /** Collects an uplink (a message of a lock) that a simulated lock has made. */
  readonly addSimulated = (mac: Mac, uplink: Uplink): void => {
    if (isPingUplink(uplink)) this.#simulatedPings.get(mac)?.push(uplink);
  };

  /** Compares the collected pings with the trace, by lock and by reason. */
  compare(): TracedComparison {
    const simulated = [...this.#simulatedPings.values()].flat();
    const recorded = this.locks.flatMap(({ pings }) => pings);
    const differing = this.locks.flatMap(({ mac, pings }) => {
      const difference = firstDifference(pings, this.#simulatedPings.get(mac) ?? []);
      return difference === null ? [] : [{ mac, difference }];
    });
    const counts = { trace: recorded.length, simulated: simulated.length };
    return { locks: this.locks.length, counts, reasons: countReasons(recorded, simulated), differing };
  }
}

/** The result of {@link TracedLocks.compare}. */
export interface TracedComparison {
  /** The number of locks. */
  readonly locks: number;
  /** The numbers of pings in the trace and of the simulated locks. */
  readonly counts: { readonly trace: number; readonly simulated: number };
  readonly reasons: ReturnType<typeof countReasons>;
  readonly differing: readonly { readonly mac: Mac; readonly difference: FirstDifference }[];
}

/** Prints the comparison: counts by reason, and each lock's first difference. */
export function printComparison({ locks, counts, reasons, differing }: TracedComparison): void {
  printTable(
    [...reasons, { reason: 'all', ...counts }],
    [
      { title: 'REASON', show: ({ reason }) => reason },
      { title: 'TRACE', show: ({ trace }) => String(trace) },
      { title: 'SIMULATED', show: ({ simulated }) => String(simulated) },
      { title: 'DIFFERENCE', show: ({ trace, simulated }) => signed(simulated - trace), optional: true },
    ],
  );
  if (differing.length === 0) {
    print(paint('green', `The same pings in the same order, for ${plural(locks, 'lock')}.`));
    return;
  }
  print(paint('yellow', `${plural(differing.length, 'lock')} of ${locks} differ from the trace, first at:`));
  for (const { mac, difference } of differing.slice(0, MAX_PRINTED_DIFFERENCES)) {
    print(`  ${formatMac(mac)} ping ${difference.index + 1}`);
    print(`    trace      ${pingText(difference.trace)}`);
    print(`    simulated  ${pingText(difference.simulated)}`);
  }
  if (differing.length > MAX_PRINTED_DIFFERENCES) print(`  and ${differing.length - MAX_PRINTED_DIFFERENCES} more`);
}

/** The comparison for `--json`. */
export function comparisonToJson({ counts, reasons, differing }: TracedComparison): object {
  return {
    same: differing.length === 0,
    pings: counts,
    reasons,
    first_differences: differing.map(({ mac, difference: { index, trace, simulated } }) => {
      return { mac: formatMac(mac), ping: index + 1, trace: pingToJson(trace), simulated: pingToJson(simulated) };
    }),
  };
}

/** A number with its sign; nothing for zero. */
function signed(count: number): string {
  return count === 0 ? '' : count > 0 ? `+${count}` : String(count);
}

function pingText(uplink: PingUplink | undefined): string {
  if (uplink === undefined) return 'no more pings';
  const { kind, reason, lockState, batteryPercent } = uplink.body;
  return `${dateOf(uplink) ?? uplink.timeMs} ${kind} ${reason} ${lockState} ${batteryPercent}%`;
}

function pingToJson(uplink: PingUplink | undefined): object | null {
  if (uplink === undefined) return null;
  const { kind, reason, lockState, batteryPercent } = uplink.body;
  const { boot, sequence } = uplink;
  const contents = { ping_type: kind, reason, lock_state: lockState, battery_percent: batteryPercent };
  return { date: dateOf(uplink), ...contents, boot, sequence };
}

function dateOf({ timeMs }: PingUplink): string | null {
  return isDatable(timeMs) ? formatDate(timeMs) : null;
}
