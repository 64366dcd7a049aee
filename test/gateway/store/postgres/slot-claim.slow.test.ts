/**
 * A gateway that starts takes the slot of another, its number among the gateways, if the other says nothing for three
 * seconds and the server has lost its connection. The other may come back at any time, and beat: then the slot stays
 * its own, unless its epoch has ended before, of which there is a record.
 */
import t from 'tap';
import {
  Connections,
  findServer,
  type WatchedClient,
} from '../../../../gateway/store/postgres/connections/connections.js';
import { claimSlot } from '../../../../gateway/store/postgres/node-claim.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
/** The gateway that has said nothing for long. */
const FORMER_EPOCH = 7;
/** More than the statements from the end of the silence until the former gateway's row is locked. */
const STATEMENTS = 8;
const FORMER = `INSERT INTO node (slot, epoch, session, version, released) VALUES (1, ${FORMER_EPOCH}, 8, '1', false);
  INSERT INTO node_beat (slot, epoch, at) VALUES (1, ${FORMER_EPOCH}, clock_timestamp())`;
/** What a gateway does each second, as in owners/beats.ts; but it does not wait for one that is ending its epoch. */
const BEAT = `WITH f AS (SELECT 1 FROM node WHERE slot = 1 AND epoch = ${FORMER_EPOCH} FOR KEY SHARE NOWAIT)
  UPDATE node_beat SET at = clock_timestamp() FROM f WHERE slot = 1 AND epoch = ${FORMER_EPOCH} RETURNING 1`;
const READ_SLOTS = `SELECT n.slot::int, n.epoch = ${FORMER_EPOCH} AS is_former, n.released,
    EXISTS (SELECT 1 FROM ended_epoch WHERE epoch = ${FORMER_EPOCH}) AS is_recorded
  FROM node n WHERE n.slot > 0 ORDER BY n.slot`;

/** Calls `before` with the number of each statement, 1, 2 …, once the client locks the slot for the second time. */
function watchStatements({ client }: WatchedClient, before: (number: number) => Promise<void>): void {
  let locked = 0;
  let count = 0;
  const query = client.query.bind(client) as (statement: { values?: unknown[] }) => Promise<unknown>;
  const watched = async (statement: { text?: string; values?: unknown[] }): Promise<unknown> => {
    if (locked >= 2) await before(++count);
    const isLock = statement.text?.includes('pg_try_advisory_lock(') === true && statement.values?.includes(1_001);
    if (isLock === true) locked += 1;
    return await query(statement);
  };
  Object.assign(client, { query: watched });
}

/** Claims a slot while the former gateway beats before one statement; says whether it could, and what came of it. */
async function claimWith(beatBefore: number) {
  const url = new URL(await databases.urlOf(tempFolder(t)));
  const server = await databases.server();
  const query = (statement: string) => server.query(url.pathname.slice(1), statement);
  await query(FORMER);
  const connections = new Connections(url.href, await findServer(url.href));
  let hasBeaten = false;
  const open = async (): Promise<WatchedClient> => {
    const opened = await connections.open();
    watchStatements(opened, async (number) => {
      if (number !== beatBefore) return;
      hasBeaten = await query(BEAT).then(
        (rows) => rows.length > 0,
        () => false,
      );
    });
    return opened;
  };
  const claim = await claimSlot({ open, read: connections.read }, '1', true);
  const slots = await query(READ_SLOTS);
  await claim.holder.client.end();
  await connections.close();
  return { hasBeaten, slot: claim.slot, slots };
}

t.test('a gateway that comes back while its slot is taken keeps it, or its end is recorded', options, async (t) => {
  // Each waits for three seconds, together.
  const claims = await Promise.all(Array.from({ length: STATEMENTS }, (_, index) => claimWith(index + 1)));
  const own = { released: false, is_former: false };
  for (const [index, { hasBeaten, slot, slots }] of claims.entries()) {
    const kept = [
      { slot: 1, released: false, is_former: true, is_recorded: false },
      { ...own, slot: 2, is_recorded: false },
    ];
    const ended = [{ ...own, slot: 1, is_recorded: true }];
    t.same(slots, hasBeaten ? kept : ended, `a beat before statement ${index + 1}`);
    t.equal(slot, hasBeaten ? 2 : 1);
  }
  t.ok(claims[0]?.hasBeaten);
  t.notOk(claims.at(-1)?.hasBeaten, 'by then its epoch has ended');
});

t.test('a gateway that is to be alone ends none while another beats', options, async (t) => {
  const url = new URL(await databases.urlOf(tempFolder(t)));
  const server = await databases.server();
  const query = (statement: string) => server.query(url.pathname.slice(1), statement);
  await query(FORMER);
  await query(`INSERT INTO node (slot, epoch, session, version, released) VALUES (2, 9, 10, '1', false);
    INSERT INTO node_beat (slot, epoch, at) VALUES (2, 9, clock_timestamp())`);
  const connections = new Connections(url.href, await findServer(url.href));
  t.teardown(() => connections.close());
  const open = async (): Promise<WatchedClient> => {
    const opened = await connections.open();
    const send = opened.client.query.bind(opened.client) as (statement: unknown) => Promise<unknown>;
    const beatAndSend = async (statement: unknown): Promise<unknown> => {
      await query('UPDATE node_beat SET at = clock_timestamp() WHERE slot = 2');
      return await send(statement);
    };
    Object.assign(opened.client, { query: beatAndSend });
    return opened;
  };
  await t.rejects(claimSlot({ open, read: connections.read }, '1', false), { code: 'data-in-use' });
  t.same(await query(READ_SLOTS), [
    { slot: 1, released: false, is_former: true, is_recorded: false },
    { slot: 2, released: false, is_former: false, is_recorded: false },
  ]);
});
