/**
 * Durability at a simulated power loss (quality.md §2): the disk loses what was not synced, and no acknowledged ping is
 * missing afterwards. Long version: test/long/power-loss.test.ts.
 */
import t from 'tap';
import { testPowerLoss } from '../helpers/durability/power-run.js';

const load = { locks: 20, maxUnacked: 3, kills: 1, minLinesPerKill: 150, maxBacklog: 5000, minAcked: 400 };
const sabotagedKills = 1;
testPowerLoss(t, { ...load, faultShare: 0, maxAnswerMs: 0 }, sabotagedKills, 'dist/test/system/power-loss.test.js');
