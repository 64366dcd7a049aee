/**
 * Executes merchants' writes on the connection that also stores pings, so that both share commits. `write` must be
 * called inside a transaction. Each write is atomic: a savepoint rolls back a refused one without affecting others.
 */
import type { Database, Statement, Transaction } from 'better-sqlite3';
import { MAX_TOKENS_PER_KEY, type NewAccessToken } from '../../../contract/merchants/access-store.js';
import type { NewInvitation } from '../../../contract/merchants/invitation-store.js';
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
import { labelsColumn } from '../../../tables/devices/label-column.js';
import { InvitationRows } from './invitation-rows.js';
import { PetRows } from './pet-rows.js';
import { Sequences } from './sequences.js';
import { TakenUsers } from './taken-users.js';
import { UserRows } from './user-rows.js';

/** Thrown to roll the savepoint back. */
class Refused extends Error {
  readonly refusal: MerchantRefusal;

  constructor(refusal: MerchantRefusal) {
    super(refusal.code);
    this.refusal = refusal;
  }
}

/**
 * Maximum number of expired sessions or tokens that are deleted with each new one: more than one, so that their number
 * falls, but few enough for a small transaction.
 */
const MAX_DELETED_EXPIRED = 100;

export class MerchantWriter {
  readonly #savepoint: Transaction<(operation: MerchantOperation) => MerchantOutcome>;
  readonly #sequences: Sequences;
  readonly #taken: TakenUsers;
  readonly #pets: PetRows;
  readonly #users: UserRows;
  readonly #invitations: InvitationRows;
  readonly #quotaUse: Statement;
  readonly #deleteExpiredSessions: Statement;
  readonly #addSession: Statement;
  readonly #trimSessions: Statement;
  readonly #endSession: Statement;
  readonly #deleteExpiredTokens: Statement;
  readonly #addToken: Statement;
  readonly #trimTokens: Statement;
  readonly #recordUse: Statement;
  readonly #describeLock: Statement;

  constructor(db: Database) {
    this.#savepoint = db.transaction((operation: MerchantOperation) => this.#execute(operation));
    this.#sequences = new Sequences(db);
    this.#taken = new TakenUsers(db);
    this.#pets = new PetRows(db);
    this.#users = new UserRows(db, this.#sequences);
    this.#invitations = new InvitationRows(db);
    this.#quotaUse = db.prepare('SELECT pets, users, bytes FROM merchant_kept WHERE merchant_id = ?');
    this.#deleteExpiredSessions = db.prepare(`DELETE FROM user_session WHERE id IN (${selectExpired('user_session')})`);
    this.#addSession = db.prepare(
      'INSERT INTO user_session (merchant_id, user_id, token_hash, expires_at_ms) VALUES (?, ?, ?, ?)',
    );
    this.#trimSessions = db.prepare(
      `DELETE FROM user_session WHERE merchant_id = @merchantId AND user_id = @userId AND id <= (
         SELECT id FROM user_session WHERE merchant_id = @merchantId AND user_id = @userId
         ORDER BY id DESC LIMIT 1 OFFSET ${MAX_SESSIONS_PER_USER})`,
    );
    this.#endSession = db.prepare('DELETE FROM user_session WHERE token_hash = ? AND merchant_id = ?');
    this.#deleteExpiredTokens = db.prepare(`DELETE FROM access_token WHERE id IN (${selectExpired('access_token')})`);
    // A key that was revoked in the meantime gets no token.
    this.#addToken = db.prepare(
      `INSERT INTO access_token (key_id, token_hash, scopes, expires_at_ms)
       SELECT id, ?, ?, ? FROM api_key WHERE id = ? AND revoked_at_ms IS NULL`,
    );
    this.#trimTokens = db.prepare(
      `DELETE FROM access_token WHERE key_id = @keyId AND id <= (
         SELECT id FROM access_token WHERE key_id = @keyId ORDER BY id DESC LIMIT 1 OFFSET ${MAX_TOKENS_PER_KEY})`,
    );
    this.#recordUse = db.prepare('UPDATE api_key SET last_used_at_ms = ? WHERE id = ?');
    this.#describeLock = db.prepare(
      `UPDATE device SET name = iif(@setsName, @name, name), labels = iif(@setsLabels, @labels, labels)
       WHERE mac = @mac AND merchant_id = @merchantId AND removed_at_ms IS NULL`,
    );
  }

  /**
   * Makes one write and returns its outcome: the pet or the invitation that it is about, or why it was refused.
   *
   * @throws SQLite's error, after the write was rolled back
   */
  write(operation: MerchantOperation): MerchantOutcome {
    try {
      return this.#savepoint(operation);
    } catch (error) {
      if (error instanceof Refused) return { refusal: error.refusal };
      throw error;
    }
  }

  #execute(operation: MerchantOperation): MerchantOutcome {
    switch (operation.op) {
      case 'add-pet':
        return this.#addPet(operation);
      case 'update-pet':
        return this.#updatePet(operation);
      case 'add-users':
        return this.#addUsers(operation);
      case 'change-user':
        return this.#changeUser(operation);
      case 'remove-user':
        if (this.#users.isLastOwner(operation.merchantId, operation.id)) throw new Refused({ code: 'last-owner' });
        this.#users.remove(operation.merchantId, operation.id);
        return {};
      case 'add-invitation':
        return this.#invite(operation.invitation);
      case 'remove-invitation':
        return this.#invitations.delete(operation.merchantId, operation.id) ? { id: operation.id } : {};
      case 'accept-invitation':
        return this.#acceptInvitation(operation);
      case 'add-session':
        return this.#startSession(operation.session);
      case 'end-session':
        this.#endSession.run(operation.tokenHash, operation.merchantId);
        return {};
      case 'add-token':
        return this.#issueToken(operation.token);
      case 'record-key-use':
        this.#recordUse.run(operation.atMs, operation.keyId);
        return {};
      case 'describe-lock':
        return this.#describe(operation);
    }
  }

  /* Each of the methods below writes before it checks the quota, since triggers count only what is written. */
  #addPet({ merchantId, pet, nowMs, quota }: AddPet): MerchantOutcome {
    const id = this.#sequences.readLast(merchantId, 'pet') + 1n;
    this.#sequences.record(merchantId, 'pet', id);
    this.#pets.add(merchantId, id, pet, nowMs);
    this.#checkQuota(merchantId, quota, 'pets');
    return { pet: { ...pet, id, photoUrls: [], status: null, category: null, tags: null } };
  }

  #updatePet({ merchantId, id, profile, nowMs, quota }: UpdatePet): MerchantOutcome {
    const before = this.#pets.read(merchantId, id);
    if (before === undefined) return {};
    this.#pets.update(merchantId, id, profile, nowMs);
    const after = this.#pets.read(merchantId, id);
    // A pet that an older version stored may exceed the limit; it may shrink but not grow.
    if (after === undefined || after.bytes <= before.bytes) return { pet: after?.pet };
    if (after.bytes > quota.petBytes) throw new Refused({ code: 'pet-too-large', bytes: after.bytes });
    this.#checkQuota(merchantId, quota);
    return { pet: after.pet };
  }

  #addUsers({ merchantId, users, nowMs, quota }: AddUsers): MerchantOutcome {
    const faults = this.#taken.find(merchantId, users);
    if (faults.length > 0) throw new Refused({ code: 'taken', faults });
    this.#users.add(merchantId, users, nowMs);
    if (users.length > 0) this.#checkQuota(merchantId, quota, 'users');
    return {};
  }

  #invite(invitation: NewInvitation): MerchantOutcome {
    const id = this.#invitations.add(invitation);
    if (id === undefined) throw new Refused({ code: 'too-many-invitations' });
    return { id };
  }

  #acceptInvitation({ tokenHash, user, nowMs, quota }: AcceptInvitation): MerchantOutcome {
    const invitation = this.#invitations.findOpen(tokenHash, nowMs);
    if (invitation === undefined) throw new Refused({ code: 'no-such-invitation' });
    const { id, merchantId, dashboardRole } = invitation;
    this.#invitations.delete(merchantId, id);
    return this.#addUsers({ op: 'add-users', merchantId, users: [{ ...user, dashboardRole }], nowMs, quota });
  }

  #changeUser({ merchantId, id, change, quota }: ChangeUser): MerchantOutcome {
    const { dashboardRole } = change;
    const losesOwner = dashboardRole !== undefined && dashboardRole !== 'owner';
    if (losesOwner && this.#users.isLastOwner(merchantId, id)) throw new Refused({ code: 'last-owner' });
    this.#users.change(merchantId, id, change);
    this.#checkQuota(merchantId, quota);
    return {};
  }

  #describe({ merchantId, mac, name, labels }: DescribeLock): MerchantOutcome {
    const [setsName, setsLabels] = [name !== undefined, labels !== undefined].map(Number);
    this.#describeLock.run({ merchantId, mac, setsName, name: name ?? null, setsLabels, labels: labelsColumn(labels) });
    return {};
  }

  /** @param grown which count grew; its limit and the limit of bytes are checked */
  #checkQuota(merchantId: number, quota: Quota, grown?: 'pets' | 'users'): void {
    const use = this.#quotaUse.get(merchantId) as QuotaUse | undefined;
    const exceeded = use && exceededQuota(use, quota, grown);
    if (exceeded !== undefined) throw new Refused({ code: 'full', quota: exceeded });
  }

  #startSession({ merchantId, userId, tokenHash, nowMs, expiresAtMs }: NewSession): MerchantOutcome {
    this.#deleteExpiredSessions.run(nowMs);
    this.#addSession.run(merchantId, userId, tokenHash, expiresAtMs);
    this.#trimSessions.run({ merchantId, userId });
    return {};
  }

  #issueToken({ keyId, tokenHash, scopes, nowMs, expiresAtMs }: NewAccessToken): MerchantOutcome {
    this.#deleteExpiredTokens.run(nowMs);
    this.#addToken.run(tokenHash, scopes.join(' '), expiresAtMs, keyId);
    this.#trimTokens.run({ keyId });
    return {};
  }
}

/** The oldest expired rows of a table; the statement's parameter is the present time. */
function selectExpired(table: string): string {
  return `SELECT id FROM ${table} WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${MAX_DELETED_EXPIRED}`;
}
