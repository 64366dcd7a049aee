/**
 * The long version of test/system/delivery-kill.test.ts: twenty kills during deliveries lose no event (quality.md §2).
 */
import t from 'tap';
import { testDeliveryKills, testSkippedEvents } from '../helpers/durability/delivery-kill.js';

const kills = 20;
testDeliveryKills(t, kills, 'dist/test/long/delivery-kill.test.js');
testSkippedEvents(t, 'dist/test/long/delivery-kill.test.js');
