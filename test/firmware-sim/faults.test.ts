// Network faults (firmware-sim/faults/faults.ts) in runs without a gateway. Safety: while faults are on, a healthy lock
// breaks no rule of the judge, which checks the locks' messages against the specification. Liveness: once faults are
// off, every uplink arrives that a lock has made according to its diary, the record of what the simulated lock did.
import t from 'tap';
import { FAULTS, parseFaults } from '../../firmware-sim/faults/faults.js';
import { VirtualRun } from '../../firmware-sim/fleet/virtual-run.js';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { Days, Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { findRule } from '../../proto/power/rules.js';
import { encodeUplink } from '../../proto/wire/codec.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { eachLine } from '../helpers/sim/each-line.js';
import { findingsIn, RUN_STARTS_MS, rulesBroken, traceOf } from '../helpers/sim/judged-run.js';

/** Rules whose warnings a network can cause: connections break, and locks are unreachable. */
const CAUSED_BY_NETWORK = ['not-closed', 'period-overdue', 'recovery-offline', 'window-offline'];
/**
 * With all faults also the warning of a gap in the sequence numbers: a lock sends a theft's ping before the uplinks
 * that wait in its buffer, here over 100.
 */
const CAUSED_BY_ALL_FAULTS = [...CAUSED_BY_NETWORK, 'sequence-gap'];
/** With the pace `lively` much happens to the locks within an hour. */
const FLEET = { locks: 9, days: 1, pace: 'lively' } as const;
const ALL = parseFaults('all');

t.test('each fault has a name and a sentence, and "all" selects every fault', async (t) => {
  t.same(
    ALL,
    FAULTS.map(({ name }) => name),
  );
  t.same(parseFaults('gap'), ['gap']);
  t.throws(() => parseFaults('rain'), { code: 'input-fault', message: /no fault "rain": expected all or one of/ });
  for (const { name, sentence } of FAULTS) t.match(sentence, /^[A-Z].*\.$/, name);
});

t.test('each fault has an effect, and none makes a healthy lock break a rule', async (t) => {
  const withoutFaults = traceOf({ seed: 1, ...FLEET });
  for (const { name } of FAULTS) {
    const lines = traceOf({ seed: 1, ...FLEET, faults: [name] });
    t.ok(lines.join('\n') !== withoutFaults.join('\n'), `${name} changes the run`);
    t.same(findingsIn(lines).filter(isNotCausedByNetwork), [], name);
  }
});

function isNotCausedByNetwork({ rule }: { rule: string }): boolean {
  return !CAUSED_BY_NETWORK.includes(rule);
}

t.test('with all faults at once the same seed repeats the run, and the judge finds only warnings', async (t) => {
  for (const seed of ['rough', 'rougher']) {
    const options = { seed, ...FLEET, faults: ALL };
    const lines = traceOf(options);
    t.ok(traceOf(options).join('\n') === lines.join('\n'), 'the same bytes');
    const findings = findingsIn(lines);
    t.same(
      findings.filter(({ rule }) => !CAUSED_BY_ALL_FAULTS.includes(rule)),
      [],
      seed,
    );
    t.ok(rulesBroken(findings).length > 1, 'the faults cause warnings of several rules');
  }
  for (const rule of CAUSED_BY_ALL_FAULTS) t.equal(findRule(rule)?.severity, 'warning', `${rule} is a warning`);
});

t.test('the step size of a run does not change its events', async (t) => {
  const options = { seed: 'pieces', ...FLEET, faults: ALL, startMs: RUN_STARTS_MS, note: '', hasWorldEvents: true };
  const traceWithStep = (stepMs: number): string => {
    const lines: string[] = [];
    const trace = new VirtualTrace(
      options,
      eachLine((line) => lines.push(line)),
    );
    while (trace.nowMs < trace.endMs) trace.advance(trace.nowMs + stepMs);
    return lines.join('\n');
  };
  // The millisecond puts the ends of the steps between events.
  t.ok(traceWithStep(Minutes(7) + 1) === traceWithStep(Days(1)));
});

/**
 * The uplinks that the diaries say were made and not discarded (content by key), those that the diaries say were
 * acknowledged, and those that arrived. An uplink that arrives repeatedly may have several contents, if there is a
 * fault.
 */
interface UplinkRecords {
  readonly made: Map<string, string>;
  readonly acknowledged: Set<string>;
  readonly arrived: Map<string, Set<string>>;
}

const keyOf = (mac: string, { boot, sequence }: Uplink): string => `${mac} ${boot}/${sequence}`;
const hexOf = (uplink: Uplink): string => Buffer.from(encodeUplink(uplink)).toString('hex');

/** Prepares a run of three days with all faults, which records the uplinks. */
function recordUplinks(seed: string): { run: VirtualRun; records: UplinkRecords } {
  const records: UplinkRecords = { made: new Map(), acknowledged: new Set(), arrived: new Map() };
  const run = new VirtualRun({
    seed,
    locks: 12,
    days: 3,
    pace: 'lively',
    startMs: RUN_STARTS_MS,
    faults: ALL,
    sink: {
      uplink: (mac, _atMs, uplink) => {
        const key = keyOf(mac, uplink);
        const contents = records.arrived.get(key) ?? new Set();
        records.arrived.set(key, contents.add(hexOf(uplink)));
      },
    },
    diary: (mac, _atMs, entry) => {
      if (entry.type === 'acknowledged') records.acknowledged.add(keyOf(mac, entry.uplink));
      if (entry.type !== 'did') return;
      const { effect } = entry;
      if (effect.type === 'made') records.made.set(keyOf(mac, effect.uplink), hexOf(effect.uplink));
      if (effect.type === 'discarded') records.made.delete(keyOf(mac, effect.uplink));
    },
  });
  return { run, records };
}

t.test('after two days with faults and one without, every uplink has arrived, once or more, unchanged', async (t) => {
  for (const seed of ['safety', 'liveness']) {
    const { run, records } = recordUplinks(seed);
    run.advance(RUN_STARTS_MS + Days(2));
    const { arrived, acknowledged, made } = records;
    t.same(
      [...acknowledged].filter((key) => !arrived.has(key)),
      [],
      'safety: every acknowledged uplink has arrived',
    );
    run.stopFaults();
    run.advance(run.endMs);
    const waiting = new Set(run.locks.flatMap(({ mac, state }) => state.waiting.map((uplink) => keyOf(mac, uplink))));
    const missing = [...made.keys()].filter((key) => !arrived.has(key) && !waiting.has(key));
    t.same(missing, [], 'liveness: nothing is lost');
    // A run with few uplinks would prove little.
    t.ok(made.size > 20_000, `${made.size} uplinks were made`);
    t.ok(
      [...arrived.values()].every((contents) => contents.size === 1),
      'each key has one content',
    );
    t.same(
      [...arrived].filter(([key, [hex]]) => made.get(key) !== hex).map(([key]) => key),
      [],
      'each content is the one that the lock made',
    );
    t.same(
      run.locks.filter(({ state }) => state.waiting.length > 0 && !mayHoldUplinks(state)).map(({ mac }) => mac),
      [],
      'only locks that can’t send still hold uplinks',
    );
  }
});

/** Whether a lock may hold unsent uplinks: it is unreachable, silent, or still sending. */
function mayHoldUplinks(state: VirtualRun['locks'][number]['state']): boolean {
  const isSilent = state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
  const isConnectingSoon =
    state.link !== 'down' || state.retryAtMs <= RUN_STARTS_MS + Days(3) + POWER_MODEL.timings.keepalive;
  return isSilent || !state.covered || isConnectingSoon;
}
