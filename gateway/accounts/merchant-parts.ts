/** Builds the parts that the merchants' HTTP interface (http/merchant/) needs. */
import type { Clock } from '../../proto/clock.js';
import type { Audit } from '../audit/audit.js';
import { IdempotentCalls } from '../commands/idempotent-calls.js';
import { ConsoleSessions } from '../console/console-sessions.js';
import type { Keys } from '../data-folder/keys.js';
import type { HttpBudgets } from '../fairness/http-budgets.js';
import type { Store } from '../store/contract/store.js';
import type { NewEventSignal } from '../webhooks/new-event-signal.js';
import type { WebhookTester } from '../webhooks/webhook-test.js';
import { AccessTokens } from './access-tokens.js';
import { ApiKeys } from './api-keys.js';
import { Invitations } from './invitations.js';
import type { OwnDataParts } from './own-data-parts.js';
import { Users } from './users.js';

export interface MerchantParts {
  readonly store: Store;
  /** Wall-clock time, by which tokens and sessions expire. */
  readonly clock: Clock;
  readonly apiKeys: ApiKeys;
  readonly accessTokens: AccessTokens;
  readonly users: Users;
  readonly invitations: Invitations;
  /** Sessions of the dashboard and of the operators' console. */
  readonly consoleSessions: ConsoleSessions;
  readonly tester: WebhookTester;
  /** The run's clock (wall-clock time, except in a sped-up simulation), which stamps what locks send. */
  readonly runClock: Clock;
  readonly idempotentCalls: IdempotentCalls;
  /** Wakes calls that wait for a merchant's next event. */
  readonly newEvents: NewEventSignal;
  /** Limits on what each merchant may ask for. */
  readonly budgets: HttpBudgets;
  /** For the operations on a merchant's own data. */
  readonly ownData: OwnDataParts;
  /** Records what merchants' users and programs change. */
  readonly audit: Pick<Audit, 'note'>;
}

/** Builds the parts that have no other owner, and returns them together with the given ones. */
export function makeMerchantParts(parts: {
  readonly store: Store;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly tester: WebhookTester;
  readonly runClock: Clock;
  readonly newEvents: NewEventSignal;
  readonly budgets: HttpBudgets;
  readonly ownData: OwnDataParts;
  readonly audit: Pick<Audit, 'note'>;
}): MerchantParts {
  const { store, clock, tester, runClock, newEvents, budgets, ownData, audit } = parts;
  const [apiKeys, accessTokens, users] = [new ApiKeys(parts), new AccessTokens(parts), new Users(parts)];
  const idempotentCalls = new IdempotentCalls(store.commands);
  const invitations = new Invitations({ ...parts, users });
  const consoleSessions = new ConsoleSessions({ store, users, clock });
  const owned = { apiKeys, accessTokens, users, invitations, consoleSessions, idempotentCalls };
  return { store, clock, tester, runClock, newEvents, budgets, ownData, audit, ...owned };
}
