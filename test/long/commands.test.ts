/**
 * The long version of test/system/commands.test.ts: ten thousand commands, none lost and none repeated (quality.md §2).
 */
import t from 'tap';
import { testCommandsDown } from '../helpers/commands/commands-down.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

// The locks and the gateway run until nothing has happened for `stallSeconds`.
const options = { seed: chooseSeed(), locks: 200, commandsPerLock: 50, kills: 2, stallSeconds: 20 };
testCommandsDown(t, options, 'dist/test/long/commands.test.js');
