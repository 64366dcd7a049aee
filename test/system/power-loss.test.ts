/** Durability at a power loss (quality.md §2). Long version: test/long/power-loss.test.ts. */
import t from 'tap';
import { testPowerLoss } from '../helpers/durability/power-run.js';

const load = { locks: 20, inFlight: 3, kills: 2, linesPerLife: 150, backlog: 5000, floor: 400 };
testPowerLoss(t, { ...load, faultShare: 0, slowestMs: 0 }, 1, 'dist/test/system/power-loss.test.js');
