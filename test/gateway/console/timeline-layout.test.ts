/**
 * The layout of a lock's timeline, an SVG drawing on the console's pages and in reports of traces: rows, positions of
 * times, marks that can be selected, wide and narrow drawings. Pure functions; the shapes they return are inspected by
 * their classes. The last test is about the pages' addresses.
 */
import t from 'tap';
import { parseRoute, routeTo } from '../../../gateway/console/page/app/route.js';
import type { Shape } from '../../../gateway/console/timeline/shapes.js';
import type { TimelineData } from '../../../gateway/console/timeline/timeline-data.js';
import { layoutTimeline } from '../../../gateway/console/timeline/timeline-layout.js';
import { Hours, Minutes } from '../../../proto/clock.js';
import { POWER_MODEL, type StateRow } from '../../../proto/power/model.js';

const START_MS = Date.UTC(2026, 10, 20, 6);
/** The shown time. */
const RANGE = { fromMs: START_MS, toMs: START_MS + Hours(10) };
/** The width of a drawing, px. */
const WIDTH = 1000;
/** As on a phone. */
const NARROW_WIDTH = 340;

/** The row of the power model's table for a state such as MID. */
function stateRow(name: string): StateRow {
  const row = POWER_MODEL.states.find(({ state }) => state === name);
  if (row === undefined) throw new Error(`no state ${name}`);
  return row;
}

const DATA: TimelineData = {
  mac: 'A4:C1:38:F0:E1:D2',
  states: [
    { atMs: START_MS, row: stateRow('MID') },
    { atMs: START_MS + Hours(5), row: stateRow('HIGH') },
  ],
  connections: [{ fromMs: START_MS, toMs: START_MS + Hours(1), outcome: 'good', id: null, title: 'connected' }],
  pings: [
    { atMs: START_MS + Minutes(1), reason: 'REASON_PERIOD_TRACKING', id: '3', title: '' },
    { atMs: START_MS + Hours(2), reason: 'REASON_THEFT', id: '4', title: '' },
    { atMs: START_MS + Hours(20), reason: 'REASON_THEFT', id: '5', title: 'after the shown time' },
  ],
  pingCount: 3,
  commands: [{ fromMs: START_MS + Hours(6), toMs: null, outcome: 'open', id: '7', title: 'command siren' }],
  deliveries: [
    {
      fromMs: START_MS + Hours(2),
      attempts: [
        { atMs: START_MS + Hours(3), isGood: false },
        { atMs: START_MS + Hours(4), isGood: false },
      ],
      outcome: 'bad',
      target: 'https://hooks.example.com',
      id: 'evt_1',
      title: 'failed',
    },
  ],
  findings: [{ atMs: START_MS + Hours(10), severity: 'violation', id: '4 theft-unexpected', title: '' }],
};

const withClass = (shapes: readonly Shape[], name: string): Shape[] =>
  shapes.filter(({ className }) => className.split(' ').includes(name));

t.test('marks are where their time is, in the row of their reason', async (t) => {
  const { shapes, left, right, description } = layoutTimeline(DATA, RANGE, WIDTH);
  const [mid, high] = withClass(shapes, 'state');
  t.equal(mid?.attributes.x, left);
  t.equal(high?.attributes.x, (left + right) / 2, 'half of the shown time');
  t.equal(withClass(shapes, 'ping').length, 2, 'the ping after the shown time is left out');
  t.same(
    shapes.map(({ item }) => item).filter((item) => item !== undefined),
    ['ping 3', 'ping 4', 'command 7', 'delivery evt_1', 'finding 4 theft-unexpected'],
    'each mark names what is shown when it is selected',
  );
  t.same(
    withClass(shapes, 'label').map(({ text }) => text),
    ['state', 'connected', 'PERIOD_TRACKING', 'THEFT', 'commands', 'deliveries', 'findings'],
  );
  t.match(description, /^From .* States: MID, HIGH\. 3 pings and 1 findings/);
});

t.test('violations are drawn above warnings of the same time', async (t) => {
  const [violation] = DATA.findings;
  if (violation === undefined) throw new Error('no finding');
  const findings = [violation, { ...violation, severity: 'warning', id: 'w' } as const];
  const drawn = layoutTimeline({ ...DATA, findings }, RANGE, WIDTH).shapes.map(({ item = '' }) => item);
  t.same(
    drawn.filter((item) => item.startsWith('finding ')),
    ['finding w', `finding ${violation.id}`],
  );
});

t.test('the row of each ping reason is shaded where the state of the lock allows pings for this reason', async (t) => {
  const states = [
    { atMs: START_MS, row: stateRow('MID') },
    { atMs: START_MS + Hours(4), row: stateRow('LOW_BATTERY') },
    { atMs: START_MS + Hours(6), row: stateRow('AIRPLANE') },
  ];
  const { shapes, left, right } = layoutTimeline({ ...DATA, states }, RANGE, WIDTH);
  const [lowBattery] = states.slice(1);
  // Theft and the daily ping, and both are allowed in MID; LOW_BATTERY may allow one of them, AIRPLANE neither.
  const expected = [lowBattery?.row.period, lowBattery?.row.theft].flatMap((isAllowed) => [
    'allowed in MID',
    ...(isAllowed ? ['allowed in LOW_BATTERY'] : []),
  ]);
  const shaded = withClass(shapes, 'allowed');
  t.same(
    shaded.map(({ title }) => title),
    expected,
  );
  t.equal(shaded[0]?.attributes.x, left);
  t.equal(Math.round(Number(shaded[0]?.attributes.width)), Math.round(0.4 * (right - left)), 'four of the ten hours');
});

t.test('the end of a connection that was not closed has a mark', async (t) => {
  const [closed] = DATA.connections;
  if (closed === undefined) throw new Error('no connection');
  const lost = { ...closed, outcome: 'bad' } as const;
  const marks = (connection: typeof closed) =>
    withClass(layoutTimeline({ ...DATA, connections: [connection] }, RANGE, WIDTH).shapes, 'connection-loss').length;
  t.equal(marks(closed), 0);
  t.equal(marks(lost), 1);
});

t.test('the axis has round times, with no more digits than needed, and the dates in UTC', async (t) => {
  const timesOf = (fromMs: number, spanMs: number, width = WIDTH): (string | undefined)[] =>
    withClass(layoutTimeline(DATA, { fromMs, toMs: fromMs + spanMs }, width).shapes, 'time').map(({ text }) => text);
  const date = '2026-11-20 UTC';
  const hours = ['06:00', '08:00', '10:00', '12:00', '14:00', '16:00'];
  t.same(timesOf(START_MS + 1, Hours(11)), [date, '08:00', '10:00', '12:00', '14:00', '16:00'], 'hours');
  t.same(timesOf(START_MS, Hours(10)), [date, ...hours]);
  t.same(timesOf(START_MS, Hours(10), NARROW_WIDTH), [date, '06:00', '09:00', '12:00', '15:00'], 'fewer on a phone');
  t.same(timesOf(START_MS + 1, 2_000).slice(0, 4), [date, '06:00:00.5', '06:00:01.0', '06:00:01.5'], 'tenths');
  t.same(timesOf(START_MS + 987, 100).slice(0, 3), [date, '06:00:01.00', '06:00:01.02'], 'hundredths');
  t.same(timesOf(START_MS + 1, 10).slice(0, 3), [date, '06:00:00.002', '06:00:00.004'], 'milliseconds');
  t.same(timesOf(START_MS, Minutes(1)).slice(0, 3), [date, '06:00:00', '06:00:10'], 'seconds');
  const days = timesOf(START_MS + Hours(13), Hours(20));
  t.same([days[0], ...days.filter((text) => text?.startsWith('2026-11-21'))], [date, '2026-11-21'], 'a new day');
  t.same(timesOf(START_MS, Hours(24 * 6)).slice(0, 3), [date, '2026-11-21', '2026-11-22'], 'days');
  t.ok(timesOf(Date.UTC(1970), Date.UTC(2026)).length < 12, 'the clock of a lock may be wrong by years');
  const lastDateMs = 8.64e15; // of JavaScript
  t.equal(timesOf(lastDateMs, Hours(1))[0]?.slice(-3), 'UTC', 'times beyond the last date do no harm');
});

t.test('connections, commands and deliveries without data take no row', async (t) => {
  const withoutThem = { ...DATA, connections: [], commands: [], deliveries: [] };
  const names = withClass(layoutTimeline(withoutThem, RANGE, WIDTH).shapes, 'label').map(({ text }) => text);
  t.same(names, ['state', 'PERIOD_TRACKING', 'THEFT', 'findings']);
});

t.test('a delivery is drawn from its event to its last attempt, in a row for each URL', async (t) => {
  const [bad] = DATA.deliveries;
  if (bad === undefined) throw new Error('no delivery');
  const open = { ...bad, outcome: 'open', id: 'evt_2', target: 'https://b.example.com' } as const;
  const attempts = [{ atMs: START_MS + Hours(2) + 40, isGood: true }]; // 40 ms after the event
  const good = { ...bad, outcome: 'good', id: 'evt_3', attempts } as const;
  const { shapes, left, right } = layoutTimeline({ ...DATA, deliveries: [bad, open, good] }, RANGE, WIDTH);
  /** The horizontal position of a time, in hours after the start of the shown ten; rounded as the layout does. */
  const xOf = (hours: number): number => Math.round((left + (hours / 10) * (right - left)) * 10) / 10;
  const labels = withClass(shapes, 'label').map(({ text }) => text);
  t.same(labels.slice(-3), ['to https://hooks.example.com', 'to https://b.example.com', 'findings']);
  const paths = (name: string) => withClass(shapes, name).map(({ attributes }) => String(attributes.d));
  const [failedWait, openWait, ...others] = paths('wait');
  t.match(failedWait, new RegExp(`^M${xOf(2)} .*H${xOf(4)}$`), 'to the last attempt');
  t.match(openWait, new RegExp(`^M${xOf(2)} .*H${xOf(10)}$`), 'what still waits, to the end of the shown time');
  t.same(others, [], 'what was delivered at once has no line');
  // One tick for the failed delivery, whose last attempt has the cross, 8 px wide; two for the open one.
  const ticks = [3, 3, 4].map((hours) => new RegExp(`^M${xOf(hours)} `));
  t.match(paths('failed-attempt'), ticks);
  t.match(
    withClass(shapes, 'delivery').map(({ item, attributes }) => [item, attributes.cx ?? attributes.d]),
    [
      ['delivery evt_1', new RegExp(`^M${xOf(4) - 4} `)],
      ['delivery evt_3', xOf(2)],
      ['delivery evt_2', xOf(2)],
    ],
  );
  const late = layoutTimeline({ ...DATA, deliveries: [bad] }, { ...RANGE, fromMs: START_MS + Hours(5) }, WIDTH);
  t.same(withClass(late.shapes, 'delivery'), [], 'a delivery that ended before the shown time is left out');
});

t.test('further URLs share the last row of deliveries', async (t) => {
  const [bad] = DATA.deliveries;
  if (bad === undefined) throw new Error('no delivery');
  const deliveries = ['a', 'b', 'c', 'd', 'e'].map((target) => ({ ...bad, target }));
  const { shapes } = layoutTimeline({ ...DATA, deliveries }, RANGE, WIDTH);
  const names = withClass(shapes, 'label').map(({ text }) => text ?? '');
  t.same(
    names.filter((name) => name.startsWith('to ')),
    ['to a', 'to b', 'to c', 'to other URLs'],
  );
  t.equal(withClass(shapes, 'delivery').length, 5, 'none is left out');
});

t.test('a band has its name only if all of it fits', async (t) => {
  const states = [{ atMs: START_MS, row: stateRow('LOW_BATTERY') }];
  const bands = { ...DATA, states: [...states, { atMs: START_MS + Hours(1), row: stateRow('MID') }] };
  /** How many bands have their names if the axis has this width, px; the names of rows and the margin take 220 px. */
  const nameCount = (axisWidth: number) =>
    withClass(layoutTimeline(bands, RANGE, 220 + axisWidth).shapes, 'name').length;
  // The first band has one of the ten hours. Eleven bold capitals of 12 px take 93 px in the usual fonts.
  t.equal(nameCount(950), 1, 'a band of 95 px has no room for LOW_BATTERY; the other band has its name');
  t.equal(nameCount(1150), 2, 'a band of 115 px has room');
});

t.test('a narrow drawing has names above the rows instead of beside them, and nothing beyond its width', async (t) => {
  const narrow = layoutTimeline(DATA, RANGE, NARROW_WIDTH);
  t.ok(narrow.height > layoutTimeline(DATA, RANGE, WIDTH).height, 'names above the rows take room');
  t.ok(withClass(narrow.shapes, 'label').every(({ attributes }) => attributes['text-anchor'] === 'start'));
  for (const { attributes } of narrow.shapes.filter(({ kind }) => kind === 'rect')) {
    const { x, width } = attributes as { x: number; width: number };
    t.ok(x >= 0 && x + width <= NARROW_WIDTH, `${x} + ${width}`);
  }
});

t.test('the address of a screen is read back as it was written', async (t) => {
  for (const [screen, parts, query] of [
    ['locks', ['A4:C1:38:F0:E1:D2'], { from: '2026-11-20', reason: 'a&b=c' }],
    ['now', [], {}],
    ['why', ['evt_1/2', '100 %'], {}],
  ] as const)
    t.same(parseRoute(routeTo(screen, parts, query)), { screen, parts, query });
  t.same(parseRoute(''), { screen: 'now', parts: [], query: {} });
  t.same(parseRoute('#/locks/%zz'), { screen: 'locks', parts: ['%zz'], query: {} }, 'malformed percent signs stay');
});
