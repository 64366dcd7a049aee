/** The store in PostgreSQL keeps the contract that every engine has. */
import t from 'tap';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { floodContract } from '../contract/flood-contract.js';
import { idempotencyContract } from '../contract/idempotency-contract.js';
import { ownershipContract } from '../contract/ownership-contract.js';
import { storeContract } from '../contract/store-contract.js';
import { usageStoreContract } from '../contract/usage-contract.js';

t.setTimeout(170_000);

if (postgresMissing === undefined) {
  const databases = new TestDatabases(t);
  const open = (folder: string) => databases.open(folder);
  storeContract('PostgreSQL', open);
  usageStoreContract('PostgreSQL', open);
  idempotencyContract('PostgreSQL', open);
  ownershipContract('PostgreSQL', open);
  floodContract('PostgreSQL', open);
} else {
  t.test('the contract of a store', { skip: postgresMissing }, async () => undefined);
}
