// A fleet-month with all scenarios has a certificate in which every row passes (protocol.md §3). With a function left
// out, rows say so: by what the world called for, or without a world as not seen.
import t from 'tap';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { Minutes } from '../../proto/clock.js';
import { certificateOf, rowsWith, scenarioLines } from '../helpers/sim/certified-run.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';

t.setTimeout(Minutes(10));

function fleetMonth(world: boolean): string[] {
  const lines: string[] = [];
  const options = { seed: 'month', locks: 100, days: 30, startMs: RUN_STARTS_MS, note: '', world };
  const trace = new VirtualTrace(options, (line) => lines.push(line));
  trace.advance(trace.endMs);
  return lines;
}

for (const world of [true, false]) {
  t.test(
    `a month of a hundred locks and all scenarios, ${world ? 'with' : 'without'} events of the world`,
    async (t) => {
      const scenarios = await scenarioLines(undefined, world);
      const traces = [fleetMonth(world), ...scenarios].map((lines, index) => ({ file: `${index}`, lines }));
      const certificate = certificateOf(traces, '2.4.1');
      t.same(rowsWith(certificate, 'FAIL'), []);
      t.same(rowsWith(certificate, 'NOT SEEN'), world ? [] : ['position-true']);
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
