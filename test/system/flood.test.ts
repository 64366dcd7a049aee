/**
 * Durability at the highest rate (quality.md §2): the gateway is killed while locks send as fast as they can, and loses
 * nothing that it acknowledged. Long version: test/long/flood.test.ts.
 */
import t from 'tap';
import { testFlood } from '../helpers/durability/flood-test.js';

t.setTimeout(170_000);
/**
 * `locksWithUrl` locks have a merchant with a webhook URL; the kill comes at most `maxFloodMs` after the flood's start.
 */
const load = { locks: 200, locksWithUrl: 2, kills: 1, maxFloodMs: 500 };
testFlood(t, load, { repeat: 'dist/test/system/flood.test.js', isLong: false });
