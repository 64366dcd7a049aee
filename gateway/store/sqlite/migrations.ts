/**
 * The list of migrations, the steps that create and change the tables, forward only. Each step is a file in
 * migrations/, from 0021 on in a folder for twenty numbers there. Its name sorts after the previous step's. A released
 * step never changes.
 */
import type { Migration, MigrationProvider } from 'kysely';
import { firstLight } from './migrations/0001-first-light.js';
import { credentials } from './migrations/0002-credentials.js';
import { commands } from './migrations/0003-commands.js';
import { usage } from './migrations/0004-usage.js';
import { webhooks } from './migrations/0005-webhooks.js';
import { merchantInterface } from './migrations/0006-merchant-interface.js';
import { sealedHeaders } from './migrations/0007-sealed-headers.js';
import { notices } from './migrations/0008-notices.js';
import { narrowLog } from './migrations/0009-narrow-log.js';
import { rowChecksums } from './migrations/0010-row-sums.js';
import { audit } from './migrations/0011-audit.js';
import { stateLastUplink } from './migrations/0012-state-place.js';
import { webhookFailingAndHold } from './migrations/0013-seen-and-held.js';
import { refusals } from './migrations/0014-refusals.js';
import { reflashMarks } from './migrations/0015-reflash-marks.js';
import { quotasAndUsernameKeys } from './migrations/0016-kept.js';
import { keyScopes } from './migrations/0017-key-scopes.js';
import { lockNames } from './migrations/0018-lock-names.js';
import { idempotency } from './migrations/0019-idempotency.js';
import { usageByLock } from './migrations/0020-usage-by-lock.js';
import { keyExpiry } from './migrations/0021-0040/0021-key-expiry.js';
import { operatorTokens } from './migrations/0021-0040/0022-operator-tokens.js';
import { dashboardRoles } from './migrations/0021-0040/0023-dashboard-roles.js';
import { auditPeople } from './migrations/0021-0040/0024-audit-people.js';
import { webhookFilter } from './migrations/0021-0040/0025-webhook-filter.js';
import { listIndexes } from './migrations/0021-0040/0026-list-indexes.js';
import { invitations } from './migrations/0021-0040/0027-invitations.js';
import { consoleSessions } from './migrations/0021-0040/0028-console-sessions.js';
import { merchantEvents } from './migrations/0021-0040/0029-merchant-events.js';
import { merchantClosing } from './migrations/0021-0040/0030-merchant-closing.js';
import { notifications } from './migrations/0021-0040/0031-notifications.js';
import { webhookLimits } from './migrations/0021-0040/0032-webhook-limits.js';
import { uplinkHints } from './migrations/0021-0040/0033-uplink-hints.js';
import { findingIndex } from './migrations/0021-0040/0034-finding-index.js';

const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-first-light': firstLight,
  '0002-credentials': credentials,
  '0003-commands': commands,
  '0004-usage': usage,
  '0005-webhooks': webhooks,
  '0006-merchant-interface': merchantInterface,
  '0007-sealed-headers': sealedHeaders,
  '0008-notices': notices,
  '0009-narrow-log': narrowLog,
  '0010-row-sums': rowChecksums,
  '0011-audit': audit,
  '0012-state-place': stateLastUplink,
  '0013-seen-and-held': webhookFailingAndHold,
  '0014-refusals': refusals,
  '0015-reflash-marks': reflashMarks,
  '0016-kept': quotasAndUsernameKeys,
  '0017-key-scopes': keyScopes,
  '0018-lock-names': lockNames,
  '0019-idempotency': idempotency,
  '0020-usage-by-lock': usageByLock,
  '0021-key-expiry': keyExpiry,
  '0022-operator-tokens': operatorTokens,
  '0023-dashboard-roles': dashboardRoles,
  '0024-audit-people': auditPeople,
  '0025-webhook-filter': webhookFilter,
  '0026-list-indexes': listIndexes,
  '0027-invitations': invitations,
  '0028-console-sessions': consoleSessions,
  '0029-merchant-events': merchantEvents,
  '0030-merchant-closing': merchantClosing,
  '0031-notifications': notifications,
  '0032-webhook-limits': webhookLimits,
  '0033-uplink-hints': uplinkHints,
  '0034-finding-index': findingIndex,
};

/** The names of all steps, in order. */
export const STEPS: readonly string[] = Object.keys(MIGRATIONS).sort();

/** The list for Kysely's Migrator. */
export const migrationProvider: MigrationProvider = {
  getMigrations: async () => ({ ...MIGRATIONS }),
};
