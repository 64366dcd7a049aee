// A violation in a month of a fleet, over 100,000 lines, is shrunk to under 15 lines (interfaces.md §4). The search
// ends after a limited number of judged events (proto/trace/shrink/shrink.ts), which bounds its time; a comment has the
// time.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { shrinkTrace } from '../../../cli/commands/trace/shrink/shrinker.js';
import { readTraceFile } from '../../../cli/commands/trace/trace-file.js';
import { LineSink } from '../../../cli/terminal/line-sink.js';
import { rulesOf } from '../../../firmware-sim/faults/bug.js';
import { BUGS } from '../../../firmware-sim/faults/bugs.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Minutes, monotonicMs, Seconds } from '../../../proto/clock.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import { eachLine } from '../../helpers/sim/each-line.js';

t.setTimeout(Minutes(10));

const folder = mkdtempSync(join(tmpdir(), 'lockgate-shrink-test-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

/** The findings of a trace. */
async function findingsOf(file: string): Promise<TraceFinding[]> {
  let check: TraceCheck | undefined;
  await readTraceFile(file, {
    header: (header) => {
      check = new TraceCheck(POWER_MODEL, header);
    },
    event: (event, line) => check?.judge(event, line),
  });
  return check?.findings() ?? [];
}

// Bugs of firmware, each of which breaks a rule.
for (const name of ['period-every-6h', 'state-ping-in-rides', 'sequence-skips', 'flash-wiped', 'held-for-ever']) {
  t.test(`${name} in a fleet-month`, async (t) => {
    const bug = BUGS.find((candidate) => candidate.name === name);
    if (bug === undefined) throw new Error(`there is no bug ${name}`);
    const file = join(folder, `${name}.jsonl`);
    const sink = new LineSink(file);
    let lines = 0;
    const bugs = [{ bug, locks: 2 }];
    const startMs = Date.UTC(2026, 0, 5);
    const options = { seed: 'month', locks: 110, days: 30, startMs, note: '', hasWorldEvents: false, bugs };
    const run = new VirtualTrace(
      options,
      eachLine((line) => {
        lines += 1;
        sink.write(line);
      }),
    );
    run.advance(run.endMs);
    sink.end();
    t.ok(lines > 100_000, `${lines} lines`);
    const first = (await findingsOf(file)).find(({ rule }) => rulesOf(bug).includes(rule));
    if (first === undefined) throw new Error('no finding');
    const out = join(folder, 'small.jsonl');
    const startedAtMs = monotonicMs();
    await shrinkTrace(file, { rule: first.rule, out });
    const seconds = (monotonicMs() - startedAtMs) / Seconds(1);
    const small = readFileSync(out, 'utf8').trimEnd().split('\n');
    t.ok(small.length < 15, `${small.length} lines`);
    const findingsAfter = await findingsOf(out);
    t.ok(
      findingsAfter.some(({ rule }) => rule === first.rule),
      'the small trace still breaks the rule',
    );
    t.comment(`${name}: ${lines} lines to ${small.length} in ${seconds.toFixed(1)} s`);
  });
}
