// A month of a hundred simulated locks, and all built-in scenarios, give a firmware certificate in which every row
// passes (protocol.md §3). If a trace lacks the pings of a function, the function's rows do not pass. "World" events in
// a trace say what truly happened around a lock; without them the row of true positions is not seen.
import t from 'tap';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { Minutes } from '../../proto/clock.js';
import { certificateOf, rowsWith, scenarioLines } from '../helpers/sim/certified-run.js';
import { eachLine } from '../helpers/sim/each-line.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';

t.setTimeout(Minutes(10));

/** The trace of a month of a hundred locks, as lines. */
function monthOfLocks(hasWorldEvents: boolean): string[] {
  const lines: string[] = [];
  const options = { seed: 'month', locks: 100, days: 30, startMs: RUN_STARTS_MS, note: '', hasWorldEvents };
  const trace = new VirtualTrace(
    options,
    eachLine((line) => lines.push(line)),
  );
  trace.advance(trace.endMs);
  return lines;
}

for (const hasWorldEvents of [true, false]) {
  t.test(
    `a month of a hundred locks and all scenarios, ${hasWorldEvents ? 'with' : 'without'} world events`,
    async (t) => {
      // `undefined`: no bugs besides those of the scenarios themselves.
      const scenarios = await scenarioLines(undefined, hasWorldEvents);
      const traces = [monthOfLocks(hasWorldEvents), ...scenarios].map((lines, index) => ({ file: `${index}`, lines }));
      // The firmware version that simulated locks report.
      const certificate = certificateOf(traces, '2.4.1');
      t.same(rowsWith(certificate, 'FAIL'), []);
      t.same(rowsWith(certificate, 'NOT SEEN'), hasWorldEvents ? [] : ['position-true']);
      const withoutTheft = traces.map(({ file, lines }) => ({
        file,
        lines: lines.filter((line) => !line.includes('"reason":"REASON_THEFT"')),
      }));
      const passed = rowsWith(certificateOf(withoutTheft), 'PASS');
      t.same(
        passed.filter((row) => row.startsWith('theft-')),
        [],
      );
      t.comment(`${certificate.pings} pings of ${certificate.locks} locks`);
    },
  );
}
