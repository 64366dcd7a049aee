/**
 * The route that sends the store as one file, for the command `db backup`. The copy is completed before it is sent, so
 * that the headers have its length and checksum, and the client notices a truncated file. The audit log records the
 * call, although it changes nothing, since the file contains all data of the store.
 */
import { createReadStream } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { Audit } from '../../../audit/audit.js';
import type { TrustedProxies } from '../../../network/trusted-proxies.js';
import type { Store } from '../../../store/contract/store.js';
import { whoOf } from '../audited.js';
import type { Callers } from '../callers.js';
import type { DocumentedRoute } from '../document.js';
import { pick } from '../json/audit-terms.js';
import { checkRole, roleNeeded } from '../roles.js';
import { Described } from '../schemas.js';

/** The header with the checksum of the file, which the client compares with the bytes that it received. */
export const SUM_HEADER = 'lockgate-sum';

const SQLITE_TYPE = 'application/vnd.sqlite3';

/** The route, as the interface's OpenAPI document describes it. */
export const BACKUP_TERMS: DocumentedRoute = {
  method: 'GET',
  path: '/backup',
  operation: 'store.backup',
  summary: 'Sends the whole store as one SQLite file, with its checksum in the header `lockgate-sum`.',
  answer: Described('A SQLite database.'),
  answerType: SQLITE_TYPE,
};

/** The parts that the route needs. */
export interface BackupParts {
  readonly store: Pick<Store, 'readCopy'>;
  readonly audit: Audit;
  readonly proxies: TrustedProxies;
}

/** Adds `GET /backup`. */
export function addBackupRoute(
  fastify: FastifyInstance,
  callers: Callers,
  { store, audit, proxies }: BackupParts,
): void {
  const { operation: action } = BACKUP_TERMS;
  // Without the HEAD that Fastify adds, which would copy the store for nothing but a length.
  fastify.get('/backup', { exposeHeadRoute: false }, async (request, reply) => {
    const { tokenName, role } = callers.of(request);
    // An entry of the audit log; a backup has no changed object and no state before.
    const change = { who: whoOf(request, proxies, tokenName), action, object: '', before: null };
    const copy = await audit.change(
      change,
      async () => {
        checkRole(role, roleNeeded(BACKUP_TERMS));
        return await store.readCopy();
      },
      (result) => ({ object: '', after: result === undefined ? null : pick(result, 'bytes') }),
    );
    const stream = createReadStream(copy.file);
    stream.on('close', () => copy.remove());
    // The client may have hung up while the copy was made.
    if (request.raw.destroyed) stream.destroy();
    reply.header('content-type', SQLITE_TYPE).header('content-length', copy.bytes).header(SUM_HEADER, copy.sum);
    return reply.send(stream);
  });
}
