/** Some seconds of load with connections that come and go (quality.md §2). Long version: test/long/soak.test.ts. */
import t from 'tap';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { countEstablished, runSoak } from '../helpers/soak/soak-run.js';

const seed = chooseSeed();
const LOCKS = 100;
/** The expected result: no ping is missing, none was invented, and the gateway stops without a complaint. */
const EXPECTED_RESULT = { missing: 0, neverSent: 0, mistakes: [], errorLines: [], exitCode: 0 };

/** After the load, the check fails once no more webhooks have arrived for `stallSeconds`. */
const stallSeconds = 3;

/** Descriptors that come and go in normal work. A leak would grow with each of the many reconnects. */
const MAX_DESCRIPTOR_GROWTH = 20;

t.setTimeout(120_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} node dist/test/system/soak.slow.test.js`);

t.test('connections that come and go leak nothing, and every ping arrives once', async (t) => {
  const run = await runSoak(t, { seed, locks: LOCKS, measurements: 3, secondsBetweenMeasurements: 2, stallSeconds });
  for (const { connections, sockets } of run.measurements) {
    t.equal(sockets, LOCKS);
    t.equal(connections, sockets);
  }
  t.ok(run.acked > LOCKS, `${run.acked} pings were acknowledged`);
  t.ok(run.tally.connects > LOCKS, 'some locks reconnected');
  const { missing, neverSent, mistakes, errorLines, exitCode } = run;
  t.same({ missing, neverSent, mistakes, errorLines, exitCode }, EXPECTED_RESULT);
  // The first measurement is taken before the load, when no lock has connected again.
  const [before, after] = [run.measurements.at(1), run.measurements.at(-1)];
  t.ok((after?.descriptors ?? 0) <= (before?.descriptors ?? 0) + MAX_DESCRIPTOR_GROWTH, 'descriptors did not grow');
});

t.test('a connection that the system lists twice counts once', async (t) => {
  // Rows of /proc/net/tcp: addresses and ports in hex; state 0A is listening, 01 established, 08 half closed.
  const row = (local: string, remote: string, state: string): string =>
    `   0: ${local} ${remote} ${state} 00000000:00000000`;
  const [ours, other] = ['0100007F:7148', '0100007F:7149'];
  const table = [
    '  sl  local_address rem_address   st tx_queue',
    row(ours, '00000000:0000', '0A'),
    row(ours, '0100007F:C001', '01'),
    row(ours, '0100007F:C002', '01'),
    row(ours, '0100007F:C003', '08'),
    row(other, '0100007F:C004', '01'),
    row(ours, '0100007F:C001', '01'),
    '',
  ].join('\n');
  t.equal(countEstablished(table, 0x7148), 2);
});

t.test('the check detects a gateway that skips events', async (t) => {
  const run = await runSoak(t, {
    seed,
    locks: LOCKS,
    measurements: 1,
    secondsBetweenMeasurements: 1,
    stallSeconds,
    sabotage: 'skip-event',
  });
  t.ok(run.missing > 0, `${run.missing} of ${run.acked} pings are missing`);
});
