/**
 * Kills the gateway during webhook deliveries: no event is lost. Long version: test/long/delivery-kill.test.ts, which
 * also shows, like sabotage/kill.slow.test.ts, that the check detects skipped events.
 */
import t from 'tap';
import { testDeliveryKills } from '../helpers/durability/delivery-kill.js';

const kills = 1;
testDeliveryKills(t, kills, 'dist/test/system/delivery-kill.test.js');
