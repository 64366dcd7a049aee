/**
 * A machine's clock leaps, at a start or while the gateway runs (quality.md §2). Until the new time is confirmed, the
 * gateway does nothing irreversible by it, and everything else works as usual. libfaketime changes the clock that real
 * `serve` processes see.
 */
import t, { type Test } from 'tap';
import { monthOf } from '../../gateway/usage/month.js';
import { Days, Hours, systemClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import { ClockSetup } from '../helpers/clocks/clock-setup.js';
import { whyNoSetClock } from '../helpers/clocks/set-clock.js';

const skip = whyNoSetClock() ?? false;
/** Longer than pings are stored by default. */
const LEAP = Days(401);
t.setTimeout(170_000);

/** Asserts that a leap ended nothing: the present month is not closed, and the command still waits. */
async function assertNothingExpired(t: Test, site: ClockSetup, commandId: number): Promise<void> {
  const month = monthOf(systemClock.now());
  await t.rejects(
    site.client.get(`/usage/statements?month=${month}`),
    { code: 'no-such-statement' },
    'no month closed',
  );
  t.match(await site.client.get(`/commands/${commandId}`), { state: 'queued' }, 'no command expired');
}

/** Requests a command that expires in a day, for a lock that never subscribes to commands. Returns the command's id. */
async function requestCommand(site: ClockSetup): Promise<number> {
  const body = { macs: [formatMac(site.first.mac)], type: 'set-power', parameters: { mode: 'HIGH' } };
  const { commands } = await site.client.post<{ commands: { id: number }[] }>('/commands', body);
  return commands[0]?.id ?? 0;
}

/** Every lock sends a ping, stamped `offMs` ahead of real time; asserts that the merchant receives all of them. */
async function pingFromAllLocks(t: Test, site: ClockSetup, offMs = 0): Promise<void> {
  for (const lock of site.locks) await site.ping(lock, offMs);
  await site.waitForDelivery();
  const pingCounts = site.locks.map((lock) => lock.pingCount);
  t.same(await site.storedPings(), pingCounts, 'every ping is stored');
  t.match(await site.client.get('/webhooks'), { webhooks: [{ state: 'active' }] }, 'no URL is disabled');
}

t.test('after a start 401 days ahead nothing expires until five locks confirm the clock', { skip }, async (t) => {
  const site = await ClockSetup.open(t, 6);
  const command = await requestCommand(site);
  await site.stop();

  site.clock.set('+401d');
  await site.start();
  await assertNothingExpired(t, site, command);
  t.match(await site.clockStatus(), { state: 'ahead', locks_agreeing: 0, locks_needed: 5 });
  t.match(await site.clockNotice('ahead'), { text: /401 d.*confirm-clock/, resolved_at: null });
  await pingFromAllLocks(t, site);
  const { run_clock } = await site.client.get<{ run_clock: string }>('/status');
  t.ok(
    Math.abs(Date.parse(run_clock) - systemClock.now()) < Hours(1),
    'the run’s clock, by which locks are judged, did not leap',
  );
  t.match(
    await site.clockStatus(),
    { state: 'ahead', locks_agreeing: 0 },
    'locks that disagree with the clock do not confirm it',
  );

  for (const lock of site.locks.slice(0, 5)) await site.ping(lock, LEAP);
  t.match(await site.clockStatus(), { state: 'agrees' }, 'five locks that agree with the clock confirm it');
  t.match(await site.clockNotice('ahead'), { resolved_at: /^2/ });
  await site.nextEvent('command', ({ state }) => state === 'expired');
  await site.nextEvent('statement-closed');
  await pingFromAllLocks(t, site, LEAP);
  await site.stop();
});

t.test('a wrong clock 401 days ahead leaves no trace after it is corrected', { skip }, async (t) => {
  const site = await ClockSetup.open(t, 2);
  const command = await requestCommand(site);
  await site.stop();
  site.clock.set('+401d');
  await site.start();
  t.match(await site.clockStatus(), { state: 'ahead', locks_needed: 2 }, 'with fewer than five locks, all must agree');
  await pingFromAllLocks(t, site);
  await site.stop();

  site.clock.set('+0');
  await site.start();
  await assertNothingExpired(t, site, command);
  t.match(await site.clockStatus(), { state: 'agrees', since: null });
  t.match(await site.clockNotice('ahead'), { resolved_at: /^2/ }, 'the notice is resolved');
  const { run_clock } = await site.client.get<{ run_clock: string }>('/status');
  t.ok(Math.abs(Date.parse(run_clock) - systemClock.now()) < Hours(1), 'the run’s clock shows real time');
  await pingFromAllLocks(t, site);
  await site.stop();
});

t.test(
  'the clock steps forward and back while the gateway runs, and an operator confirms a step',
  { skip },
  async (t) => {
    const site = await ClockSetup.open(t, 3);
    const command = await requestCommand(site);
    for (const [offset, state] of [
      ['+5d', 'ahead'],
      ['+401d', 'ahead'],
      ['-1h', 'behind'],
      ['-10y', 'behind'],
    ] as const) {
      site.clock.set(offset);
      await site.waitForClockState(state);
      await pingFromAllLocks(t, site);
      await assertNothingExpired(t, site, command);
      t.match(await site.clockNotice(state), { resolved_at: null }, offset);
      site.clock.set('+0');
      await site.waitForClockState('agrees');
      t.match(await site.clockNotice(state), { resolved_at: /^2/ }, `${offset}, corrected`);
    }
    site.clock.set('+5d');
    await site.waitForClockState('ahead');
    const confirmed = await site.serve.json('config', 'confirm-clock');
    t.match(confirmed, { confirmed: true, before: { state: 'ahead' }, clock: { state: 'agrees' } });
    await site.waitForClockState('agrees');
    await pingFromAllLocks(t, site, Days(5));
    // Near the end of a month the step also closes the month, which is audited too.
    const { entries } = await site.client.get<{ entries: unknown[] }>('/audit?action=clock.confirm&limit=1');
    t.match(entries, [{ action: 'clock.confirm', outcome: 'done' }]);
    await site.stop();
  },
);
