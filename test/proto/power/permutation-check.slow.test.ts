// The permutation check (protocol.md §3, "Late data"): whatever the order in which uplinks arrive, and however often,
// the result is the same. This is checked for the judge's belief about the lock and for its findings, and for a gateway
// that receives over MQTT and stores into SQLite.
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Minutes } from '../../../proto/clock.js';
import { BELIEF_LIMITS } from '../../../proto/power/judge/belief.js';
import { findRule } from '../../../proto/power/rules.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { isPingUplink, type Uplink } from '../../../proto/wire/ping.js';
import { testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { JudgedRun, START_MS } from '../../helpers/pair/judged-uplinks.js';
import {
  displaced,
  type SentUplinks,
  sentOnWalk,
  shuffled,
  withConflicts,
  withRepeats,
} from '../../helpers/pair/late-arrivals.js';
import { mutants } from '../../helpers/pair/mutants.js';
import type { Alteration } from '../../helpers/pair/scenario.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/** How many uplinks may arrive in any order: with more, the judge forgets the oldest gaps in the sequence numbers. */
const MAX_SHUFFLED_UPLINKS = BELIEF_LIMITS.spans;
/** The tests shuffle this many fewer uplinks, to stay clear of that limit. */
const SHUFFLED_MARGIN = 50;
/** The length of a walk, in days. */
const WALK_DAYS = 6;
/** The share of uplinks that are followed by one with the same key and other content. */
const CONFLICT_SHARE = 0.1;
/** The share of uplinks that arrive twice. */
const REPEAT_SHARE = 0.3;
/** The size of a lock's buffer: one uplink can be overtaken by this many others (protocol.md §2). */
const BUFFERED_UPLINKS = 256;

/** Judges the uplinks in the given order, one each minute, over one connection. */
function judged({ initial, commands }: SentUplinks, arrivals: readonly Uplink[]): JudgedRun {
  const run = new JudgedRun(START_MS, initial);
  run.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  for (const { id, command } of commands) run.judge({ type: 'command', id, command, atMs: START_MS });
  for (const [index, uplink] of arrivals.entries()) run.receive(uplink, START_MS + Minutes(1 + index));
  return run;
}

/** The result that must not depend on the order: what the judge believes of the lock, and findings about content. */
const stateText = (run: JudgedRun): string => JSON.stringify([run.deviceBelief, run.contentFindings]);

/** How many walks, months and orders of arrival are tried. */
const [WALKS, MONTHS, ORDERS] = quickOrLong([4, 2, 1], [12, 8, 3]);

/**
 * A long run of GPS pings counts as frozen at its twentieth ping. The judge does not store the run, so it can't count
 * again when a number within it comes with a second content. This lock therefore has no conflicts.
 */
const FROZEN = 'a frozen position';

/** A lock that follows the model, and some that break it, so that there are findings. */
const LOCKS: readonly (Alteration & { readonly name: string })[] = [
  { name: 'a true lock' },
  ...mutants().filter(({ name }) =>
    [
      'AIRPLANE: theft on',
      'AIRPLANE: connection kept always',
      'LOW_BATTERY: stateChange on',
      'state-change: gpsReason REASON_THEFT',
      'AIRPLANE and LOW_BATTERY change places',
      'a period ping every 6 h',
      'MID: stateChange off',
      'period: gpsReason none',
      FROZEN,
    ].includes(name),
  ),
];

t.test('the judge’s belief and findings do not depend on the order and repetition of uplinks', async (t) => {
  let withFindings = 0;
  for (const { name, ...alteration } of LOCKS) {
    for (let seed = 1; seed <= WALKS; seed++) {
      const random = new Prng(`${name} ${seed}`);
      const sent = sentOnWalk(seed, WALK_DAYS, alteration);
      const first = random.integer(0, Math.max(0, sent.uplinks.length - MAX_SHUFFLED_UPLINKS));
      const selected = sent.uplinks.slice(first, first + MAX_SHUFFLED_UPLINKS - SHUFFLED_MARGIN);
      const hasConflicts = seed % 2 !== 0 && name !== FROZEN;
      const uplinks = hasConflicts ? withConflicts(random, selected, CONFLICT_SHARE) : selected;
      const inOrder = judged(sent, uplinks);
      if (inOrder.contentFindings.length > 0) withFindings++;
      for (let order = 1; order <= ORDERS; order++) {
        const arrivals = withRepeats(random, shuffled(random, uplinks), REPEAT_SHARE);
        t.equal(stateText(judged(sent, arrivals)), stateText(inOrder), `${name}, seed ${seed}, order ${order}`);
      }
    }
  }
  t.ok(withFindings > 3 * WALKS, `there were findings in ${withFindings} runs`);
});

/**
 * The uplinks as if the lock's flash had been wiped at `wipedMs`: afterwards the lock counts its boots from 1 again.
 * The boots before get higher numbers, as those of a lock that has been in use for long.
 */
function withWipedFlash(uplinks: readonly Uplink[], wipedMs: number): Uplink[] {
  const first = uplinks.find(({ timeMs }) => timeMs >= wipedMs)?.boot ?? 0;
  return uplinks.map((uplink) =>
    uplink.timeMs < wipedMs ? { ...uplink, boot: uplink.boot + 40 } : { ...uplink, boot: uplink.boot - first + 1 },
  );
}

t.test('the order does not matter for a lock whose flash was wiped, marked as reflashed or not', async (t) => {
  const bootBackCounts = { marked: 0, unmarked: 0 };
  for (let seed = 1; seed <= WALKS; seed++) {
    const random = new Prng(`wiped ${seed}`);
    const sent = sentOnWalk(seed, WALK_DAYS);
    const selected = sent.uplinks.slice(0, MAX_SHUFFLED_UPLINKS - SHUFFLED_MARGIN);
    const wipedMs = Math.max(...selected.slice(0, Math.floor(selected.length / 2)).map(({ timeMs }) => timeMs)) + 1;
    const uplinks = withConflicts(random, withWipedFlash(selected, wipedMs), seed % 2 === 0 ? 0 : CONFLICT_SHARE);
    for (const marks of [[], [wipedMs]]) {
      const inOrder = judgedLate(sent, uplinks, marks);
      const count = inOrder.contentFindings.filter((text) => text.startsWith('boot-back')).length;
      bootBackCounts[marks.length === 0 ? 'unmarked' : 'marked'] += count;
      for (let order = 1; order <= ORDERS; order++) {
        const arrivals = withRepeats(random, shuffled(random, uplinks), REPEAT_SHARE);
        t.equal(
          stateText(judgedLate(sent, arrivals, marks)),
          stateText(inOrder),
          `${marks}, seed ${seed}, order ${order}`,
        );
      }
    }
  }
  t.ok(bootBackCounts.unmarked >= WALKS, `boot-back was found ${bootBackCounts.unmarked} times`);
  t.equal(bootBackCounts.marked, 0, 'boot-back was not found if the lock is marked as reflashed');
});

/**
 * As `judged`, but without commands, and all uplinks arrive after the last one was made, so that each time is
 * plausible. `marks` are the times of reflashes.
 */
function judgedLate({ initial }: SentUplinks, arrivals: readonly Uplink[], marks: readonly number[]): JudgedRun {
  const run = new JudgedRun(START_MS, initial, marks);
  const fromMs = Math.max(START_MS, ...arrivals.map(({ timeMs }) => timeMs));
  for (const [index, uplink] of arrivals.entries()) run.receive(uplink, fromMs + Minutes(1 + index));
  return run;
}

t.test('the order does not matter in a month of uplinks that come as late as the lock’s buffer allows', async (t) => {
  for (let seed = 1; seed <= MONTHS; seed++) {
    const random = new Prng(`month ${seed}`);
    const sent = sentOnWalk(seed, 30);
    const inOrder = judged(sent, sent.uplinks);
    // One in ten uplinks arrives twice.
    const arrivals = withRepeats(random, displaced(random, sent.uplinks, BUFFERED_UPLINKS), 0.1);
    t.equal(stateText(judged(sent, arrivals)), stateText(inOrder), `seed ${seed}, ${sent.uplinks.length} uplinks`);
  }
});

/** The parts of a gateway's final state that must not depend on the order of arrival. */
interface FinalState {
  readonly stored: readonly string[];
  readonly eventIds: readonly string[];
  readonly state: unknown;
  readonly findings: readonly string[];
}

const MAC = testMac();
/** How many uplinks are sent at once. */
const MAX_IN_FLIGHT = 40;
/** A limit for reading that is greater than the number of stored records. */
const READ_LIMIT = 5000;

/** Sends the uplinks in the given order to a new gateway, and returns its final state. */
async function ingested(test: Teardown, arrivals: readonly Uplink[]): Promise<FinalState> {
  const gateway = await testGateway(test);
  const lock = await connectedLock(test, gateway, MAC);
  const announced = waitForEvents(gateway, 'uplink', arrivals.length);
  for (let next = 0; next < arrivals.length; next += MAX_IN_FLIGHT) {
    const selected = arrivals.slice(next, next + MAX_IN_FLIGHT);
    await Promise.all(selected.map((uplink) => lock.send(Buffer.from(encodeUplink(uplink)))));
  }
  const ids = (await announced).filter(({ uplink }) => uplink.body.kind !== 'ack').map(({ eventId }) => eventId);
  const finalState = await readFinalState(gateway, ids);
  const isForced = true;
  await lock.client.endAsync(isForced);
  await gateway.close();
  return finalState;
}

async function readFinalState(gateway: Gateway, eventIds: readonly string[]): Promise<FinalState> {
  const stored = await gateway.store.findDevice(MAC);
  if (stored === null) throw new Error('the gateway does not know the lock');
  const { belief, ping } = JSON.parse(stored.state ?? 'null');
  const { power, batteryPercent, lockState, position, highWindow, state } = belief;
  const events = await gateway.store.readEvents(stored.device.merchantId, LOG_START, READ_LIMIT);
  const findings = (await gateway.store.readFindings(stored.device.id, READ_LIMIT))
    .filter(({ finding }) => findRule(finding.rule)?.restsOn === 'content')
    .map(({ finding }) => `${finding.rule} ${finding.about?.boot}/${finding.about?.sequence}`);
  return {
    stored: events.map(({ boot, sequence, bytes }) => `${boot}/${sequence} ${bytes.toString('hex')}`).sort(),
    eventIds: [...new Set(eventIds)].sort(),
    state: { power, batteryPercent, lockState, position, highWindow, state, ping },
    findings: [...new Set(findings)].sort(),
  };
}

t.test(
  'what a gateway stores, believes and emits does not depend on the order and repetition of uplinks',
  async (t) => {
    for (const [seed, name] of ['a true lock', 'LOW_BATTERY: stateChange on', 'a period ping every 6 h'].entries()) {
      const lock = LOCKS.find((candidate) => candidate.name === name);
      if (lock === undefined) throw new Error(`there is no lock ${name}`);
      const random = new Prng(`gateway ${seed}`);
      const { uplinks: all } = sentOnWalk(seed + 1, WALK_DAYS, lock);
      // Some uplinks have the same key and contradict each other, and so do the very last ones.
      const uplinks = withConflicts(random, all.slice(-(MAX_SHUFFLED_UPLINKS - SHUFFLED_MARGIN)), CONFLICT_SHARE);
      const last = all.findLast(isPingUplink);
      if (last !== undefined) uplinks.push({ ...last, timeMs: last.timeMs + 1 });
      const inOrder = await ingested(t, uplinks);
      t.ok(inOrder.stored.length > 50 && inOrder.findings.length > 0, `${name}: ${inOrder.stored.length} pings`);
      t.equal(inOrder.eventIds.length, inOrder.stored.length, 'each stored ping has an event');
      for (let order = 1; order <= ORDERS; order++) {
        const arrivals = withRepeats(random, shuffled(random, uplinks), REPEAT_SHARE);
        t.same(await ingested(t, arrivals), inOrder, `${formatMac(MAC)} as ${name}, order ${order}`);
      }
    }
  },
);
