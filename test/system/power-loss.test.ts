/**
 * Durability at a simulated power loss (quality.md §2): the disk loses what was not synced, and no acknowledged ping is
 * missing afterwards. Long version: test/long/power-loss.test.ts.
 */
import t from 'tap';
import { testPowerLoss } from '../helpers/durability/power-run.js';

// A kill comes after at least 150 events in the locks' and the merchant's diaries. Locks make no new pings while the
// merchant lacks 5000 acknowledged ones, and the run fails with fewer than 400 acknowledgements.
const load = { locks: 20, maxUnacked: 3, kills: 1, minLinesPerKill: 150, maxBacklog: 5000, minAcked: 400 };
/** How many kills are needed until a gateway that loses pings on purpose is found out. */
const sabotagedKills = 1;
testPowerLoss(
  t,
  { ...load, webhookFailureShare: 0, maxAnswerMs: 0 },
  sabotagedKills,
  'dist/test/system/power-loss.test.js',
);
