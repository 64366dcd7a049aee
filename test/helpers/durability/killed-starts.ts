/** Adds the test that a gateway starts on a data folder although its first starts there were killed. */
import type { Test } from 'tap';
import { realDelay } from '../clocks/change-signal.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';

/** About how long a start takes, until the gateway listens; each kill comes at a random moment before this. */
const MAX_START_MS = 700;
/** A gateway stops within this time. */
const STOP_SECONDS = 5;
/** The number of starts that are killed on each new folder. */
const KILLS = 3;

/** `folders` is the number of new data folders; `repeat` is the command that repeats the test. */
export function testKilledStarts(t: Test, folders: number, seed: number, repeat: string): void {
  t.test('a gateway starts after its first starts were killed', async (t) => {
    const chance = new SeededChance(seed);
    for (let folder = 0; folder < folders; folder += 1) {
      const gateway = await GatewayChild.create(t);
      for (let kill = 0; kill < KILLS; kill += 1) {
        gateway.spawn();
        await realDelay(chance.between(0, MAX_START_MS));
        await gateway.kill();
      }
      await gateway.start();
      t.ok(await gateway.post('/merchants', { name: 'Amber' }), `repeat: ${repeat}`);
      t.equal(await gateway.stop(STOP_SECONDS), 0);
      t.same(gateway.errorLines, [], 'the gateway wrote nothing to stderr');
    }
  });
}
