/**
 * Adds the tests of losses of power, in a quick or a long form: the gateway is killed repeatedly while locks send, and
 * each kill also undoes all writes without an fsync (quality.md §2). A second test proves that the run finds a
 * loss: with SQLite's setting synchronous NORMAL, which loses nothing in kills, the same run must lose acknowledged
 * pings. The gateway may then also refuse the store as damaged.
 */
import type { Test } from 'tap';
import { chooseSeed } from '../pair/seeded-chance.js';
import { SYNCHRONOUS_NORMAL } from '../store/synchronous-normal.js';
import { summarize } from './delivery-check.js';
import { KillRun, type KillRunOptions } from './kill-run.js';
import { PowerLoss } from './power-loss.js';

/** Two hours: the long form may take one. */
const MAX_RUN_MS = 7_200_000;
/** With NORMAL, a loss of power right after SQLite synced its log loses no ping, so up to this many seeds are tried. */
const MAX_TRIES = 3;

/** Adds both tests. The second has `sabotagedKills` kills. `file` is the test file to run for a repetition. */
export function testPowerLoss(t: Test, load: Omit<KillRunOptions, 'seed'>, sabotagedKills: number, file: string): void {
  const seed = chooseSeed();
  const repeat = `LOCKGATE_SEED=${seed} npm test -- ${file}`;
  const powerLoss = PowerLoss.build(t);
  const skip = powerLoss === undefined ? 'there is no g++ to build the library that records writes' : false;
  t.setTimeout(MAX_RUN_MS);
  t.comment(`seed ${seed}, options ${JSON.stringify(load)}; repeat: ${repeat}`);

  t.test(`${load.kills} losses of power lose no acknowledged ping`, { skip }, async (t) => {
    t.setTimeout(MAX_RUN_MS);
    const result = await KillRun.run(t, { ...load, seed, powerLoss });
    t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks, ${result.bytesLost} bytes lost`);
    t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
    t.same(result.integrity, ['ok', 'ok'], 'the file is intact after a loss of power and after a stop');
    t.same(result.errorLines, [], 'the gateway wrote nothing to stderr');
    t.same(result.exitCodes, [0]);
  });

  t.test('losses of power with synchronous NORMAL lose acknowledged pings', { skip }, async (t) => {
    t.setTimeout(MAX_RUN_MS);
    const sabotaged = {
      ...load,
      seed,
      kills: sabotagedKills,
      powerLoss,
      environment: SYNCHRONOUS_NORMAL,
      acceptsDamage: true,
      checksFile: false,
    };
    let missing = 0;
    for (let attempt = 0; missing === 0 && attempt < MAX_TRIES; attempt += 1) {
      const { findings, acked, bytesLost } = await KillRun.run(t, { ...sabotaged, seed: seed + attempt });
      missing = findings.filter(({ broken }) => broken === 'missing').length;
      t.comment(`${missing} of ${acked} acknowledged pings never arrived; ${bytesLost} bytes lost`);
      t.ok(bytesLost > 0, 'some writes had not been synced');
    }
    t.ok(missing > 0, `acknowledged pings are missing; repeat: ${repeat}`);
  });
}
