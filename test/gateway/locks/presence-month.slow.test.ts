/**
 * The presence that the gateway reports (online, asleep, late …) is true for ten simulated days of locks in mixed
 * modes, with outages, restarts of the gateway, lost acknowledgements and connections whose close is noticed late. The
 * true presence comes from helpers/presence/truth.ts, which follows protocol.md §3 and shares no code with the gateway.
 * Long version, for a month: test/long/sizes/presence-month.test.ts.
 */
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import type { DeviceState } from '../../../gateway/locks/device-state.js';
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import { type Presence, presence } from '../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { type MonthLock, PresenceMonth, randomOutages } from '../../helpers/presence/month.js';
import {
  type Lateness,
  type PresencePeriod,
  type SilenceRule,
  type Truth,
  truthOf,
} from '../../helpers/presence/truth.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const LOCKS = 24;
const SPAN = quickOrLong(Days(10), Days(30));
/** The longest time between the moment when a lock becomes late and the gateway's report of it. */
const MAX_REPORT_DELAY = Minutes(1);
const MAX_FINDINGS = 1_000_000;

/** What a list shows about a lock at some moment. */
interface ShownPresence {
  readonly atMs: number;
  readonly lock: MonthLock;
  readonly presence: Presence;
}

/** The name that the truth has for a presence: of a late lock, the broken rule. */
const presenceName = (shown: Presence): string => (shown.presence === 'late' ? shown.rule : shown.presence);

/** Reads all locks as the operator's list does: the stored states, at this moment. */
async function readShown(month: PresenceMonth, shown: ShownPresence[]): Promise<void> {
  if (!month.isGatewayRunning) return;
  const atMs = month.clock.now();
  const states = new Map((await month.store.readDeviceStates()).map(({ deviceId, state }) => [deviceId, state]));
  for (const lock of month.locks) {
    const json = states.get(lock.deviceId);
    const now: Presence =
      json === undefined
        ? { presence: 'never-seen' }
        : presence(POWER_MODEL, (JSON.parse(json) as DeviceState).belief, atMs);
    shown.push({ atMs, lock, presence: now });
  }
}

const LATE_RULES: readonly string[] = ['period-overdue', 'window-offline', 'recovery-offline'];
const isLong = ({ fromMs, toMs }: { fromMs: number; toMs: number }): boolean => toMs - fromMs > MAX_REPORT_DELAY;
const isIn = (atMs: number, { fromMs, toMs }: { fromMs: number; toMs: number }): boolean =>
  fromMs <= atMs && atMs <= toMs;
const toText = (atMs: number): string => new Date(atMs).toISOString();

/** The late times that were not reported, and the reported ones that are not true. */
function compareReported(
  periods: readonly PresencePeriod[],
  reported: readonly { atMs: number; rule: SilenceRule }[],
): string[] {
  const lates = periods.filter((each) => LATE_RULES.includes(each.presence));
  const faults: string[] = [];
  for (const late of lates.filter(isLong)) {
    const reports = reported.filter(({ atMs, rule }) => rule === late.presence && isIn(atMs, late));
    if (reports.length !== 1 || (reports[0] as { atMs: number }).atMs > late.fromMs + MAX_REPORT_DELAY)
      faults.push(
        `${late.presence} after ${toText(late.fromMs)} was reported ${reports.map(({ atMs }) => toText(atMs))}`,
      );
  }
  for (const { atMs, rule } of reported) {
    if (!lates.some((late) => late.presence === rule && isIn(atMs, late)))
      faults.push(`${rule} was reported at ${toText(atMs)} and is not true`);
  }
  return faults;
}

t.test('reported presence matches the truth for days and nights in all modes', async (t) => {
  const seed = Number(process.env.LOCKGATE_SEED ?? 1);
  t.comment(`LOCKGATE_SEED=${seed} npm test -- test/gateway/locks/presence-month.slow.test.ts: other days`);
  const month = await PresenceMonth.start(seed, tempFolder(t), LOCKS, SPAN);
  const random = new Prng(`looks ${seed}`);
  const endMs = month.startMs + SPAN;
  const shown: ShownPresence[] = [];
  const outages = randomOutages(random, month.startMs, endMs);
  for (const outage of outages) {
    await runAndReadUntil(outage.atMs);
    await month.runThroughOutage(outage);
    await readShown(month, shown);
  }
  await runAndReadUntil(endMs);

  async function runAndReadUntil(untilMs: number): Promise<void> {
    while (month.clock.now() < untilMs) {
      await month.runUntil(Math.min(untilMs, month.clock.now() + Math.round(random.between(Minutes(1), Hours(5)))));
      await readShown(month, shown);
    }
  }

  const counts = new Map<string, number>();
  const count = (kind: string, by = 1): void => void counts.set(kind, (counts.get(kind) ?? 0) + by);
  for (const lock of month.locks) {
    const truth = truthOf(lock.link.storedEvents, month.startMs, endMs);
    for (const each of truth.presence) count(each.presence);
    count('lost acknowledgements', lock.link.lostAcks);
    count('uplinks', lock.link.storedEvents.filter(({ what }) => what === 'received').length);
    await t.test(`${formatMac(lock.mac)}, ${lock.history.name}`, async (t) => {
      const reported = month.presenceEvents.flatMap(({ mac, atMs, presence: now }) =>
        mac === lock.mac && now.presence === 'late' ? [{ atMs, rule: now.rule }] : [],
      );
      t.same(compareReported(truth.presence, reported), [], `${reported.length} late times were reported`);
      t.same(await compareFindings(month, lock, truth.latenesses), [], 'findings');
      t.same(
        compareShown(
          shown.filter((each) => each.lock === lock),
          truth,
        ),
        [],
        'presence in lists',
      );
    });
  }
  await month.close();
  t.comment(
    JSON.stringify({
      ...Object.fromEntries(counts),
      outages: outages.length,
      readings: shown.length,
      reported: month.presenceEvents.length,
    }),
  );
  // How often each kind must occur in 30 days; in a shorter span, correspondingly less often.
  for (const [kind, minimum] of [
    ['period-overdue', 5],
    ['window-offline', 5],
    ['recovery-offline', 3],
    ['airplane', 5],
    ['low-battery', 5],
    ['never-seen', 1],
    ['online', 500],
    ['lost acknowledgements', 100],
  ] as const)
    t.ok(
      (counts.get(kind) ?? 0) >= Math.max(1, Math.floor(minimum * (SPAN / Days(30)))),
      `${kind}: ${counts.get(kind)}, enough to test it`,
    );
});

/** Compares each rule's findings with the times in which the rule was broken. */
async function compareFindings(
  month: PresenceMonth,
  lock: MonthLock,
  latenesses: readonly Lateness[],
): Promise<string[]> {
  const found = (await month.store.readFindings(lock.deviceId, MAX_FINDINGS)).flatMap(({ finding: { rule, atMs } }) =>
    LATE_RULES.includes(rule) ? [{ atMs, rule: rule as SilenceRule }] : [],
  );
  const faults: string[] = [];
  for (const late of latenesses) {
    const findings = found.filter(({ rule, atMs }) => rule === late.rule && isIn(atMs, late));
    if (
      (isLong(late) ? findings.length !== 1 : findings.length > 1) ||
      findings.some(({ atMs }) => atMs > late.fromMs + MAX_REPORT_DELAY)
    )
      faults.push(`${late.rule} after ${toText(late.fromMs)} was found ${findings.map(({ atMs }) => toText(atMs))}`);
  }
  for (const { atMs, rule } of found) {
    if (!latenesses.some((late) => late.rule === rule && isIn(atMs, late)))
      faults.push(`${rule} was found at ${toText(atMs)} and is not true`);
  }
  return faults;
}

/** The shown presences that differ from the truth, in words. */
function compareShown(shown: readonly ShownPresence[], truth: Truth): string[] {
  const faults: string[] = [];
  for (const { atMs, presence: now } of shown) {
    // A time that ends at the moment of the reading may count as ended or not.
    const possible = truth.presence.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs);
    if (!possible.some((each) => each.presence === presenceName(now)))
      faults.push(`${toText(atMs)}: ${presenceName(now)} and not ${possible.map((each) => each.presence)}`);
    // A connection may change the presence for a while without ending the lateness, whose start is shown.
    const isSince = ({ rule, fromMs, toMs }: Lateness): boolean =>
      now.presence === 'late' && rule === now.rule && fromMs === now.sinceMs && atMs <= toMs;
    if (now.presence === 'late' && !truth.latenesses.some(isSince))
      faults.push(`${toText(atMs)}: ${now.rule} since ${toText(now.sinceMs)}, which is not its start`);
    if (now.presence === 'asleep' && now.dueMs !== null && now.dueMs < atMs)
      faults.push(`${toText(atMs)}: due at ${toText(now.dueMs)}, which has passed`);
  }
  return faults;
}
