// Counts what a run of the tests came to, from tap's own output.
//
// tap's summary can't be taken as it is: it counts a test file as one more assertion, does not count a file that was
// killed as failed, and calls a file that ran nothing skipped. Both would make a run look better than it was.
import { Parser, type Result } from 'tap-parser';

/** What was counted in one subtest, file or run. `skipped` names each skipped test with its reason. */
type Tally = { passed: number; failed: number; skipped: string[] };

/** What a run came to. `notes` has a sentence for each failure that no assertion reported. */
export type Count = Tally & { notes: string[] };

/** A test point, and what was counted in the subtest that it closes (null when it closes none). */
type Point = { result: Result; inside: Tally | null };

/**
 * Counts the leaves, that is, the assertions and not the subtests around them.
 * @param tap the TAP of the whole run, whose outermost test points are the files
 * @param expected the files that should have run, as tap names them; each that is not there is a failure
 */
export function countTap(tap: string, expected: readonly string[]): Count {
  const count: Count = { passed: 0, failed: 0, skipped: [], notes: [] };
  const { points, bailout } = parse(tap);
  for (const point of points) addFile(count, point);
  const ran = new Set(points.map((point) => unescapeName(point.result.name)));
  for (const file of expected) {
    if (!ran.has(file)) fail(count, `${file}: never reported how it ended.`);
  }
  if (bailout !== null) fail(count, `The run was given up: ${bailout}`);
  return count;
}

/** The line a run ends with, for example `12 passed, 0 failed, 1 skipped`. */
export function closingLine(count: Count): string {
  const skipped = count.skipped.length > 0 ? `, ${count.skipped.length} skipped` : '';
  return `${count.passed} passed, ${count.failed} failed${skipped}`;
}

function addFile(count: Count, { result, inside }: Point): void {
  const tally = inside ?? { passed: 0, failed: 0, skipped: [] };
  add(count, tally);
  const name = unescapeName(result.name);
  if (!result.ok) {
    if (tally.failed === 0) fail(count, `${name}: failed without a failing assertion.`);
  } else if (isEmpty(tally)) {
    // A file that says why it runs nothing (`t.plan(0, reason)`) is skipped; one that just ran nothing is broken.
    if (isReason(result.skip)) count.skipped.push(`${name}: ${result.skip}`);
    else fail(count, `${name}: ran no assertion.`);
  }
}

function fail(count: Count, note: string): void {
  count.failed += 1;
  count.notes.push(note);
}

/** `no tests found` is what tap puts there by itself. */
function isReason(skip: boolean | string): boolean {
  return typeof skip === 'string' && skip !== '' && skip !== 'no tests found';
}

function parse(tap: string): { points: Point[]; bailout: string | null } {
  const parser = new Parser();
  const points = collect(parser);
  let bailout: string | null = null;
  parser.on('bailout', (reason: string) => {
    bailout = reason || 'no reason given';
  });
  parser.end(tap);
  return { points, bailout };
}

/** Fills the list it returns while the parser runs: a subtest is seen before the test point that closes it. */
function collect(parser: Parser): Point[] {
  const points: Point[] = [];
  let open: Point[] | null = null;
  parser.on('child', (child: Parser) => {
    open = collect(child);
  });
  parser.on('assert', (result: Result) => {
    points.push({ result, inside: open && tally(open) });
    open = null;
  });
  return points;
}

function tally(points: readonly Point[]): Tally {
  const sum: Tally = { passed: 0, failed: 0, skipped: [] };
  for (const { result, inside } of points) add(sum, inside && !isEmpty(inside) ? inside : leaf(result));
  return sum;
}

/** A subtest without assertions of its own counts as one: it may well have checked something by throwing. */
function leaf({ ok, skip, todo, fullname }: Result): Tally {
  const reason = skip || todo;
  if (reason !== false) {
    return { passed: 0, failed: 0, skipped: [`${fullname}: ${reason === true ? 'no reason given' : reason}`] };
  }
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: [] };
}

function add(sum: Tally, part: Tally): void {
  sum.passed += part.passed;
  sum.failed += part.failed;
  sum.skipped.push(...part.skipped);
}

function isEmpty({ passed, failed, skipped }: Tally): boolean {
  return passed + failed + skipped.length === 0;
}

/** TAP escapes `#` and `\` in names. */
function unescapeName(name: string): string {
  return name.replace(/\\([#\\])/g, '$1');
}
