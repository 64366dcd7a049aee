// Shrinking a trace, as `lockgate trace shrink` does: the result has the same finding, passes the reader, and consists
// of lines of the original. Each hand-written trace that breaks a rule is hidden among other locks and shrunk again.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { groupNeighbours, removeChunks, removePairs } from '../../../proto/trace/shrink/delta-debugging.js';
import { Evidence } from '../../../proto/trace/shrink/evidence.js';
import { Shrinking } from '../../../proto/trace/shrink/shrink.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import { root } from '../../helpers/house/our-files.js';
import { eachLine } from '../../helpers/sim/each-line.js';

/** A shrunk trace is at most this long, or shorter than the hand-written trace. */
const MAX_LINES = 15;

interface Trace {
  readonly header: TraceHeader;
  readonly events: readonly { readonly event: TraceEvent; readonly raw: Uint8Array | null; readonly line: number }[];
}

function read(lines: readonly string[]): Trace {
  const reader = new TraceReader();
  const events: { event: TraceEvent; raw: Uint8Array | null; line: number }[] = [];
  for (const text of lines) {
    const result = reader.read(text);
    if (!result.ok) throw new Error(result.error.message);
    if (result.value !== null) events.push({ event: result.value, raw: reader.raw, line: reader.line });
  }
  if (reader.header === null) throw new Error('the trace has no header');
  return { header: reader.header, events };
}

function findingsOf({ header, events }: Trace): TraceFinding[] {
  const check = new TraceCheck(POWER_MODEL, header);
  for (const { event, line } of events) check.judge(event, line);
  return check.findings();
}

/** Runs a search to its end. */
function resultOf<Value>(run: Generator<void, Value, void>): Value {
  for (let step = run.next(); ; step = run.next()) if (step.done === true) return step.value;
}

/** Shrinks the trace to the lines that one finding needs, and returns these lines. */
function shrink(trace: Trace, { mac, rule, line, message }: TraceFinding): string[] {
  const parsed = parseMac(mac);
  const target = { mac: (parsed.ok ? parsed.value : '') as Mac, rule, line, message };
  const evidence = new Evidence(trace.header, target);
  for (const { event, line: lineNumber, raw } of trace.events) evidence.add(event, lineNumber, raw);
  const lineCount = trace.events.length + 1;
  const shrinking = new Shrinking(evidence.end(lineCount), target);
  if (!resultOf(shrinking.run())) throw new Error('the collected events do not have the finding');
  const { lock, lines } = shrinking.best;
  const header = { note: '', locks: new Map(lock === null ? [] : [[target.mac, lock]]) };
  return [traceHeaderLine(header), ...lines.map(({ event, raw }) => traceEventLine(event, raw ?? undefined))];
}

/** A healthy fleet in the days around a time. */
function healthyFleet(startMs: number): Trace {
  const lines: string[] = [];
  const options = { seed: 'crowd', locks: 4, days: 2, startMs, note: '', hasWorldEvents: true };
  const run = new VirtualTrace(
    options,
    eachLine((line) => lines.push(line)),
  );
  run.advance(run.endMs);
  const { header, events } = read(lines);
  // A start of the gateway would end the connections of the other trace.
  return { header, events: events.filter(({ event }) => event.event !== 'gateway') };
}

/** The events of both traces, in order of time. */
function mergeTraces(first: Trace, second: Trace): Trace {
  const events = [...first.events, ...second.events]
    .map((entry, index) => ({ entry, index }))
    .sort((a, b) => a.entry.event.atMs - b.entry.event.atMs || a.index - b.index)
    // Line 1 is the header.
    .map(({ entry }, index) => ({ ...entry, line: index + 2 }));
  return { header: { note: '', locks: new Map([...first.header.locks, ...second.header.locks]) }, events };
}

t.test('each broken rule is found again in a few lines of the original trace', async (t) => {
  const folder = join(root, 'test/traces');
  // Without the traces of the rule `owed`, which rests on world events: `findingsOf` does not judge it.
  const rules = new Set<string>();
  for (const name of readdirSync(folder).filter((file) => file.includes('.breaks-1.') && !file.startsWith('owed'))) {
    const rule = name.split('.')[0] ?? '';
    const ruleTrace = read(readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'));
    const firstMs = ruleTrace.events[0]?.event.atMs ?? 0;
    // The events of the hand-written trace come first, so that the gateway listens from the same moment as there.
    const trace = mergeTraces(ruleTrace, healthyFleet(firstMs));
    const found = findingsOf(trace).find((finding) => finding.rule === rule);
    if (found === undefined) {
      t.fail(`${name} does not break its rule among other locks`);
      continue;
    }
    rules.add(rule);
    const shrunk = shrink(trace, found);
    const findingsAfter = findingsOf(read(shrunk)).filter((finding) => finding.rule === rule);
    t.equal(findingsAfter[0]?.message, found.message, `${name}: the same finding`);
    t.ok(shrunk.length <= MAX_LINES || shrunk.length < ruleTrace.events.length, `${name}: ${shrunk.length} lines`);
    const original = new Set(trace.events.map(({ event, raw }) => traceEventLine(event, raw ?? undefined)));
    const changedLines = shrunk.slice(1).filter((line) => !original.has(line) && !line.includes('"event":"tick"'));
    t.same(changedLines, [], `${name}: no line is changed`);
  }
  t.ok(rules.size > 30, `${rules.size} rules`);
});

t.test('the search removes what it can, in chunks, in pairs and one by one', async (t) => {
  const numbers = Array.from({ length: 100 }, (_, index) => index);
  const needs = (parts: readonly number[]) => [3, 50, 97].every((number) => parts.includes(number));
  t.same(resultOf(removeChunks(numbers, needs)), [3, 50, 97]);
  // 1 is needed; 2 and 8 can be removed only together.
  const isValid = (parts: readonly number[]) => parts.includes(1) && parts.includes(2) === parts.includes(8);
  t.same(resultOf(removePairs([1, 2, 8], isValid)), [1], 'a pair is removed together, as a connect and its disconnect');
  t.same(
    groupNeighbours([1, 2, 11, 3], (number) => Math.floor(number / 10)),
    [[1, 2], [11], [3]],
  );
});
