/**
 * The contract suite of the store (gateway/store/contract): the behaviour that every database engine must have. Each
 * engine's test file calls it with a function that opens the engine.
 */
import { commandContract, commandTargetContract, powerChangeContract } from './command-contract.js';
import type { OpenStore } from './contract-store.js';
import { deliveryContract } from './delivery-contract.js';
import { deletionContract, identityContract, registryContract } from './device-contract.js';
import { eventContract, judgingContract, logContract, logOrderContract, whyContract } from './log-contract.js';
import { progressContract } from './progress-contract.js';
import { sessionContract } from './session-contract.js';

/** Runs the suite. */
export function storeContract(engine: string, open: OpenStore): void {
  logContract(engine, open);
  judgingContract(engine, open);
  logOrderContract(engine, open);
  eventContract(engine, open);
  deliveryContract(engine, open);
  progressContract(engine, open);
  registryContract(engine, open);
  commandContract(engine, open);
  commandTargetContract(engine, open);
  powerChangeContract(engine, open);
  identityContract(engine, open);
  deletionContract(engine, open);
  whyContract(engine, open);
  sessionContract(engine, open);
}
