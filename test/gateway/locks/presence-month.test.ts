// Presence matches the model for a simulated month of mixed modes, with outages, restarts of the gateway, lost
// acknowledgements and connections whose end is noticed late. The oracle (presence/truth.ts) knows what really
// happened and protocol.md §3, and shares no code with the judge.
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import type { DeviceState } from '../../../gateway/locks/device-state.js';
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import { type Presence, presence } from '../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
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
const SPAN = Days(30);
const TOLD_WITHIN = Minutes(1);
const ALL = 1_000_000;

/** What a list shows about a lock at some moment. */
interface Shown {
  readonly atMs: number;
  readonly lock: MonthLock;
  readonly presence: Presence;
}

const nameOf = (shown: Presence): string => (shown.presence === 'late' ? shown.rule : shown.presence);

/** Reads all locks as the operator's list does: the stored states, at this moment. */
async function look(month: PresenceMonth, shown: Shown[]): Promise<void> {
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

const LATE: readonly string[] = ['period-overdue', 'window-offline', 'recovery-offline'];
const isLong = ({ fromMs, toMs }: { fromMs: number; toMs: number }): boolean => toMs - fromMs > TOLD_WITHIN;
const isIn = (atMs: number, { fromMs, toMs }: { fromMs: number; toMs: number }): boolean =>
  fromMs <= atMs && atMs <= toMs;
const toText = (atMs: number): string => new Date(atMs).toISOString();

/** The late times that were not reported, and the reported ones that are not true. */
function compareTold(
  stretches: readonly PresencePeriod[],
  told: readonly { atMs: number; rule: SilenceRule }[],
): string[] {
  const lates = stretches.filter((each) => LATE.includes(each.presence));
  const faults: string[] = [];
  for (const late of lates.filter(isLong)) {
    const at = told.filter(({ atMs, rule }) => rule === late.presence && isIn(atMs, late));
    if (at.length !== 1 || (at[0] as { atMs: number }).atMs > late.fromMs + TOLD_WITHIN)
      faults.push(`${late.presence} after ${toText(late.fromMs)} was told ${at.map(({ atMs }) => toText(atMs))}`);
  }
  for (const { atMs, rule } of told) {
    if (!lates.some((late) => late.presence === rule && isIn(atMs, late)))
      faults.push(`${rule} was told at ${toText(atMs)} and is not true`);
  }
  return faults;
}

t.test('reported presence matches the truth for a month', async (t) => {
  const seed = Number(process.env.LOCKGATE_SEED ?? 1);
  t.comment(`LOCKGATE_SEED=${seed} node dist/test/gateway/locks/presence-month.test.js: another seed is another month`);
  const month = await PresenceMonth.start(seed, tempFolder(t), LOCKS, SPAN);
  const random = new Prng(`looks ${seed}`);
  const endMs = month.startMs + SPAN;
  const shown: Shown[] = [];
  const absences = randomOutages(random, month.startMs, endMs);
  for (const absence of absences) {
    await lookUntil(absence.atMs);
    await month.runThroughOutage(absence);
    await look(month, shown);
  }
  await lookUntil(endMs);

  async function lookUntil(untilMs: number): Promise<void> {
    while (month.clock.now() < untilMs) {
      await month.runUntil(Math.min(untilMs, month.clock.now() + Math.round(random.between(Minutes(1), Hours(5)))));
      await look(month, shown);
    }
  }

  const counts = new Map<string, number>();
  const count = (what: string, by = 1): void => void counts.set(what, (counts.get(what) ?? 0) + by);
  for (const lock of month.locks) {
    const truth = truthOf(lock.link.storedEvents, month.startMs, endMs);
    for (const each of truth.presence) count(each.presence);
    count('lost acknowledgements', lock.link.lostAcks);
    count('uplinks', lock.link.storedEvents.filter(({ what }) => what === 'received').length);
    await t.test(`${formatMac(lock.mac)}, ${lock.history.name}`, async (t) => {
      const told = month.presenceEvents.flatMap(({ mac, atMs, presence: now }) =>
        mac === lock.mac && now.presence === 'late' ? [{ atMs, rule: now.rule }] : [],
      );
      t.same(compareTold(truth.presence, told), [], `${told.length} late times were reported`);
      t.same(await compareFindings(month, lock, truth.latenesses), [], 'findings');
      t.same(
        compareShown(
          shown.filter((each) => each.lock === lock),
          truth,
        ),
        [],
        'as lists show it',
      );
    });
  }
  await month.close();
  t.comment(
    JSON.stringify({
      ...Object.fromEntries(counts),
      absences: absences.length,
      looks: shown.length,
      told: month.presenceEvents.length,
    }),
  );
  for (const [what, least] of [
    ['period-overdue', 5],
    ['window-offline', 5],
    ['recovery-offline', 3],
    ['airplane', 5],
    ['low-battery', 5],
    ['never-seen', 1],
    ['online', 500],
    ['lost acknowledgements', 100],
  ] as const)
    t.ok((counts.get(what) ?? 0) >= least, `${what}: ${counts.get(what)}, so there was something to see`);
});

/** Compares each rule's findings with the times in which the rule was broken. */
async function compareFindings(
  month: PresenceMonth,
  lock: MonthLock,
  latenesses: readonly Lateness[],
): Promise<string[]> {
  const found = (await month.store.readFindings(lock.deviceId, ALL)).flatMap(({ finding: { rule, atMs } }) =>
    LATE.includes(rule) ? [{ atMs, rule: rule as SilenceRule }] : [],
  );
  const faults: string[] = [];
  for (const late of latenesses) {
    const at = found.filter(({ rule, atMs }) => rule === late.rule && isIn(atMs, late));
    if ((isLong(late) ? at.length !== 1 : at.length > 1) || at.some(({ atMs }) => atMs > late.fromMs + TOLD_WITHIN))
      faults.push(`${late.rule} after ${toText(late.fromMs)} was found ${at.map(({ atMs }) => toText(atMs))}`);
  }
  for (const { atMs, rule } of found) {
    if (!latenesses.some((late) => late.rule === rule && isIn(atMs, late)))
      faults.push(`${rule} was found at ${toText(atMs)} and is not true`);
  }
  return faults;
}

function compareShown(shown: readonly Shown[], truth: Truth): string[] {
  const faults: string[] = [];
  for (const { atMs, presence: now } of shown) {
    // A time that ends at the moment of the reading may count as ended or not.
    const could = truth.presence.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs);
    const is = could.find((each) => each.presence === nameOf(now));
    if (is === undefined) faults.push(`${toText(atMs)}: ${nameOf(now)} and not ${could.map((each) => each.presence)}`);
    // The lock may have been connected in between.
    const isSince = ({ rule, fromMs, toMs }: Lateness): boolean =>
      now.presence === 'late' && rule === now.rule && fromMs === now.sinceMs && atMs <= toMs;
    if (now.presence === 'late' && !truth.latenesses.some(isSince))
      faults.push(`${toText(atMs)}: ${now.rule} since ${toText(now.sinceMs)}, which is not when it began`);
    if (now.presence === 'asleep' && now.dueMs !== null && now.dueMs < atMs)
      faults.push(`${toText(atMs)}: due at ${toText(now.dueMs)}, which has passed`);
  }
  return faults;
}
