/** What gateways that do not run any more left open: entries of the audit log, and notices that they noted last. */
import type { NoticeKey } from '../../contract/operators/notice-store.js';
import { Audit } from '../../tables/audit.js';
import { type NoticeParts, Notices } from '../../tables/notices.js';
import type { TableParts } from '../../tables/table-parts.js';
import type { Sql } from '../sql.js';
import type { Writes } from '../writes.js';

/** Whether the gateway that wrote a row of the table has ended. */
const isOfEnded = (table: 'audit' | 'notice'): string =>
  `NOT EXISTS (SELECT 1 FROM node n WHERE n.epoch = ${table}.epoch AND NOT n.released)`;

/** The audit log of a database that several gateways may share. */
export class SharedAudit extends Audit {
  readonly #writes: Pick<Writes, 'run'>;

  constructor(parts: TableParts, writes: Pick<Writes, 'run'>) {
    super(parts);
    this.#writes = writes;
  }

  override async abandon(): Promise<void> {
    await this.#writes.run('close entries of the audit log', (sql) =>
      sql.run(`UPDATE audit SET outcome = 'unknown' WHERE outcome = 'begun' AND ${isOfEnded('audit')}`),
    );
  }
}

/** The notices of a database that several gateways may share. */
export class SharedNotices extends Notices {
  readonly #sql: Sql;

  constructor(parts: NoticeParts, sql: Sql) {
    super(parts);
    this.#sql = sql;
  }

  override async readLeftOpen(): Promise<NoticeKey[]> {
    return await this.#sql.all<NoticeKey>(
      `SELECT kind, subject FROM notice WHERE resolved_at_ms IS NULL AND ${isOfEnded('notice')}`,
    );
  }
}
