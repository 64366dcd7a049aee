// A fleet-month with all scenarios has a certificate without FAIL, in which only a world is missing (protocol.md §3).
// With a function left out, a row says so.
import t from 'tap';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { Minutes } from '../../proto/clock.js';
import { certificateOf, rowsWith, scenarioLines } from '../helpers/sim/certified-run.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';

t.setTimeout(Minutes(10));

function fleetMonth(): string[] {
  const lines: string[] = [];
  const options = { seed: 'month', locks: 100, days: 30, startMs: RUN_STARTS_MS, note: '', world: true };
  const trace = new VirtualTrace(options, (line) => lines.push(line));
  trace.advance(trace.endMs);
  return lines;
}

t.test('a month of a hundred locks and all scenarios have every row but the one of the world', async (t) => {
  const traces = [fleetMonth(), ...(await scenarioLines())].map((lines, index) => ({ file: `${index}`, lines }));
  const certificate = certificateOf(traces, '2.4.1');
  t.same(rowsWith(certificate, 'FAIL'), []);
  t.same(rowsWith(certificate, 'NOT SEEN'), ['position-true']);
  const withoutTheft = traces.map(({ file, lines }) => ({
    file,
    lines: lines.filter((line) => !line.includes('"reason":"REASON_THEFT"')),
  }));
  t.ok(rowsWith(certificateOf(withoutTheft), 'NOT SEEN').filter((row) => row.startsWith('theft-')).length >= 8);
  t.comment(`${certificate.pings} pings of ${certificate.locks} locks`);
});
