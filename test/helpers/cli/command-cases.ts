/**
 * The calls of every command of the command line. The contract test (test/cli/contract.test.ts) compares their output
 * with snapshots: for people, as JSON, with a mistake, without a gateway, and with a negative answer. The calls run in
 * this order on one site (command-site.ts: a gateway with data), so that later calls see the results of earlier ones.
 * The site has the files that the calls name, such as fine.jsonl. Nothing listens on port 9, so webhooks to it fail. A
 * command without a case fails the test.
 */
import type { CommandCase } from './cases/case.js';
import { DEVICES } from './cases/devices.js';
import { GENERAL } from './cases/general.js';
import { HOUSEKEEPING } from './cases/housekeeping.js';
import { SIMULATOR } from './cases/simulator.js';
import { WEBHOOKS } from './cases/webhooks.js';

/** All cases, in the order of their calls. */
export const COMMAND_CASES: readonly CommandCase[] = [
  ...GENERAL,
  ...DEVICES,
  ...WEBHOOKS,
  ...SIMULATOR,
  ...HOUSEKEEPING,
];
