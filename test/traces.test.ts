// Every rule of protocol.md §3 on hand-written traces: those that break it and nothing else, and those that come as
// close as they can without. What each must find stands in traces/expected.jsonl, written from the specification.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { POWER_MODEL } from '../proto/power-model.js';
import { RULES } from '../proto/rules.js';
import { TraceCheck } from '../proto/trace-check.js';
import { TraceReader } from '../proto/trace-reader.js';
import { root } from './helpers/our-files.js';

const folder = join(root, 'test/traces');
const linesOf = (file: string): string[] => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n');
const names = readdirSync(folder).filter((name) => /\.(breaks|holds)-\d+\.jsonl$/.test(name));
const expected = linesOf('expected.jsonl').map(
  (line) => JSON.parse(line) as { file: string; line: number; mac: string; rule: string },
);

function findingsOf(file: string): { line: number; mac: string; rule: string }[] {
  const reader = new TraceReader();
  let check: TraceCheck | null = null;
  for (const line of linesOf(file)) {
    const read = reader.read(line);
    if (!read.ok) throw new Error(`${file}:${read.error.line}: ${read.error.message}`);
    check ??= reader.header === null ? null : new TraceCheck(POWER_MODEL, reader.header);
    if (read.value !== null) check?.judge(read.value, reader.line);
  }
  return (check?.findings() ?? []).map(({ line, mac, rule }) => ({ line, mac, rule }));
}

t.test('each rule has traces that break it and traces that hold', async (t) => {
  for (const { rule } of RULES) {
    for (const kind of ['breaks', 'holds']) {
      const count = names.filter((name) => name.startsWith(`${rule}.${kind}-`)).length;
      t.ok(count >= 2, `${rule}.${kind}: ${count}`);
    }
  }
  const rules = RULES.map((row) => row.rule as string);
  t.same(
    [...new Set(names.map((name) => name.split('.')[0]))].filter((name) => !rules.includes(name ?? '')),
    [],
  );
  t.same(
    expected.filter((row) => !names.includes(row.file)),
    [],
    'no expectation is without its trace',
  );
  t.same(
    expected.filter((row) => !row.file.startsWith(`${row.rule}.breaks-`)),
    [],
    'a trace breaks the rule of its name and nothing else',
  );
});

for (const name of names) {
  t.test(name, async (t) => {
    const rows = expected.filter((row) => row.file === name).map(({ line, mac, rule }) => ({ line, mac, rule }));
    t.equal(rows.length > 0, name.includes('.breaks-'));
    t.same(findingsOf(name), rows);
  });
}
