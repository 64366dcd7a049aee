// Firmware that lacks one function is distinguished from healthy firmware (protocol.md §3): by a rule of the judge, by
// a row of the certificate (one requirement), or by the rule `owed` if the trace has `world` events, which say what
// truly happened. The week of the healthy fleet has no findings, with and without these events. Each faulty fleet
// (mutant) is made twice: from the lines of the healthy trace, and by simulated locks with that bug.
// test/long/sizes/function-mutants.test.ts runs more weeks.
import t, { type Test } from 'tap';
import { parseMix } from '../../../firmware-sim/fleet/mix.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { Certificate } from '../../../proto/trace/certificate/certificate.js';
import { certificateRows, rowsNamed } from '../../../proto/trace/certificate/rows.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { certificateOf, rowsWith } from '../../helpers/sim/certified-run.js';
import { FUNCTION_MUTANTS, type FunctionMutant } from '../../helpers/sim/function-mutants.js';
import { findingsIn, traceOf } from '../../helpers/sim/judged-run.js';

t.setTimeout(quickOrLong(120_000, 1_200_000));

interface Week {
  readonly seed: string;
  readonly locks: number;
  /** How much happens to the locks: what a usual day brings, or so much that rare situations occur within a week. */
  readonly pace: 'everyday' | 'lively';
}

const WEEKS: readonly Week[] = quickOrLong<Week[]>(
  [{ seed: 'week', locks: 10, pace: 'everyday' }],
  [
    ...['1', '2', '3', '4'].map((seed): Week => ({ seed, locks: 60, pace: 'everyday' })),
    ...['1', '2'].map((seed): Week => ({ seed, locks: 10, pace: 'lively' })),
  ],
);
/** The simulator's own mutants take longer: few of them are in the quick test. */
const BUGS_OF_WEEK = quickOrLong(
  ['no theft pings', 'swapped coordinates'],
  FUNCTION_MUTANTS.map(({ name }) => name),
);

const MIX = parseMix('mid=40,mid+ride=30,high=20,recovery=10');
const ROWS = certificateRows(POWER_MODEL);

const isWorld = (line: string): boolean => line.includes('"event":"world"');

/** What can show a fault of a fleet. */
interface Evaluation {
  /** The rules that the judge finds broken. The judge reads messages, never world events. */
  readonly rules: ReadonlySet<string>;
  readonly violations: ReadonlySet<string>;
  readonly certificate: Certificate;
  readonly withWorld: Certificate;
  /** The sentences of `owed` that the certificate quotes. */
  readonly owed: readonly string[];
}

/** @param lines of a trace; an empty line stands for one that the mutant does not send */
function evaluate(lines: readonly string[]): Evaluation {
  const withWorldLines = lines.filter((line) => line !== '');
  const withoutWorldLines = withWorldLines.filter((line) => !isWorld(line));
  const findings = findingsIn(withoutWorldLines);
  const withWorld = certificateOf([{ file: 'week.jsonl', lines: withWorldLines }]);
  const quoted = withWorld.rows.flatMap(({ firstFailures }) => firstFailures);
  return {
    rules: new Set(findings.map(({ rule }) => rule)),
    violations: new Set(findings.filter(({ severity }) => severity === 'violation').map(({ rule }) => rule)),
    certificate: certificateOf([{ file: 'week.jsonl', lines: withoutWorldLines }]),
    withWorld,
    owed: quoted.filter(({ rule }) => rule === 'owed').map(({ message }) => message),
  };
}

/** Whether the row passes, in some state. */
function isPassed(name: string, certificate: Certificate): boolean {
  const ids = rowsNamed(ROWS, name).map(({ row }) => row);
  return rowsWith(certificate, 'PASS').some((row) => ids.includes(row));
}

/** Checks that rule, row and `owed` show the mutant, and that the healthy fleet passes. */
function compare(t: Test, { rule, row, owed }: FunctionMutant, healthy: Evaluation, mutant: Evaluation): void {
  if (rule !== null) t.ok(mutant.rules.has(rule) && !healthy.rules.has(rule), `${rule} is broken`);
  t.ok(isPassed(row, healthy.withWorld), `${row} passes in the healthy week`);
  // Only `world` events show whether a position is true.
  if (row !== 'position-true') {
    t.ok(isPassed(row, healthy.certificate), `${row} passes in the healthy week, without a world`);
    t.notOk(isPassed(row, mutant.certificate), `${row} does not pass, without a world`);
  }
  t.notOk(isPassed(row, mutant.withWorld), `${row} does not pass`);
  if (owed !== null) {
    t.ok(mutant.owed.length > 0, 'something is owed');
    t.ok(
      mutant.owed.some((message) => owed.test(message)),
      `${owed} is owed`,
    );
  }
}

for (const { seed, locks, pace } of WEEKS) {
  const options = { seed, locks, days: 7, pace, mix: MIX, hasWorldEvents: true };
  t.test(`${locks} ${pace} locks, seed ${seed}`, async (t) => {
    const lines = traceOf(options);
    const healthy = evaluate(lines);
    t.same([...healthy.violations], []);
    t.same(healthy.owed, []);
    t.same(rowsWith(healthy.certificate, 'FAIL'), []);
    t.same(rowsWith(healthy.withWorld, 'FAIL'), []);
    for (const mutant of FUNCTION_MUTANTS) {
      t.test(mutant.name, async (t) => compare(t, mutant, healthy, evaluate(mutant.mutate(lines))));
      if (!BUGS_OF_WEEK.includes(mutant.name)) continue;
      // `locks: null` gives the bug to all locks.
      const bugs = [{ bug: mutant.bug, locks: null }];
      t.test(`${mutant.name}, by ${mutant.bug.name}`, async (t) =>
        compare(t, mutant, healthy, evaluate(traceOf({ ...options, bugs }))),
      );
    }
  });
}
