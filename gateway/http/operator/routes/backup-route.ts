/**
 * The store as one file over HTTP, for `db backup`. It is made first and sent then, so that its length and its checksum
 * stand in the head, and whoever gets less knows it. It changes nothing, but is a copy of everything: the audit log has
 * who took it.
 */
import { createReadStream } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { Audit } from '../../../audit/audit.js';
import type { TrustedProxies } from '../../../network/trusted-proxies.js';
import type { Store } from '../../../store/contract/store.js';
import { whoOf } from '../audited.js';
import type { DocumentedRoute } from '../document.js';
import { pick } from '../json/audit-terms.js';
import { Described } from '../schemas.js';
import type { OperatorToken } from '../token.js';

/** The header that has the checksum of what follows (`sumOfSums`). */
export const SUM_HEADER = 'lockgate-sum';

const SQLITE = 'application/vnd.sqlite3';

/** What the document says of it. */
export const BACKUP_TERMS: DocumentedRoute = {
  method: 'GET',
  path: '/backup',
  operation: 'store.backup',
  summary: 'The whole store as one SQLite file, its checksum in the header `lockgate-sum`.',
  answer: Described('A SQLite database.'),
  answerType: SQLITE,
};

/** What the route needs. */
export interface BackupParts {
  readonly store: Pick<Store, 'readCopy'>;
  readonly audit: Audit;
  readonly proxies: TrustedProxies;
  readonly token: OperatorToken;
}

/** Adds `GET /backup`. */
export function addBackupRoute(fastify: FastifyInstance, { store, audit, proxies, token }: BackupParts): void {
  const { operation: action } = BACKUP_TERMS;
  fastify.get('/backup', async (request, reply) => {
    const change = { who: whoOf(request, proxies, token.name), action, object: '', before: null };
    const copy = await audit.change(
      change,
      () => store.readCopy(),
      (made) => ({ object: '', after: made === undefined ? null : pick(made, 'bytes') }),
    );
    const stream = createReadStream(copy.file);
    stream.on('close', () => copy.remove());
    // Whoever hung up while it was made wants it no longer.
    if (request.raw.destroyed) stream.destroy();
    reply.header('content-type', SQLITE).header('content-length', copy.bytes).header(SUM_HEADER, copy.sum);
    return reply.send(stream);
  });
}
