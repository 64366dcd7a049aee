/**
 * The quick form of the kills in the middle of deliveries; test/long/delivery-kill.test.ts has the long one. That the
 * check finds skipped events is shown there, and by kill-sabotage.test.ts.
 */
import t from 'tap';
import { testDeliveryKills } from '../helpers/durability/delivery-kill.js';

testDeliveryKills(t, 4, 'dist/test/system/delivery-kill.test.js');
