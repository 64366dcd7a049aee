// Certificates (protocol.md §3). Each row of a certificate is one requirement, which the traces show to hold (PASS),
// show to be broken (FAIL), or do not show (NOT SEEN). A requirement that was not seen never passes.
// test/long/certificate.test.ts certifies a fleet-month.
import t from 'tap';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import type { Certificate } from '../../../proto/trace/certificate/certificate.js';
import type { JudgedRow } from '../../../proto/trace/certificate/row.js';
import { certificateRows, rowsNamed } from '../../../proto/trace/certificate/rows.js';
import { REASONS } from '../../../proto/wire/reasons.js';
import { certificateOf, rowsWith, scenarioLines } from '../../helpers/sim/certified-run.js';
import { expectedOf, linesOf, traceNames } from '../../helpers/sim/hand-traces.js';

const ROWS = certificateRows(POWER_MODEL);

t.test(
  'each rule belongs to a row, each reason and each function of the model is covered, ids are unique',
  async (t) => {
    // A finding of a rule in `failsBy` fails the row; one of a rule in `notedBy` is only noted there.
    const rules = new Set(ROWS.flatMap(({ failsBy, notedBy = [] }) => [...failsBy, ...notedBy]));
    t.same(
      RULES.map(({ rule }) => rule).filter((rule) => !rules.has(rule)),
      [],
    );
    const texts = ROWS.map(({ says, seenWhen }) => `${says} ${seenWhen}`).join('\n');
    t.same(
      REASONS.map(({ name }) => name).filter((name) => !texts.includes(name)),
      [],
    );
    t.equal(new Set(ROWS.map(({ row }) => row)).size, ROWS.length);
    for (const { row } of ROWS) t.match(row, /^[a-z]+(-[a-z]+)*$/);
    for (const { state, theft, period, connectionKept } of POWER_MODEL.states) {
      const has = (name: string): boolean => ROWS.some((row) => row.state === state && row.row.startsWith(name));
      t.equal(has('theft-gps'), theft, state);
      t.equal(has('daily-gps'), period, state);
      t.equal(has('network-ping'), connectionKept !== 'never', state);
    }
  },
);

t.test('a name without a state selects the row of each state', async (t) => {
  t.same(
    rowsNamed(ROWS, 'theft-gps-mid').map(({ row }) => row),
    ['theft-gps-mid'],
  );
  t.same(
    rowsNamed(ROWS, 'theft-gps').map(({ state }) => state),
    ['LOW_BATTERY', 'RECOVERY', 'HIGH', 'MID'],
  );
  t.same(rowsNamed(ROWS, 'clock-true').length, 1);
  t.same(rowsNamed(ROWS, 'theft'), []);
});

t.test('all scenarios together show every row except the one that needs world events', async (t) => {
  const certificate = certificateOf((await scenarioLines()).map((lines, index) => ({ file: `${index}.jsonl`, lines })));
  t.same(rowsWith(certificate, 'FAIL'), []);
  t.same(rowsWith(certificate, 'NOT SEEN'), ['position-true']);
  t.equal(certificate.traces.length, 12, 'a trace of each built-in scenario');
  // `seen` is how often the requirement was seen to hold, and `lines` has up to five examples.
  for (const { row, lines, seen } of certificate.rows) t.ok(lines.length <= 5 && lines.length <= seen, row);
});

t.test('without theft pings the rows of theft are not seen', async (t) => {
  const scenarios = await scenarioLines();
  const certificate = certificateOf(
    scenarios.map((lines, index) => ({
      file: `${index}.jsonl`,
      lines: lines.filter((line) => !line.includes('"reason":"REASON_THEFT"')),
    })),
  );
  const unseen = rowsWith(certificate, 'NOT SEEN');
  for (const state of ['mid', 'high', 'recovery', 'low-battery']) {
    t.ok(unseen.includes(`theft-cellular-${state}`), state);
    t.ok(unseen.includes(`theft-gps-${state}`), state);
  }
});

t.test('each hand-written trace that breaks a rule fails rows of that rule, and no row of another rule', async (t) => {
  for (const name of traceNames) {
    const rules = expectedOf(name).map(({ rule }) => rule);
    const certificate = certificateOf([{ file: name, lines: linesOf(name) }]);
    const failed = certificate.rows.filter(({ verdict }) => verdict === 'FAIL');
    for (const { row, failsBy } of failed)
      t.ok(
        failsBy.some((rule) => rules.includes(rule)),
        `${name}: ${row}`,
      );
    for (const rule of rules) {
      const isShown = certificate.rows.some((row) => findingsOf(row).some((found) => found.rule === rule));
      t.ok(isShown, `${name}: ${rule}`);
    }
  }
});

function findingsOf({ firstFailures, firstNoted }: JudgedRow): JudgedRow['firstFailures'] {
  return [...firstFailures, ...firstNoted];
}

/** A trace of locks in MID: one lock for each firmware version, with one cellular ping. */
function versionsTrace(...versions: string[]): string[] {
  const header = '{"trace":"lockgate","version":1,"locks":{}}';
  const at = (index: number): string => `2026-01-05T08:0${index}:00.000Z`;
  return [
    header,
    ...versions.flatMap((firmware_version, index) => [
      JSON.stringify({ at: at(index), mac: `A4:C1:38:00:00:0${index}`, event: 'connect' }),
      JSON.stringify({
        at: at(index),
        mac: `A4:C1:38:00:00:0${index}`,
        event: 'ping',
        ping: {
          ...{ ping_type: 'cellular', reason: 'REASON_RESET', lock_state: 'locked', battery_percent: 80 },
          ...{ firmware_version, ebike_voltage: null, tether_state: 'detached' },
        },
      }),
    ]),
  ];
}

t.test(
  'pings of firmware other than the stated version are left out, unless no ping reports that version',
  async (t) => {
    const lines = versionsTrace('2.4.1', '2.5.0', '2.4.1');
    const seen = ({ rows }: Certificate): number | undefined => rows.find(({ row }) => row === 'reset-ping-mid')?.seen;
    const all = certificateOf([{ file: 'a', lines }]);
    t.equal(seen(all), 3);
    t.same(all.reported, [
      { version: '2.4.1', pings: 2 },
      { version: '2.5.0', pings: 1 },
    ]);
    const newer = certificateOf([{ file: 'a', lines }], '2.5.0');
    t.equal(seen(newer), 1);
    t.equal(newer.leftOut, 2);
    const unknown = certificateOf([{ file: 'a', lines }], '9.9.9');
    t.equal(seen(unknown), 3);
    t.equal(unknown.leftOut, 0);
  },
);

// World events say what truly happened to the lock, so they also show which pings it should have sent (owed).
t.test('world events show that positions are true, and fail the rows of pings that a lock owed', async (t) => {
  const withWorldEvents = true;
  const noFurtherBugs = undefined;
  const scenarios = await scenarioLines(noFurtherBugs, withWorldEvents);
  const traces = scenarios.map((lines, index) => ({ file: `${index}`, lines }));
  const certificate = certificateOf(traces);
  t.same(rowsWith(certificate, 'FAIL'), []);
  t.same(rowsWith(certificate, 'NOT SEEN'), []);
  const withoutTheft = traces.map(({ file, lines }) => ({
    file,
    lines: lines.filter((line) => !line.includes('"reason":"REASON_THEFT"')),
  }));
  const failed = rowsWith(certificateOf(withoutTheft), 'FAIL');
  for (const row of ['theft-cellular-mid', 'theft-gps-mid', 'theft-gps-low-battery']) t.ok(failed.includes(row), row);
});
