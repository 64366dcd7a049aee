/**
 * All tables, with the types of their rows, which are in schema/. The steps of migrations.ts create the tables; a new
 * step changes these types too.
 *
 * Times are integers, ms since the epoch. Columns named `received_at_ms` are by the run's clock, which follows the wall
 * clock except in a sped-up simulation (protocol.md §3); others are wall-clock time unless a comment says otherwise.
 * Booleans are 0 and 1.
 *
 * Each table also has a column `sum`, the checksum of its row. Triggers compute it (row-checksum-triggers.ts); except
 * for uplinks and states of locks, only `db check` reads it.
 */

import type {
  CommandTable,
  CredentialTable,
  DeviceStateTable,
  DeviceTable,
  FindingTable,
  LockEventTable,
  QuarantineTable,
  ReflashMarkTable,
  RefusalTable,
} from './schema/devices.js';
import type {
  StagedEventTable,
  UplinkNameTable,
  UplinkOfDeviceTable,
  UplinkSettledTable,
  UplinkTable,
} from './schema/log.js';
import type {
  AccessTokenTable,
  ApiKeyTable,
  IdempotentAnswerTable,
  InvitationTable,
  MerchantSequenceTable,
  MerchantTable,
  PetTable,
  UserAccountTable,
  UserSessionTable,
} from './schema/merchants.js';
import type {
  AuditTable,
  ConsoleSessionTable,
  NoticeTable,
  NotificationTable,
  NotifyRecipientTable,
  NotifySecretTable,
  OperatorTokenTable,
} from './schema/operators.js';
import type { PricePlanTable, SimTable, StatementTable, UsageTable } from './schema/usage.js';
import type {
  AttemptTable,
  DeliveryTable,
  WebhookGapTable,
  WebhookOldSecretTable,
  WebhookUrlTable,
} from './schema/webhooks.js';

/** Named values about the store itself, such as the time of the run's clock. */
export interface MetadataTable {
  name: string;
  value: string;
}

export interface Tables {
  merchant: MerchantTable;
  device: DeviceTable;
  credential: CredentialTable;
  uplink: UplinkTable;
  uplink_name: UplinkNameTable;
  uplink_of_device: UplinkOfDeviceTable;
  staged_event: StagedEventTable;
  uplink_settled: UplinkSettledTable;
  device_state: DeviceStateTable;
  lock_event: LockEventTable;
  finding: FindingTable;
  quarantine: QuarantineTable;
  webhook_url: WebhookUrlTable;
  webhook_old_secret: WebhookOldSecretTable;
  webhook_gap: WebhookGapTable;
  delivery: DeliveryTable;
  attempt: AttemptTable;
  command: CommandTable;
  fact: MetadataTable;
  sim: SimTable;
  usage: UsageTable;
  price_plan: PricePlanTable;
  statement: StatementTable;
  api_key: ApiKeyTable;
  access_token: AccessTokenTable;
  user_account: UserAccountTable;
  user_session: UserSessionTable;
  invitation: InvitationTable;
  pet: PetTable;
  merchant_sequence: MerchantSequenceTable;
  notice: NoticeTable;
  audit: AuditTable;
  refusal: RefusalTable;
  reflash_mark: ReflashMarkTable;
  operator_token: OperatorTokenTable;
  console_session: ConsoleSessionTable;
  notify_recipient: NotifyRecipientTable;
  notify_secret: NotifySecretTable;
  notification: NotificationTable;
  idempotent_answer: IdempotentAnswerTable;
}
