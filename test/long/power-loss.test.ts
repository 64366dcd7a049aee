/** The long version of test/system/power-loss.test.ts: twenty power losses lose none of 100,000 acknowledged pings. */
import t from 'tap';
import { testPowerLoss } from '../helpers/durability/power-run.js';

// `maxUnacked`: uplinks of a lock under way. `maxBacklog`: acknowledged pings that the merchant lacks before locks
// pause. `minLinesPerKill`: uplinks sent, acknowledged or delivered from a start to the next power loss.
const load = { locks: 200, maxUnacked: 8, kills: 20, minLinesPerKill: 3000, maxBacklog: 20_000, minAcked: 100_000 };
/** Power losses of the runs in which the gateway loses pings on purpose, which the test must notice. */
const sabotagedKills = 3;
testPowerLoss(
  t,
  { ...load, webhookFailureShare: 0, maxAnswerMs: 0 },
  sabotagedKills,
  'dist/test/long/power-loss.test.js',
);
