/**
 * Reads the hand-written traces (recorded events of a lock) in test/traces, and their expected findings, which follow
 * from the specification. A finding is an objection to the lock, found by a rule.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PowerModel } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { OwedCheck } from '../../../proto/trace/owed/owed-check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { root } from '../house/our-files.js';

/** A finding about a trace, without the sentence that explains it. */
export interface ExpectedFinding {
  readonly line: number;
  readonly mac: string;
  readonly rule: string;
}

const FOLDER = join(root, 'test/traces');

/** The lines of a file in test/traces. */
export const linesOf = (file: string): string[] => readFileSync(join(FOLDER, file), 'utf8').trimEnd().split('\n');

/** The file names of the traces. Each says which rule the lock breaks or holds. */
export const traceNames: readonly string[] = readdirSync(FOLDER).filter((name) =>
  /\.(breaks|holds)-\d+\.jsonl$/.test(name),
);

/** The expected findings of all traces. */
export const expectedFindings = linesOf('expected.jsonl').map(
  (line) => JSON.parse(line) as ExpectedFinding & { readonly file: string },
);

/** The expected findings of a trace. */
export function expectedOf(file: string): ExpectedFinding[] {
  return expectedFindings
    .filter((finding) => finding.file === file)
    .map(({ line, mac, rule }) => ({ line, mac, rule }));
}

/**
 * The findings about a trace under a power model: of the judge, which sees only the messages, and of the `owed` check,
 * which compares the messages with the trace's `world` events (what truly happened).
 */
export function findingsOf(file: string, model: PowerModel): ExpectedFinding[] {
  const reader = new TraceReader();
  let check: TraceCheck | null = null;
  let owed: OwedCheck | null = null;
  for (const line of linesOf(file)) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`${file}:${event.error.line}: ${event.error.message}`);
    check ??= reader.header === null ? null : new TraceCheck(model, reader.header);
    owed ??= reader.header === null ? null : new OwedCheck({ model, header: reader.header, truthName: null });
    if (event.value === null) continue;
    check?.judge(event.value, reader.line);
    owed?.event(event.value, reader.line);
    if (event.value.event === 'world') owed?.world(event.value, reader.line);
  }
  const findings = [...(check?.findings() ?? []), ...(owed?.findings() ?? [])];
  return findings.map(({ line, mac, rule }) => ({ line, mac, rule }));
}
