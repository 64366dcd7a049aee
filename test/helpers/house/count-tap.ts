// Counts passed, failed and skipped assertions of a test run, from the TAP output of each test file.
//
// The exit status of a file is not enough: it does not say how many assertions there were, and a file without any exits
// with 0. The TAP output is not enough either: a killed process may have written only passing assertions.
import { type FinalResults, Parser, type Result } from 'tap-parser';

/** The counts of one subtest, file or run. `skipped` lists each skipped test with its reason. */
type Tally = { passed: number; failed: number; skipped: string[] };

/** The counts of a run. `notes` has a sentence for each failure that no assertion reported. */
export type Count = Tally & { notes: string[] };

/** A test point (an `ok` or `not ok` line), and the counts of the subtest that it closes; null if it closes none. */
type Point = { result: Result; subtest: Tally | null };

/** The outcome of a test file: its TAP output, and a phrase on how its process ended, null for status 0. */
export type FileRun = { readonly file: string; readonly tap: string; readonly ending: string | null };

/** Counts assertions; subtests are not counted themselves. */
export function countTap(runs: readonly FileRun[]): Count {
  const count: Count = { passed: 0, failed: 0, skipped: [], notes: [] };
  for (const run of runs) addFile(count, run);
  return count;
}

/** The last line of a run, for example `12 passed, 0 failed, 1 skipped`. */
export function closingLine(count: Count): string {
  const skipped = count.skipped.length > 0 ? `, ${count.skipped.length} skipped` : '';
  return `${count.passed} passed, ${count.failed} failed${skipped}`;
}

/** Adds the assertions of a file. A file that failed or ran nothing without saying why counts as a failure itself. */
function addFile(count: Count, { file, tap, ending }: FileRun): void {
  const { points, bailout, results } = parse(tap);
  const counted = tally(points);
  add(count, counted);
  const hasPassed = results?.ok === true && ending === null;
  const reason = results?.plan.skipReason ?? '';
  if (bailout !== null) fail(count, `${file}: gave up: ${bailout}`);
  else if (!hasPassed && counted.failed === 0) {
    fail(count, `${file}: failed without a failing assertion${ending === null ? '' : `: it ${ending}`}.`);
  } else if (hasPassed && isEmpty(counted)) {
    // A file that gives a reason for running nothing (`t.plan(0, reason)`) is skipped; any other is a failure.
    if (isReason(reason)) count.skipped.push(`${file}: ${reason}`);
    else fail(count, `${file}: ran no assertion.`);
  }
}

function fail(count: Count, note: string): void {
  count.failed += 1;
  count.notes.push(note);
}

/** Whether the test file gave a reason; `no tests found` is tap's own text. */
function isReason(reason: string): boolean {
  return reason !== '' && reason !== 'no tests found';
}

/** What a file's TAP output says: its test points, why it gave up, and tap's own summary. */
function parse(tap: string): { points: Point[]; bailout: string | null; results: FinalResults | null } {
  const parser = new Parser();
  const points = collectPoints(parser);
  let bailout: string | null = null;
  parser.on('bailout', (reason: string) => {
    bailout = reason || 'no reason given';
  });
  parser.end(tap);
  return { points, bailout, results: parser.results };
}

/** Returns a list that the parser fills later. The parser reports a subtest before the test point that closes it. */
function collectPoints(parser: Parser): Point[] {
  const points: Point[] = [];
  let open: Point[] | null = null;
  parser.on('child', (child: Parser) => {
    open = collectPoints(child);
  });
  parser.on('assert', (result: Result) => {
    points.push({ result, subtest: open && tally(open) });
    open = null;
  });
  return points;
}

/** The sums of test points. A subtest's own assertions count in place of the point that closes it. */
function tally(points: readonly Point[]): Tally {
  const sum: Tally = { passed: 0, failed: 0, skipped: [] };
  for (const { result, subtest } of points) add(sum, subtest && !isEmpty(subtest) ? subtest : countPoint(result));
  return sum;
}

/** The count of a test point. A subtest without assertions counts as one: it may check something by throwing. */
function countPoint({ ok: hasPassed, skip, todo, fullname }: Result): Tally {
  const reason = skip || todo;
  if (reason !== false) {
    return { passed: 0, failed: 0, skipped: [`${fullname}: ${reason === true ? 'no reason given' : reason}`] };
  }
  return { passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: [] };
}

function add(sum: Tally, part: Tally): void {
  sum.passed += part.passed;
  sum.failed += part.failed;
  sum.skipped.push(...part.skipped);
}

function isEmpty({ passed, failed, skipped }: Tally): boolean {
  return passed + failed + skipped.length === 0;
}
