/**
 * The bench's row `trace-check`: how fast `lockgate trace check` is on one core. Compared with only parsing the same
 * lines with JSON.parse (quality.md §1).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { checkFile } from '../../../cli/commands/trace/check/file-check.js';
import { fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import { runVirtual } from '../../../firmware-sim/fleet/virtual-run.js';
import { UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { type CommandAck, isPingUplink, type Uplink } from '../../../proto/wire/ping.js';
import { elapsedSeconds, measureRates, roundCount } from '../measure.js';
import { withResources } from '../resources.js';
import { atLeast, type BenchOptions, type BenchRow, ratioTo } from '../row.js';

const SEED = 'bench';
const LOCKS = 200;
const DAYS = 14;
/** Node.js has compiled the judge for the last time after some 300,000 pings; JSON.parse needs no compiling. */
const WARM_UPS = 5;
const START_MS = Date.UTC(2026, 10, 20);

/** Runs the comparison on a trace that the simulator makes. */
export function benchTraceCheck({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const file = path.join(resources.makeFolder(), 'bench.jsonl');
    writeFileSync(file, makeTrace());
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    const { pings } = await checkFile(file, { ignore: [] });
    const check = async (): Promise<number> => (await checkFile(file, { ignore: [] })).pings;
    // Also gives the number of pings, so that both rates are in pings per second.
    const parse = (): number => {
      for (const line of lines) JSON.parse(line);
      return pings;
    };
    const [checkRates, parseRates] = await measureRates(
      [check, parse],
      elapsedSeconds,
      roundCount(quick),
      quick ? 1 : WARM_UPS,
    );
    if (checkRates === undefined || parseRates === undefined) throw new Error('nothing was measured');
    const [floor, aim] = [atLeast(0.6), atLeast(0.7)];
    return {
      name: 'trace-check',
      title: 'trace check',
      unit: 'pings/s of one core',
      rates: checkRates,
      against: [ratioTo('JSON.parse of the same lines', checkRates, parseRates, { floor, aim })],
      details: [],
    };
  });
}

/** The trace of a fleet in the simulator, as text. */
function makeTrace(): string {
  const locks = new Map(fleetMacs(SEED, LOCKS).map((mac) => [mac, UNNAMED_LOCK]));
  const lines = [traceHeaderLine({ note: '', locks })];
  runVirtual({
    seed: SEED,
    locks: LOCKS,
    days: DAYS,
    startMs: START_MS,
    sink: {
      connect: (mac, atMs) => lines.push(traceEventLine({ event: 'connect', atMs, mac, source: 'lock' })),
      disconnect: (mac, atMs, cause) => {
        lines.push(traceEventLine({ event: 'disconnect', atMs, mac, source: 'lock', cause }));
      },
      uplink: (mac, atMs, uplink) => {
        if (isPingUplink(uplink)) lines.push(traceEventLine({ event: 'ping', atMs, mac, source: 'lock', uplink }));
        else {
          // What is not a ping is an acknowledgement, but the test above does not narrow the type of the whole uplink.
          const ack = uplink as Uplink<CommandAck>;
          lines.push(traceEventLine({ event: 'ack', atMs, mac, source: 'lock', uplink: ack }));
        }
      },
    },
  });
  return `${lines.join('\n')}\n`;
}
