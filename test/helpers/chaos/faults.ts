/**
 * The faults of a chaos run: each hurts one gateway, its link to the database, or the database. A fault ends by itself,
 * and resolves when it is over; what it broke may still be recovering.
 */
import pg from 'pg';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import { cutOff, type FaultSite, letThrough } from './fault-site.js';
import { fullDisk } from './full-disk.js';
import type { KeptGateway } from './kept-gateway.js';
import { restore } from './restore.js';

type Fault = (site: FaultSite) => Promise<void>;

/** How many times, 0.2 s apart, commits' waits for the standby are cancelled while it lags. */
const CANCELLED_WAITS = 10;
/** Clocks err by less than five minutes: the merchant refuses a webhook that is off by more (Standard Webhooks). */
const MAX_CLOCK_ERROR_SECONDS = 240;
/** How long the gateways can't reach the database at most. */
const LONGEST_OUTAGE = Seconds(30);

function anyGateway({ gateways, chance }: FaultSite): KeptGateway {
  return chance.pick(gateways);
}

/** Pauses a gateway's process for a random time. */
async function pause(site: FaultSite, minimumMs: Milliseconds, limitMs: Milliseconds): Promise<void> {
  const gateway = anyGateway(site);
  gateway.signal('SIGSTOP');
  await realDelay(site.chance.between(minimumMs, limitMs));
  gateway.signal('SIGCONT');
}

/** Keeps all gateways from reaching the database for this time. */
async function away({ gateways }: FaultSite, milliseconds: Milliseconds): Promise<void> {
  cutOff(gateways);
  await realDelay(milliseconds);
  letThrough(gateways);
}

/** Runs a statement as the superuser, and ignores its errors: another fault may have hit the database. */
async function tryQuery(site: FaultSite, statement: string): Promise<void> {
  await site
    .server()
    .query(site.database, statement)
    .catch(() => undefined);
}

/** A condition in SQL: a connection of a gateway to this database. */
const CONNECTIONS = `pid <> pg_backend_pid() AND application_name = 'lockgate' AND datname = current_database()`;

/** All faults that need no standby, by name. */
const FAULTS = {
  /** A gateway's process is killed, and starts again up to 8 s later. */
  kill: async (site) => {
    anyGateway(site).kill(site.chance.between(Seconds(0), Seconds(8)));
  },
  /** A gateway stands still for a while, and goes on as if nothing had happened. */
  pause: (site) => pause(site, Seconds(1), Seconds(5)),
  /** A gateway stands still for so long that others take over its locks. */
  'long-pause': (site) => pause(site, Seconds(9), Seconds(14)),
  /** A gateway ends by itself, as for an upgrade, and starts again. */
  restart: async (site) => {
    anyGateway(site).signal('SIGTERM');
  },
  /** A gateway's connections to the database are reset, some in mid-commit. */
  cut: async (site) => {
    const { proxy } = anyGateway(site);
    for (let times = site.chance.between(1, 6); times > 0; times -= 1) {
      proxy.cut();
      await realDelay(site.chance.between(0, 400));
    }
  },
  /** A gateway's connections go silent, half-open on both sides; new ones work. */
  silence: async (site) => {
    anyGateway(site).proxy.silence();
  },
  /** What a gateway sends arrives only when it has given up those commits and stored the same uplinks again. */
  hold: async (site) => {
    const release = anyGateway(site).proxy.hold();
    await realDelay(site.chance.between(Seconds(8), Seconds(14)));
    release();
  },
  /** A gateway's connections to the database are slow. */
  slow: async (site) => {
    const { proxy } = anyGateway(site);
    proxy.delayMs = site.chance.between(20, 200);
    await realDelay(site.chance.between(Seconds(3), Seconds(10)));
    proxy.delayMs = 0;
  },
  /** One gateway can't reach the database. */
  partition: async (site) => {
    const { proxy } = anyGateway(site);
    proxy.isRefusing = true;
    proxy.cut();
    await realDelay(site.chance.between(Seconds(1), Seconds(12)));
    proxy.isRefusing = false;
  },
  /** No gateway can reach the database. */
  away: (site) => away(site, site.chance.between(Seconds(1), LONGEST_OUTAGE)),
  /** The database takes no writes for a while. */
  'read-only': async (site) => {
    await tryQuery(site, 'ALTER SYSTEM SET default_transaction_read_only = on');
    await tryQuery(site, 'SELECT pg_reload_conf()');
    await realDelay(site.chance.between(Seconds(1), Seconds(10)));
    await tryQuery(site, 'ALTER SYSTEM RESET default_transaction_read_only');
    await tryQuery(site, 'SELECT pg_reload_conf()');
  },
  /** The database's disk is full for a while; without g++, nothing happens. */
  'full-disk': fullDisk,
  /** A backup is restored that is older than a gateway's start. */
  restore,
  /** A gateway's clock is set wrong, and right again after a while; without libfaketime, nothing happens. */
  'wrong-clock': async (site) => {
    const { clock } = anyGateway(site);
    const seconds = site.chance.between(-MAX_CLOCK_ERROR_SECONDS, MAX_CLOCK_ERROR_SECONDS);
    clock?.set(`${seconds < 0 ? '' : '+'}${seconds}s`);
    await realDelay(site.chance.between(Seconds(5), Seconds(15)));
    clock?.set('+0');
  },
  /** The database ends connections. */
  terminate: (site) => tryQuery(site, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${CONNECTIONS}`),
  /** A process of the database crashes, so that all of them start again. */
  crash: async (site) => {
    const rows = await site
      .server()
      .query(site.database, `SELECT pid FROM pg_stat_activity WHERE ${CONNECTIONS} LIMIT 1`)
      .catch(() => []);
    for (const { pid } of rows) process.kill(Number(pid), 'SIGKILL');
  },
  /** A program reads an old snapshot for long, as pg_dump does. */
  snapshot: async (site) => {
    const client = new pg.Client({ connectionString: site.server().url(site.database) });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT count(*) FROM uplink');
      await realDelay(Seconds(10));
    } catch {
      // Another fault may end it earlier.
    } finally {
      await client.end().catch(() => undefined);
    }
  },
} as const satisfies Record<string, Fault>;

/**
 * Pauses PostgreSQL's process that sends to the standby, and cancels commits' waits for the standby. Returns the paused
 * process's id; 0 if there is none.
 */
async function pauseSender(site: FaultSite): Promise<number> {
  const pid = (await site.replicated?.senderPid()) ?? 0;
  if (pid === 0) return 0;
  process.kill(pid, 'SIGSTOP');
  for (let times = 0; times < CANCELLED_WAITS; times += 1) {
    await realDelay(Seconds(0.2));
    await tryQuery(site, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  }
  return pid;
}

/** The faults of a database with a standby. */
const STANDBY_FAULTS = {
  /** The primary is killed, and the standby takes over. */
  failover: async ({ replicated }) => await replicated?.failOver(),
  /** The standby hears nothing for a while, so commits wait; the waits are cancelled. */
  lag: async (site) => {
    const pid = await pauseSender(site);
    if (pid > 0) process.kill(pid, 'SIGCONT');
  },
  /** The primary is killed while the standby lags behind it: commits whose waits were cancelled are lost. */
  'failover-with-lag': async (site) => {
    const pid = await pauseSender(site);
    if (pid > 0) process.kill(pid, 'SIGKILL');
    await site.replicated?.failOver();
  },
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS | keyof typeof STANDBY_FAULTS;

const ALL: Readonly<Record<FaultName, Fault>> = { ...FAULTS, ...STANDBY_FAULTS };

/** The names of the faults of a database with or without a standby. */
export function faultNames(withStandby: boolean): FaultName[] {
  return Object.keys(withStandby ? ALL : FAULTS) as FaultName[];
}

/** Does a fault, and resolves when it is over. */
export function doFault(name: FaultName, site: FaultSite): Promise<void> {
  return ALL[name](site);
}
