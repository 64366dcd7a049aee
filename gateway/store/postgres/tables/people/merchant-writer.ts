/**
 * Makes merchants' writes. Each is a transaction that excludes others for the same merchant, so a limit can be counted
 * and then written; a refused write is rolled back.
 */
import { MAX_TOKENS_PER_KEY, type NewAccessToken } from '../../../contract/merchants/access-store.js';
import { dashboardRole } from '../../../contract/merchants/dashboard-roles.js';
import { MAX_INVITATIONS_PER_MERCHANT, type NewInvitation } from '../../../contract/merchants/invitation-store.js';
import type {
  AcceptInvitation,
  AddPet,
  AddUsers,
  ChangeUser,
  DescribeLock,
  MerchantOperation,
  MerchantOutcome,
  MerchantRefusal,
  UpdatePet,
} from '../../../contract/merchants/merchant-write.js';
import { MAX_SESSIONS_PER_USER, type NewSession } from '../../../contract/merchants/people-store.js';
import { exceededQuota, type Quota, type QuotaUse } from '../../../contract/merchants/quota.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';
import { labelsColumn } from '../../../tables/devices/label-column.js';
import type { Sql } from '../../sql.js';
import { excludeOthersFor, type Writes } from '../../writes.js';
import * as rows from './rows.js';

/** Thrown to roll the transaction back. */
class Refused extends Error {
  readonly refusal: MerchantRefusal;

  constructor(refusal: MerchantRefusal) {
    super(refusal.code);
    this.refusal = refusal;
  }
}

/**
 * Maximum number of expired sessions or tokens that are deleted with each new one: more than one, so that their number
 * falls, but few enough for a short transaction.
 */
const MAX_DELETED_EXPIRED = 100;

/** Makes one write. Returns the pet if the write is about one, or why it was refused. @throws StoreFailure */
export async function writeForMerchant(
  writes: Writes,
  action: string,
  operation: MerchantOperation,
): Promise<MerchantOutcome> {
  const merchantId = merchantOf(operation);
  try {
    const excludes = merchantId === undefined ? ('exclusive' as const) : { merchantId };
    // `record-key-use` and `add-token`, which name no merchant either, count nothing before they write.
    const isAlone = operation.op !== 'record-key-use' && operation.op !== 'add-token';
    return await writes.run(action, (sql) => execute(sql, operation), isAlone ? excludes : undefined);
  } catch (error) {
    if (error instanceof Refused) return { refusal: error.refusal };
    throw error;
  }
}

/** The merchant that an operation names; undefined if the operation finds it by a secret or a key. */
function merchantOf(operation: MerchantOperation): number | undefined {
  if ('merchantId' in operation) return operation.merchantId;
  if (operation.op === 'add-session') return operation.session.merchantId;
  if (operation.op === 'add-invitation') return operation.invitation.merchantId;
  return undefined;
}

async function execute(sql: Sql, operation: MerchantOperation): Promise<MerchantOutcome> {
  switch (operation.op) {
    case 'add-pet':
      return await addPet(sql, operation);
    case 'update-pet':
      return await updatePet(sql, operation);
    case 'add-users':
      return await addUsers(sql, operation);
    case 'change-user':
      return await changeUser(sql, operation);
    case 'remove-user':
      if (await rows.isLastOwner(sql, operation.merchantId, operation.id)) throw new Refused({ code: 'last-owner' });
      await rows.removeUser(sql, operation.merchantId, operation.id);
      return {};
    case 'add-invitation':
      return await invite(sql, operation.invitation);
    case 'remove-invitation':
      return (await deleteInvitation(sql, operation.merchantId, operation.id)) ? { id: operation.id } : {};
    case 'accept-invitation':
      return await acceptInvitation(sql, operation);
    case 'add-session':
      return await startSession(sql, operation.session);
    case 'end-session': {
      const { tokenHash, merchantId } = operation;
      await sql.run('DELETE FROM user_session WHERE token_hash = @tokenHash AND merchant_id = @merchantId', {
        tokenHash,
        merchantId,
      });
      return {};
    }
    case 'add-token':
      return await issueToken(sql, operation.token);
    case 'record-key-use':
      await sql.run('UPDATE api_key SET last_used_at_ms = @atMs WHERE id = @keyId', {
        atMs: operation.atMs,
        keyId: operation.keyId,
      });
      return {};
    case 'describe-lock':
      return await describe(sql, operation);
  }
}

/* A write is made before the quota is checked, since triggers count it then; `Refused` rolls it back. */
async function addPet(sql: Sql, { merchantId, pet, nowMs, quota }: AddPet): Promise<MerchantOutcome> {
  const id = (await rows.readLastId(sql, merchantId, 'pet')) + 1n;
  await rows.recordLastId(sql, merchantId, 'pet', id);
  await rows.addPet(sql, merchantId, id, pet, nowMs);
  await checkQuota(sql, merchantId, quota, 'pets');
  return { pet: { ...pet, id, photoUrls: [], status: null, category: null, tags: null } };
}

async function updatePet(sql: Sql, { merchantId, id, profile, nowMs, quota }: UpdatePet): Promise<MerchantOutcome> {
  const before = await rows.readPet(sql, merchantId, id);
  if (before === undefined) return {};
  await rows.updatePet(sql, merchantId, id, profile, nowMs);
  const after = await rows.readPet(sql, merchantId, id);
  // A pet over the limit may shrink but not grow.
  if (after === undefined || after.bytes <= before.bytes) return { pet: after?.pet };
  if (after.bytes > quota.petBytes) throw new Refused({ code: 'pet-too-large', bytes: after.bytes });
  await checkQuota(sql, merchantId, quota);
  return { pet: after.pet };
}

async function addUsers(sql: Sql, { merchantId, users, nowMs, quota }: AddUsers): Promise<MerchantOutcome> {
  const faults = await rows.findTaken(sql, merchantId, users);
  if (faults.length > 0) throw new Refused({ code: 'taken', faults });
  await rows.addUsers(sql, merchantId, users, nowMs);
  if (users.length > 0) await checkQuota(sql, merchantId, quota, 'users');
  return {};
}

async function changeUser(sql: Sql, { merchantId, id, change, quota }: ChangeUser): Promise<MerchantOutcome> {
  const losesOwner = change.dashboardRole !== undefined && change.dashboardRole !== 'owner';
  if (losesOwner && (await rows.isLastOwner(sql, merchantId, id))) throw new Refused({ code: 'last-owner' });
  await rows.changeUser(sql, merchantId, id, change);
  await checkQuota(sql, merchantId, quota);
  return {};
}

async function invite(sql: Sql, { username, ...invitation }: NewInvitation): Promise<MerchantOutcome> {
  const key = username === null ? null : usernameKey(username);
  const { merchantId } = invitation;
  await sql.run(
    `DELETE FROM invitation WHERE merchant_id = @merchantId AND (expires_at_ms <= @nowMs OR username_key = @key)`,
    { merchantId, nowMs: invitation.nowMs, key },
  );
  const counted = await sql.get<{ count: number }>(
    'SELECT count(*) AS count FROM invitation WHERE merchant_id = @merchantId',
    { merchantId },
  );
  if ((counted?.count ?? 0) >= MAX_INVITATIONS_PER_MERCHANT) throw new Refused({ code: 'too-many-invitations' });
  const added = await sql.get<{ id: number }>(
    `INSERT INTO invitation
       (merchant_id, token_hash, username, username_key, dashboard_role, created_at_ms, expires_at_ms)
     VALUES (@merchantId, @tokenHash, @username, @key, @dashboardRole, @nowMs, @expiresAtMs) RETURNING id`,
    { ...invitation, username, key },
  );
  return added === undefined ? {} : { id: added.id };
}

async function deleteInvitation(sql: Sql, merchantId: number, id: number): Promise<boolean> {
  return (await sql.run('DELETE FROM invitation WHERE merchant_id = @merchantId AND id = @id', { merchantId, id })) > 0;
}

async function acceptInvitation(
  sql: Sql,
  { tokenHash, user, nowMs, quota }: AcceptInvitation,
): Promise<MerchantOutcome> {
  const invited = await sql.get<{ merchant_id: number }>(
    'SELECT merchant_id FROM invitation WHERE token_hash = @tokenHash',
    { tokenHash },
  );
  if (invited !== undefined) await excludeOthersFor(sql, invited.merchant_id);
  // Read again: what was committed before the lock was given is visible only to a later statement.
  const found = await sql.get<{ id: number; merchant_id: number; dashboard_role: string }>(
    `SELECT i.id, i.merchant_id, i.dashboard_role FROM invitation i JOIN merchant m ON m.id = i.merchant_id
     WHERE i.token_hash = @tokenHash AND i.expires_at_ms > @nowMs AND m.closed_at_ms IS NULL FOR UPDATE OF i`,
    { tokenHash, nowMs },
  );
  if (found === undefined) throw new Refused({ code: 'no-such-invitation' });
  const { id, merchant_id: merchantId } = found;
  await deleteInvitation(sql, merchantId, id);
  const users = [{ ...user, dashboardRole: dashboardRole(found.dashboard_role) }];
  return await addUsers(sql, { op: 'add-users', merchantId, users, nowMs, quota });
}

async function describe(sql: Sql, { merchantId, mac, name, labels }: DescribeLock): Promise<MerchantOutcome> {
  await sql.run(
    `UPDATE device SET name = CASE WHEN @setsName THEN @name ELSE name END,
       labels = CASE WHEN @setsLabels THEN @labels ELSE labels END
     WHERE mac = @mac AND merchant_id = @merchantId AND removed_at_ms IS NULL`,
    {
      ...{ merchantId, mac, name, labels: labelsColumn(labels) },
      ...{ setsName: name !== undefined, setsLabels: labels !== undefined },
    },
  );
  return {};
}

/** @param grown which count grew; its limit and the limit of bytes are checked */
async function checkQuota(sql: Sql, merchantId: number, quota: Quota, grown?: 'pets' | 'users'): Promise<void> {
  const use = await sql.get<QuotaUse>('SELECT pets, users, bytes FROM merchant_kept WHERE merchant_id = @merchantId', {
    merchantId,
  });
  const exceeded = use && exceededQuota(use, quota, grown);
  if (exceeded !== undefined) throw new Refused({ code: 'full', quota: exceeded });
}

async function startSession(sql: Sql, session: NewSession): Promise<MerchantOutcome> {
  const { merchantId, userId, tokenHash, nowMs, expiresAtMs } = session;
  await deleteExpired(sql, 'user_session', nowMs);
  await sql.run(
    `INSERT INTO user_session (merchant_id, user_id, token_hash, expires_at_ms)
     VALUES (@merchantId, @userId, @tokenHash, @expiresAtMs)`,
    { merchantId, userId, tokenHash, expiresAtMs },
  );
  await sql.run(
    `DELETE FROM user_session WHERE merchant_id = @merchantId AND user_id = @userId AND id <= (
       SELECT id FROM user_session WHERE merchant_id = @merchantId AND user_id = @userId
       ORDER BY id DESC LIMIT 1 OFFSET ${MAX_SESSIONS_PER_USER})`,
    { merchantId, userId },
  );
  return {};
}

/** A key that was revoked in the meantime gets no token. */
async function issueToken(sql: Sql, token: NewAccessToken): Promise<MerchantOutcome> {
  const { keyId, tokenHash, scopes, nowMs, expiresAtMs } = token;
  await deleteExpired(sql, 'access_token', nowMs);
  await sql.run(
    `INSERT INTO access_token (key_id, token_hash, scopes, expires_at_ms)
     SELECT id, @tokenHash, @scopes, @expiresAtMs FROM api_key WHERE id = @keyId AND revoked_at_ms IS NULL FOR SHARE`,
    { tokenHash, scopes: scopes.join(' '), expiresAtMs, keyId },
  );
  await sql.run(
    `DELETE FROM access_token WHERE key_id = @keyId AND id <= (
       SELECT id FROM access_token WHERE key_id = @keyId ORDER BY id DESC LIMIT 1 OFFSET ${MAX_TOKENS_PER_KEY})`,
    { keyId },
  );
  return {};
}

async function deleteExpired(sql: Sql, table: 'user_session' | 'access_token', nowMs: number): Promise<void> {
  await sql.run(
    `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE expires_at_ms <= @nowMs
       ORDER BY expires_at_ms LIMIT ${MAX_DELETED_EXPIRED} FOR UPDATE SKIP LOCKED)`,
    { nowMs },
  );
}
