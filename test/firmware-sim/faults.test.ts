// Network faults to order, in runs without a gateway: safety while they are on (a healthy lock breaks no rule, whatever
// the network does), liveness once they are off (what the locks wrote down as made has arrived).
import t from 'tap';
import { FAULTS, parseFaults } from '../../firmware-sim/faults/faults.js';
import { VirtualRun } from '../../firmware-sim/fleet/virtual-run.js';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { Days, Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { ruleRow } from '../../proto/power/rules.js';
import { encodeUplink } from '../../proto/wire/codec.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { findingsIn, RUN_STARTS_MS, rulesBroken, traceOf } from '../helpers/sim/judged-run.js';

/** What a network can bring upon a healthy lock: its connections break, and it is out of reach when it should be in. */
const NETWORKS_DOING = ['not-closed', 'period-overdue', 'recovery-offline', 'window-offline'];
/** What a network that is bad in every way adds: behind a theft's ping that overtook them over 100 uplinks wait. */
const BAD_NETWORKS_DOING = [...NETWORKS_DOING, 'sequence-gap'];
const FLEET = { locks: 9, days: 1, pace: 'lively' } as const;
const ALL = parseFaults('all');

t.test('the table: each fault has a name and a sentence, and "all" selects all', async (t) => {
  t.same(
    ALL,
    FAULTS.map(({ name }) => name),
  );
  t.same(parseFaults('gap'), ['gap']);
  t.throws(() => parseFaults('rain'), { code: 'input-fault', message: /no fault "rain": expected all or one of/ });
  for (const { name, sentence } of FAULTS) t.match(sentence, /^[A-Z].*\.$/, name);
});

t.test('each fault has an effect, and none makes a healthy lock break a rule', async (t) => {
  const healthy = traceOf({ seed: 1, ...FLEET });
  for (const { name } of FAULTS) {
    const lines = traceOf({ seed: 1, ...FLEET, faults: [name] });
    t.not(lines.join('\n') === healthy.join('\n'), true, `${name} changes the run`);
    t.same(findingsIn(lines).filter(isNotTheNetworks), [], name);
  }
});

function isNotTheNetworks({ rule }: { rule: string }): boolean {
  return !NETWORKS_DOING.includes(rule);
}

t.test('all faults at once: the same seed repeats the run, and there are only warnings', async (t) => {
  for (const seed of ['rough', 'rougher']) {
    const options = { seed, ...FLEET, faults: ALL };
    const lines = traceOf(options);
    t.ok(traceOf(options).join('\n') === lines.join('\n'), 'the same bytes');
    const findings = findingsIn(lines);
    t.same(
      findings.filter(({ rule }) => !BAD_NETWORKS_DOING.includes(rule)),
      [],
      seed,
    );
    t.ok(rulesBroken(findings).length > 1, 'and the network is felt');
  }
  for (const rule of BAD_NETWORKS_DOING) t.equal(ruleRow(rule)?.severity, 'warning', 'and none is a violation');
});

t.test('the step size of a run changes nothing', async (t) => {
  const options = { seed: 'pieces', ...FLEET, faults: ALL, startMs: RUN_STARTS_MS, note: '', world: true };
  const told = (piece: number): string => {
    const lines: string[] = [];
    const trace = new VirtualTrace(options, (line) => lines.push(line));
    while (trace.nowMs < trace.endMs) trace.advance(trace.nowMs + piece);
    return lines.join('\n');
  };
  t.ok(told(Minutes(7) + 1) === told(Days(1)));
});

/** What happened to the uplinks of a run, by the locks' own diaries and by what got through. */
interface Books {
  readonly made: Map<string, string>;
  readonly acknowledged: Set<string>;
  readonly arrived: Map<string, Set<string>>;
}

const nameOf = (mac: string, { boot, sequence }: Uplink): string => `${mac} ${boot}/${sequence}`;
const hexOf = (uplink: Uplink): string => Buffer.from(encodeUplink(uplink)).toString('hex');

function keepBooks(seed: string): { run: VirtualRun; books: Books } {
  const books: Books = { made: new Map(), acknowledged: new Set(), arrived: new Map() };
  const run = new VirtualRun({
    seed,
    locks: 12,
    days: 3,
    pace: 'lively',
    startMs: RUN_STARTS_MS,
    faults: ALL,
    sink: {
      uplink: (mac, _atMs, uplink) => {
        const name = nameOf(mac, uplink);
        const contents = books.arrived.get(name) ?? new Set();
        books.arrived.set(name, contents.add(hexOf(uplink)));
      },
    },
    diary: (mac, _atMs, entry) => {
      if (entry.type === 'acknowledged') books.acknowledged.add(nameOf(mac, entry.uplink));
      if (entry.type !== 'did') return;
      const { effect } = entry;
      if (effect.type === 'made') books.made.set(nameOf(mac, effect.uplink), hexOf(effect.uplink));
      if (effect.type === 'discarded') books.made.delete(nameOf(mac, effect.uplink));
    },
  });
  return { run, books };
}

t.test('two days with faults and one without: every uplink arrives, once or more, unchanged', async (t) => {
  for (const seed of ['safety', 'liveness']) {
    const { run, books } = keepBooks(seed);
    run.advance(RUN_STARTS_MS + Days(2));
    const { arrived, acknowledged, made } = books;
    t.same(
      [...acknowledged].filter((name) => !arrived.has(name)),
      [],
      'safety: what was acknowledged is there',
    );
    run.stopFaults();
    run.advance(run.endMs);
    const kept = new Set(run.locks.flatMap(({ mac, state }) => state.waiting.map((uplink) => nameOf(mac, uplink))));
    const missing = [...made.keys()].filter((name) => !arrived.has(name) && !kept.has(name));
    t.same(missing, [], 'liveness: nothing is lost');
    t.ok(made.size > 20_000, `${made.size} were made`);
    t.ok(
      [...arrived.values()].every((contents) => contents.size === 1),
      'a name has one content',
    );
    t.same(
      [...arrived].filter(([name, [hex]]) => made.get(name) !== hex).map(([name]) => name),
      [],
      'the made one',
    );
    t.same(
      run.locks.filter(({ state }) => state.waiting.length > 0 && !mayWait(state)).map(({ mac }) => mac),
      [],
    );
  }
});

/** A lock keeps what it made while it is out of reach, silent by its state, or at work on sending it. */
function mayWait(state: VirtualRun['locks'][number]['state']): boolean {
  const isSilent = state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
  const isOnIt = state.link !== 'down' || state.retryAtMs <= RUN_STARTS_MS + Days(3) + POWER_MODEL.timings.keepalive;
  return isSilent || !state.covered || isOnIt;
}
