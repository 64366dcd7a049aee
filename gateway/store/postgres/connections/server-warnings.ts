/** What is unsafe or unsuitable about a server that a gateway starts on all the same, as sentences for its log. */
import type { WatchedClient } from './connections.js';

export interface ServerFacts {
  /** The setting `synchronous_standby_names`; empty if commits wait for no other machine. */
  readonly standbys: string;
  /** The setting `data_checksums`: on or off. */
  readonly checksums: string;
  /** The process id of the backend that runs a query (`pg_backend_pid()`). */
  readonly queryPid: number;
  /** The process id that the server sent when the connection started (BackendKeyData); null if it sent none. */
  readonly startupPid: number | null;
}

/** Returns a sentence for each of them that needs a warning. */
export function serverWarnings({ standbys, checksums, queryPid, startupPid }: ServerFacts): string[] {
  const warnings: string[] = [];
  if (standbys.trim() === '')
    warnings.push(
      'PostgreSQL has no synchronous standby (synchronous_standby_names): acknowledged pings are on one machine only',
    );
  if (checksums !== 'on')
    warnings.push('PostgreSQL has no checksums of pages (data_checksums): a changed bit on its disk may go unnoticed');
  if (startupPid !== null && queryPid !== startupPid)
    warnings.push(
      'a connection pooler is between the gateway and PostgreSQL: connect directly, or let it keep a connection ' +
        'for each client’s session (pool_mode = session)',
    );
  return warnings;
}

/** Reads the facts from the server of a connection. */
export async function readServerFacts({ client, sql }: WatchedClient): Promise<ServerFacts> {
  const row = await sql.get<{ standbys: string; checksums: string; query_pid: number }>(
    `SELECT current_setting('synchronous_standby_names') AS standbys, current_setting('data_checksums') AS checksums,
       pg_backend_pid() AS query_pid`,
  );
  // The driver keeps this id, but its types don't declare it.
  const { processID: startupPid } = client as unknown as { readonly processID: number | null };
  return {
    standbys: row?.standbys ?? '',
    checksums: row?.checksums ?? '',
    queryPid: row?.query_pid ?? 0,
    startupPid,
  };
}
