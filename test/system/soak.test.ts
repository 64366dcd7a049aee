/** The quick form of test/long/soak.test.ts: some seconds of load whose connections come and go (quality.md §2). */
import t from 'tap';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { establishedIn, runSoak } from '../helpers/soak/soak-run.js';

const seed = chooseSeed();
/** What the merchant's count and the gateway's end must say. */
const AS_PROMISED = { missing: 0, neverSent: 0, wrongs: [], complaints: [], exitCode: 0 };

t.setTimeout(120_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} node dist/test/system/soak.test.js`);

t.test('connections that come and go leave nothing behind, and every ping arrives once', async (t) => {
  const run = await runSoak(t, { seed, locks: 200, looks: 3, secondsBetweenLooks: 2, stillSeconds: 3 });
  for (const { connections, sockets } of run.looks) {
    t.equal(sockets, 200);
    t.equal(connections, sockets);
  }
  t.ok(run.acked > 200, `${run.acked} pings were acknowledged`);
  t.ok(run.tally.connects > 200, 'some came back');
  const { missing, neverSent, wrongs, complaints, exitCode } = run;
  t.same({ missing, neverSent, wrongs, complaints, exitCode }, AS_PROMISED);
  const [before, after] = [run.looks.at(1), run.looks.at(-1)];
  t.ok((after?.descriptors ?? 0) <= (before?.descriptors ?? 0) + 20, 'descriptors are what they were');
});

t.test('a connection that the system lists twice counts once', async (t) => {
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
  t.equal(establishedIn(table, 0x7148), 2);
});

t.test('a gateway that leaves out events is found', async (t) => {
  const run = await runSoak(t, {
    seed,
    locks: 200,
    looks: 1,
    secondsBetweenLooks: 1,
    stillSeconds: 3,
    sabotage: 'skip-event',
  });
  t.ok(run.missing > 0, `${run.missing} of ${run.acked} pings are missing`);
});
