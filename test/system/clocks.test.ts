/**
 * A machine's clock that leaps, at a start or while the gateway runs (quality.md §2), as libfaketime shows it to real
 * `serve` processes: nothing irreversible is done on its word until it is confirmed, and all else goes on.
 */
import t, { type Test } from 'tap';
import { monthOf } from '../../gateway/usage/month.js';
import { Days, Hours, systemClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import { ClockSite } from '../helpers/clocks/clock-site.js';
import { whyNoSetClock } from '../helpers/clocks/set-clock.js';

const skip = whyNoSetClock() ?? false;
const LEAP = Days(401);
t.setTimeout(170_000);

/** What a leap may not end: the month under way is not closed, and the command waits. */
async function endsNothing(t: Test, site: ClockSite, commandId: number): Promise<void> {
  const month = monthOf(systemClock.now());
  await t.rejects(
    site.client.get(`/usage/statements?month=${month}`),
    { code: 'no-such-statement' },
    'no month closed',
  );
  t.match(await site.client.get(`/commands/${commandId}`), { state: 'queued' }, 'no command expired');
}

/** A command that expires in a day, for a lock that does not listen. */
async function waitingCommand(site: ClockSite): Promise<number> {
  const body = { macs: [formatMac(site.first.mac)], type: 'set-power', parameters: { mode: 'HIGH' } };
  const { commands } = await site.client.post<{ commands: { id: number }[] }>('/commands', body);
  return commands[0]?.id ?? 0;
}

/** Every lock sends a ping by its own clock, and the merchant gets all of them. */
async function allPing(t: Test, site: ClockSite, offMs = 0): Promise<void> {
  for (const lock of site.locks) await site.ping(lock, offMs);
  await site.delivered();
  const made = site.locks.map((lock) => lock.made);
  t.same(await site.storedPings(), made, 'every ping is stored');
  t.match(await site.client.get('/webhooks'), { webhooks: [{ state: 'active' }] }, 'no URL is disabled');
}

t.test('a start 401 days ahead ends nothing, until five locks confirm it', { skip }, async (t) => {
  const site = await ClockSite.open(t, 6);
  const command = await waitingCommand(site);
  await site.stop();

  site.clock.set('+401d');
  await site.start();
  await endsNothing(t, site, command);
  t.match(await site.clockStatus(), { state: 'ahead', locks_agreeing: 0, locks_needed: 5 });
  t.match(await site.clockNotice('ahead'), { text: /401 d.*confirm-clock/, resolved_at: null });
  await allPing(t, site);
  const { run_clock } = await site.client.get<{ run_clock: string }>('/status');
  t.ok(Math.abs(Date.parse(run_clock) - systemClock.now()) < Hours(1), 'the run’s clock did not go along');
  t.match(await site.clockStatus(), { state: 'ahead', locks_agreeing: 0 }, 'locks that disagree confirm nothing');

  for (const lock of site.locks.slice(0, 5)) await site.ping(lock, LEAP);
  t.match(await site.clockStatus(), { state: 'agrees' }, 'five that agree do');
  t.match(await site.clockNotice('ahead'), { resolved_at: /^2/ });
  await site.told('command', ({ state }) => state === 'expired');
  await site.told('statement-closed');
  await allPing(t, site, LEAP);
  await site.stop();
});

t.test('a start 401 days ahead that was wrong leaves no trace once it is put right', { skip }, async (t) => {
  const site = await ClockSite.open(t, 2);
  const command = await waitingCommand(site);
  await site.stop();
  site.clock.set('+401d');
  await site.start();
  t.match(await site.clockStatus(), { state: 'ahead', locks_needed: 2 }, 'all of them, where there are fewer');
  await allPing(t, site);
  await site.stop();

  site.clock.set('+0');
  await site.start();
  await endsNothing(t, site, command);
  t.match(await site.clockStatus(), { state: 'agrees', since: null });
  t.match(await site.clockNotice('ahead'), { resolved_at: /^2/ }, 'the notice is over');
  const { run_clock } = await site.client.get<{ run_clock: string }>('/status');
  t.ok(Math.abs(Date.parse(run_clock) - systemClock.now()) < Hours(1), 'and time is what it was');
  await allPing(t, site);
  await site.stop();
});

t.test('steps while it runs: forward, back, and confirmed by an operator', { skip }, async (t) => {
  const site = await ClockSite.open(t, 3);
  const command = await waitingCommand(site);
  for (const [offset, state] of [
    ['+5d', 'ahead'],
    ['+401d', 'ahead'],
    ['-1h', 'behind'],
    ['-10y', 'behind'],
  ] as const) {
    site.clock.set(offset);
    await site.tells(state);
    await allPing(t, site);
    await endsNothing(t, site, command);
    t.match(await site.clockNotice(state), { resolved_at: null }, offset);
    site.clock.set('+0');
    await site.tells('agrees');
    t.match(await site.clockNotice(state), { resolved_at: /^2/ }, `${offset}, and over`);
  }
  site.clock.set('+5d');
  await site.tells('ahead');
  const confirmed = await site.serve.json('config', 'confirm-clock');
  t.match(confirmed, { confirmed: true, before: { state: 'ahead' }, clock: { state: 'agrees' } });
  await site.tells('agrees');
  await allPing(t, site, Days(5));
  t.match(await site.client.get('/audit?limit=1'), { entries: [{ action: 'clock.confirm', outcome: 'done' }] });
  await site.stop();
});
