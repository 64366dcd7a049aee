/**
 * The one statement that stores a batch of commits. Its first part, `f`, is the fence (../fence.ts): a row if this
 * process, in its session, still has its *slot* (the number of a gateway, which is part of its uplinks' ids) under its
 * *epoch* (a random number of the process that claimed the slot). Every other part joins it, so none writes once the
 * epoch has ended. The statement returns whether the fence held, and what each part did.
 *
 * Parts that a batch has nothing for are left out, so that a batch of pings alone is a short statement.
 */
import { FENCE } from '../fence.js';
import type { Values } from '../sql.js';
import { byteaArray, int8Array, textArray } from './binary-array.js';
import type { CommitBatch } from './commit-batch.js';

/** A part of the statement: a name, its SQL, what it adds to the result, and its values. */
export interface Part {
  readonly name: string;
  readonly sql: string;
  readonly result: string;
  readonly values: Values;
}

export interface CommitResultRow {
  /** 1 if the fence held. */
  readonly fence: number;
  /** Whether there were staged events before the statement, those that it took included. */
  readonly has_staged: boolean;
  readonly uplinks?: number;
  /** Ids of commands whose sending was stored; ids of those whose answer was stored, with their locks'. */
  readonly sent?: readonly number[] | null;
  readonly answered?: readonly string[] | null;
  /** Locks whose oldest connection events are to be deleted. */
  readonly crowded?: readonly number[] | null;
}

/** A lock's oldest connection events are deleted when one gets an id that is a multiple of this. */
const LOCK_EVENT_TRIM_INTERVAL = 1024;

/* Ids in results are `float8[]`: the driver would return the numbers of a `bigint[]` as texts. */

/** One column of rows, as an array that the driver sends as text. Long columns are binary (binary-array.ts). */
function columns<T>(rows: readonly T[], of: (row: T) => unknown): unknown[] {
  return rows.map(of);
}

/** What a lock sent, as a text that PostgreSQL can hold. A commit must not fail for it: the lock would repeat it. */
function storable(text: string | null): string | null {
  return text === null ? null : text.replaceAll('\0', '\uFFFD');
}

function markPart(n: number): Part {
  return {
    name: 'mark',
    sql: `INSERT INTO commit_mark (slot, epoch, n) SELECT @slot, @epoch, @n::bigint FROM f RETURNING 1`,
    result: '(SELECT count(*) FROM mark) AS marks',
    values: { n },
  };
}

/** The columns of the log, the table `uplink`, that each of its new rows has a value for. */
const NEW_UPLINK_COLUMNS = [
  ...['id', 'device_id', 'merchant_id', 'credential_id', 'boot', 'sequence', 'received_at_ms', 'kind', 'buffered'],
  ...['digest', 'bytes', 'sum'],
];
const BYTEA_COLUMNS = ['digest', 'bytes'];

/**
 * The new rows of the log, and whether each is a staged event. `unnest` in a list of what is selected takes PostgreSQL
 * 1 µs a row; in FROM, where it first copies each array into a table, 3 to 6 µs.
 */
const NEW_UPLINK_ROWS = `SELECT ${[...NEW_UPLINK_COLUMNS, 'staged_id']
  .map((name) => `unnest(@u_${name}::${BYTEA_COLUMNS.includes(name) ? 'bytea' : 'bigint'}[]) AS ${name}`)
  .join(', ')} FROM f`;

/** Inserts into the log: uplinks, and staged events (`stagedId` > 0) if this statement took them. */
function uplinkPart({ uplinks }: CommitBatch, hasStaged: boolean): Part {
  const isTaken = 'WHERE t.staged_id = 0 OR EXISTS (SELECT 1 FROM st WHERE st.id = t.staged_id)';
  const names = NEW_UPLINK_COLUMNS.join(', ');
  return {
    name: 'u',
    sql: `INSERT INTO uplink (slot, ${names}) SELECT @slot, ${names} FROM (${NEW_UPLINK_ROWS}) t
      ${hasStaged ? isTaken : ''}
      RETURNING 1`,
    result: '(SELECT count(*) FROM u) AS uplinks',
    values: {
      u_id: int8Array(uplinks, ({ id }) => id),
      u_device_id: int8Array(uplinks, ({ deviceId }) => deviceId),
      u_merchant_id: int8Array(uplinks, ({ merchantId }) => merchantId),
      u_credential_id: int8Array(uplinks, ({ credentialId }) => credentialId),
      u_boot: int8Array(uplinks, ({ boot }) => boot),
      u_sequence: int8Array(uplinks, ({ sequence }) => sequence),
      u_received_at_ms: int8Array(uplinks, ({ receivedAtMs }) => receivedAtMs),
      u_kind: int8Array(uplinks, ({ kind }) => kind),
      u_buffered: int8Array(uplinks, ({ buffered }) => buffered),
      u_digest: byteaArray(uplinks, ({ digest }) => digest),
      u_bytes: byteaArray(uplinks, ({ bytes }) => bytes),
      u_sum: int8Array(uplinks, ({ sum }) => sum),
      u_staged_id: int8Array(uplinks, ({ stagedId }) => stagedId),
    },
  };
}

/**
 * Takes staged events (about the ends of commands, which a trigger puts into `staged_event`) out of their table: only
 * those that nobody else took are inserted into the log.
 */
function stagedPart({ uplinks }: CommitBatch): Part {
  return {
    name: 'st',
    sql: `DELETE FROM staged_event e USING f WHERE e.id = ANY(@st_id::bigint[]) RETURNING e.id`,
    result: '(SELECT count(*) FROM st) AS staged',
    values: { st_id: uplinks.filter(({ stagedId }) => stagedId > 0).map(({ stagedId }) => stagedId) },
  };
}

function statePart({ states }: CommitBatch): Part {
  // In the order of ids, as all statements lock rows: two that wait for each other would be a deadlock.
  const rows = [...states].sort(([one], [other]) => one - other);
  return {
    name: 's',
    sql: `INSERT INTO device_state (device_id, state, through_uplink_id)
      SELECT t.device_id, t.state, t.through
      FROM f, unnest(@s_device::bigint[], @s_state::text[], @s_through::bigint[]) AS t (device_id, state, through)
      ON CONFLICT (device_id) DO UPDATE SET
        state = excluded.state, through_uplink_id = excluded.through_uplink_id
      RETURNING 1`,
    result: '(SELECT count(*) FROM s) AS states',
    values: {
      s_device: int8Array(rows, ([deviceId]) => deviceId),
      s_state: textArray(rows, ([, { state }]) => state),
      s_through: int8Array(rows, ([, { throughId }]) => throughId),
    },
  };
}

/** The event that a command was sent is left out if the command can't be sent any more. */
function lockEventPart({ lockEvents }: CommitBatch): Part {
  return {
    name: 'le',
    sql: `INSERT INTO lock_event (device_id, at_ms, event, after_uplink_id, merchant_id)
      SELECT t.device_id, t.at_ms, t.event, t.after_id, (SELECT merchant_id FROM device WHERE id = t.device_id)
      FROM f, unnest(@le_device::bigint[], @le_at::double precision[], @le_event::text[], @le_after::bigint[],
        @le_command::bigint[]) WITH ORDINALITY AS t (device_id, at_ms, event, after_id, command_id, n)
      WHERE t.command_id = 0 OR EXISTS (SELECT 1 FROM command c
        WHERE c.id = t.command_id AND c.state IN ('queued', 'sent'))
      ORDER BY t.n
      RETURNING id, device_id`,
    result: `(SELECT array_agg(DISTINCT device_id)::float8[] FROM le WHERE id % ${LOCK_EVENT_TRIM_INTERVAL} = 0)
      AS crowded`,
    values: {
      le_device: columns(lockEvents, ({ item }) => item.deviceId),
      le_at: columns(lockEvents, ({ item }) => item.atMs),
      le_event: columns(lockEvents, ({ item }) => JSON.stringify(item.event)),
      le_after: columns(lockEvents, ({ afterId }) => afterId),
      le_command: columns(lockEvents, ({ item }) => (item.event.event === 'command' ? item.event.id : 0)),
    },
  };
}

function quarantinePart({ quarantined }: CommitBatch): Part {
  return {
    name: 'q',
    sql: `INSERT INTO quarantine (device_id, credential_id, received_at_ms, code, message, bytes, merchant_id)
      SELECT t.device_id, t.credential_id, t.at_ms, t.code, t.message, t.bytes,
        (SELECT merchant_id FROM device WHERE id = t.device_id)
      FROM f, unnest(@q_device::bigint[], @q_credential::bigint[], @q_at::double precision[], @q_code::text[],
        @q_message::text[], @q_bytes::bytea[])
        WITH ORDINALITY AS t (device_id, credential_id, at_ms, code, message, bytes, n)
      ORDER BY t.n
      RETURNING 1`,
    result: '(SELECT count(*) FROM q) AS quarantined',
    values: {
      q_device: columns(quarantined, ({ deviceId }) => deviceId),
      q_credential: columns(quarantined, ({ credentialId }) => credentialId),
      q_at: columns(quarantined, ({ receivedAtMs }) => receivedAtMs),
      q_code: columns(quarantined, ({ code }) => code),
      q_message: columns(quarantined, ({ message }) => storable(message)),
      q_bytes: byteaArray(quarantined, ({ bytes }) => bytes),
    },
  };
}

function withdrawalPart({ withdrawn }: CommitBatch): Part {
  return {
    name: 'w',
    sql: `DELETE FROM finding g
      USING f, unnest(@w_device::bigint[], @w_rule::text[], @w_credential::bigint[], @w_boot::bigint[],
        @w_sequence::bigint[]) AS t (device_id, rule, credential_id, boot, sequence)
      WHERE g.device_id = t.device_id AND g.rule = t.rule AND g.credential_id = t.credential_id AND g.boot = t.boot
        AND g.sequence = t.sequence
      RETURNING 1`,
    result: '(SELECT count(*) FROM w) AS withdrawn',
    values: {
      w_device: columns(withdrawn, ({ deviceId }) => deviceId),
      w_rule: columns(withdrawn, ({ withdrawal }) => withdrawal.rule),
      w_credential: columns(withdrawn, ({ withdrawal }) => withdrawal.about.credential),
      w_boot: columns(withdrawn, ({ withdrawal }) => withdrawal.about.boot),
      w_sequence: columns(withdrawn, ({ withdrawal }) => withdrawal.about.sequence),
    },
  };
}

function findingPart({ findings }: CommitBatch): Part {
  return {
    name: 'fi',
    sql: `INSERT INTO finding (device_id, at_ms, rule, severity, message, credential_id, boot, sequence, merchant_id)
      SELECT t.device_id, t.at_ms, t.rule, t.severity, t.message, t.credential_id, t.boot, t.sequence,
        (SELECT merchant_id FROM device WHERE id = t.device_id)
      FROM f, unnest(@fi_device::bigint[], @fi_at::double precision[], @fi_rule::text[], @fi_severity::text[],
        @fi_message::text[], @fi_credential::bigint[], @fi_boot::bigint[], @fi_sequence::bigint[])
        WITH ORDINALITY AS t (device_id, at_ms, rule, severity, message, credential_id, boot, sequence, n)
      ORDER BY t.n
      RETURNING 1`,
    result: '(SELECT count(*) FROM fi) AS findings',
    values: {
      fi_device: columns(findings, ({ deviceId }) => deviceId),
      fi_at: columns(findings, ({ finding }) => finding.atMs),
      fi_rule: columns(findings, ({ finding }) => finding.rule),
      fi_severity: columns(findings, ({ finding }) => finding.severity),
      fi_message: columns(findings, ({ finding }) => storable(finding.message)),
      fi_credential: columns(findings, ({ finding }) => finding.about?.credential ?? null),
      fi_boot: columns(findings, ({ finding }) => finding.about?.boot ?? null),
      fi_sequence: columns(findings, ({ finding }) => finding.about?.sequence ?? null),
    },
  };
}

/**
 * A command is sent while it is queued or sent; a lock can answer only a command that was sent to it, and only once.
 * The conditions compare the command's own row with constants, so they hold for the row that is changed in the end.
 * RETURNING sees that row as it is afterwards, where the conditions can't be tested again: there the new values show
 * what was done.
 */
function commandPart({ commands }: CommitBatch): Part {
  const rows = [...commands.values()].sort((one, other) => one.id - other.id);
  const mayBeSent = `(t.sends > 0 AND c.state IN ('queued', 'sent'))`;
  const answer = '(t.answers -> c.device_id::text)';
  const mayBeAnswered = `(t.answers ? c.device_id::text AND c.sent_count + t.sends > 0 AND (
    c.state IN ('sent', 'expired', 'cancelled') OR (c.state = 'queued' AND t.sends > 0)))`;
  return {
    name: 'c',
    sql: `UPDATE command c SET
        state = CASE WHEN ${mayBeAnswered} THEN ${answer} ->> 'state' ELSE 'sent' END,
        detail = CASE WHEN ${mayBeAnswered} THEN ${answer} ->> 'detail' ELSE c.detail END,
        finished_at_ms = CASE WHEN ${mayBeAnswered} THEN (${answer} ->> 'atMs')::float8 ELSE c.finished_at_ms END,
        sent_count = c.sent_count + CASE WHEN ${mayBeSent} THEN t.sends ELSE 0 END,
        first_sent_at_ms = CASE WHEN ${mayBeSent} THEN coalesce(c.first_sent_at_ms, t.first_at)
          ELSE c.first_sent_at_ms END,
        last_sent_at_ms = CASE WHEN ${mayBeSent} THEN t.last_at ELSE c.last_sent_at_ms END
      FROM f, unnest(@c_id::bigint[], @c_sends::bigint[], @c_first::double precision[], @c_last::double precision[],
        @c_answers::jsonb[]) AS t (id, sends, first_at, last_at, answers)
      WHERE c.id = t.id AND (${mayBeSent} OR ${mayBeAnswered})
      RETURNING c.id, c.device_id, t.sends > 0 AND c.last_sent_at_ms = t.last_at AS was_sent,
        c.state NOT IN ('queued', 'sent') AS was_answered`,
    result: `(SELECT array_agg(id)::float8[] FROM c WHERE was_sent) AS sent,
      (SELECT array_agg(id || ' ' || device_id) FROM c WHERE was_answered) AS answered`,
    values: {
      c_id: columns(rows, ({ id }) => id),
      c_sends: columns(rows, ({ sends }) => sends),
      c_first: columns(rows, ({ firstAtMs }) => firstAtMs),
      c_last: columns(rows, ({ lastAtMs }) => lastAtMs),
      c_answers: columns(rows, ({ answers }) => {
        const storableAnswers = [...answers].map(([id, each]) => [id, { ...each, detail: storable(each.detail) }]);
        return JSON.stringify(Object.fromEntries(storableAnswers));
      }),
    },
  };
}

/** The parts that write a batch; the first one marks that the commit, the `n`-th of the epoch, is stored. */
export function commitParts(batch: CommitBatch, n: number): Part[] {
  const parts = [markPart(n)];
  const hasStaged = batch.uplinks.some(({ stagedId }) => stagedId > 0);
  if (hasStaged) parts.push(stagedPart(batch));
  if (batch.uplinks.length > 0) parts.push(uplinkPart(batch, hasStaged));
  if (batch.states.size > 0) parts.push(statePart(batch));
  if (batch.lockEvents.length > 0) parts.push(lockEventPart(batch));
  if (batch.quarantined.length > 0) parts.push(quarantinePart(batch));
  if (batch.withdrawn.length > 0) parts.push(withdrawalPart(batch));
  if (batch.findings.length > 0) parts.push(findingPart(batch));
  if (batch.commands.size > 0) parts.push(commandPart(batch));
  return parts;
}

/** The statement of these parts; its values are those of the parts with `slot`, `epoch` and `session`. */
export function statementOf(parts: readonly Part[]): string {
  const withs = [FENCE, ...parts.map(({ name, sql }) => `${name} AS (${sql})`)].join(', ');
  const always = ['(SELECT count(*) FROM f) AS fence', 'EXISTS (SELECT 1 FROM staged_event) AS has_staged'];
  const results = [...always, ...parts.map(({ result }) => result)].join(', ');
  return `WITH ${withs} SELECT ${results}`;
}
