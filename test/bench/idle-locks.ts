/**
 * Very many locks that are connected and say nothing, and very many that come back at once after an outage, beside bare
 * aedes that checks and keeps nothing (quality.md §1).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openKeys } from '../../gateway/keys.js';
import { openDurable } from '../../gateway/store/durable-file.js';
import { openSqliteStore } from '../../gateway/store/sqlite-store.js';
import type { HostRequest } from './crowd-host.js';
import { type CrowdRequest, crowdMac, crowdSecret } from './lock-crowd.js';
import { type Row, ratesOf } from './measure.js';
import { Obedient } from './obedient.js';

const LOCKS = 10_000;
const ROUNDS = 5;

/** A host, and the crowd that connects to it. */
class Site {
  readonly #name: string;
  readonly #host: Obedient;
  readonly #crowd: Obedient;

  private constructor(name: string, host: Obedient, crowd: Obedient) {
    this.#name = name;
    this.#host = host;
    this.#crowd = crowd;
  }

  static async open(request: HostRequest): Promise<Site> {
    const host = new Obedient('./crowd-host.js', request);
    const { port } = await host.answer<{ port: number }>();
    const crowd = new Obedient('./lock-crowd.js', {
      port,
      locks: LOCKS,
      subscribes: true,
    } satisfies CrowdRequest);
    return new Site(request.host, host, crowd);
  }

  /** Resident bytes, once so many are connected and all is quiet. */
  async rss(connected: number): Promise<number> {
    return (await this.#host.answer<{ rss: number }>(String(connected))).rss;
  }

  /** All connect; how long it took, ms. */
  async connect(): Promise<number> {
    const { retries, ms } = await this.#crowd.answer<{ retries: number; ms: number }>('connect');
    if (retries > 0) console.error(`  ${this.#name}: ${retries} had to try again`);
    return ms;
  }

  async drop(): Promise<void> {
    await this.#crowd.answer('drop');
  }

  async close(): Promise<void> {
    await this.#crowd.end();
    await this.#host.end();
  }
}

/** Memory per connected lock that says nothing: what 10,000 add to a process, over bare aedes' same. */
export async function benchIdleLocks(): Promise<Row> {
  return await withLocks(async (data) => {
    const growth = async (host: HostRequest['host']): Promise<number> => {
      const site = await Site.open({ host, data });
      const before = await site.rss(0);
      await site.connect();
      const after = await site.rss(LOCKS);
      await site.close();
      return (after - before) / LOCKS;
    };
    const [ours, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      ours.push(await growth('gateway'));
      bare.push(await growth('aedes'));
    }
    const [rates, peer] = [ratesOf(ours), ratesOf(bare)];
    return {
      name: `memory of ${LOCKS.toLocaleString('en')} idle locks`,
      unit: 'bytes each',
      rates,
      peer: { name: 'bytes each in bare aedes', rates: peer },
      ratio: rates.median / peer.median,
      floor: '1.5 ×',
      aim: '≤ 1.0 ×',
    };
  });
}

/** The time that 10,000 locks take that come back at once, with their secrets, over that of bare aedes, with none. */
export async function benchReconnect(): Promise<Row> {
  return await withLocks(async (data) => {
    const sites = [await Site.open({ host: 'gateway', data }), await Site.open({ host: 'aedes', data })] as const;
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [index, site] of sites.entries()) {
        await site.rss(0);
        const ms = await site.connect();
        await site.rss(LOCKS);
        await site.drop();
        // The first round is the warm-up, and locks that never connected before.
        if (round > 0) times[index]?.push(ms);
      }
    }
    for (const site of sites) await site.close();
    const [rates, peer] = [ratesOf(times[0]), ratesOf(times[1])];
    return {
      name: `${LOCKS.toLocaleString('en')} locks reconnecting at once`,
      unit: 'ms',
      rates,
      peer: { name: 'ms with bare aedes', rates: peer },
      ratio: rates.median / peer.median,
      floor: '2 ×',
      aim: '≤ 1.2 ×',
    };
  });
}

/** A data folder whose gateway knows the crowd. */
async function withLocks<T>(work: (data: string) => Promise<T>): Promise<T> {
  const data = mkdtempSync(path.join(tmpdir(), 'lockgate-bench-'));
  try {
    const store = await openSqliteStore(data);
    const merchant = await store.addMerchant('Bench', 0);
    await store.close();
    provision(data, merchant.id);
    return await work(data);
  } finally {
    rmSync(data, { recursive: true });
  }
}

/** One transaction for all: one for each would take longer than what is measured. */
function provision(data: string, merchantId: number): void {
  const keys = openKeys(data, false);
  const db = openDurable(path.join(data, 'lockgate.sqlite'));
  const device = db.prepare('INSERT INTO device (mac, merchant_id, simulated, created_at_ms) VALUES (?, ?, 1, 0)');
  const credential = db.prepare(
    `INSERT INTO credential (device_id, kind, secret_hash, created_at_ms) VALUES (?, 'lock', ?, 0)`,
  );
  db.transaction(() => {
    for (let number = 0; number < LOCKS; number++) {
      const mac = crowdMac(number);
      credential.run(device.run(mac, merchantId).lastInsertRowid, keys.hashSecret(crowdSecret(mac)));
    }
  })();
  db.close();
}
