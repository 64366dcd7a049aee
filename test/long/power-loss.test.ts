/** The long version of test/system/power-loss.test.ts: twenty power losses lose none of 100,000 acknowledged pings. */
import t from 'tap';
import { testPowerLoss } from '../helpers/durability/power-run.js';

const load = { locks: 200, inFlight: 8, kills: 20, linesPerLife: 3000, backlog: 20_000, floor: 100_000 };
testPowerLoss(t, { ...load, faultShare: 0, slowestMs: 0 }, 3, 'dist/test/long/power-loss.test.js');
