/**
 * The fault of a full disk of the database: of the write-ahead log's, where PostgreSQL crashes, can't recover and ends,
 * or of the tables', where it answers with errors. The gateways must say that they are degraded, go on running, and
 * acknowledge again soon after there is room.
 */
import { type Milliseconds, Minutes, monotonicMs, Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import type { PostgresServer } from '../store/postgres/server.js';
import { type DiskPart, fillServerDisk, freeServerDisk } from '../store/postgres/server-disk.js';
import { areReady, type FaultSite, holdsWithin } from './fault-site.js';

/** How long gateways may still recover from the fault before this one; else this one judges nothing. */
const READY_LIMIT = Seconds(20);
/** How soon each gateway must say that it is degraded: a full disk of the tables shows once one of them must grow. */
const DEGRADED_LIMIT = Seconds(15);
/** How soon after there is room each gateway must be ready, and uplinks be acknowledged. */
const BACK_LIMIT = Seconds(10);
/** How long a server may take to recover, with all that it must replay, before the run fails. */
const RECOVERY_LIMIT = Minutes(2);

/** The fault. */
export async function fullDisk(site: FaultSite): Promise<void> {
  if (!site.hasFullDisk) return;
  const part = site.chance.pick<DiskPart>(['wal', 'data']);
  const lastsMs = site.chance.between(Seconds(1), Seconds(10));
  const isJudged = await holdsWithin(READY_LIMIT, () => areReady(site));
  if (!isJudged) site.note('the next fault judges nothing: a gateway was not ready before it');
  const judge = (isKept: boolean, sentence: string): void => {
    if (isJudged && !isKept) site.onBroken(`with a full disk (${part}) ${sentence}`);
  };
  const exits = (): number => site.gateways.reduce((sum, gateway) => sum + gateway.exits.length, 0);
  const exitsBefore = exits();
  const server = site.server();
  fillServerDisk(server, part);
  try {
    judge(await haveSaidDegraded(site), 'a gateway did not say that it was degraded');
    await stayFull(site, part, lastsMs, judge);
  } finally {
    freeServerDisk(server, part);
  }
  await startEnded(server);
  const ackedBefore = await site.acked();
  const startMs = monotonicMs();
  const isBack = await holdsWithin(
    BACK_LIMIT,
    async () => (await areReady(site)) && (await site.acked()) > ackedBefore,
  );
  judge(isBack, `no uplink was acknowledged, or a gateway was not ready, ${monotonicMs() - startMs} ms after`);
  judge(exits() === exitsBefore, 'a gateway ended');
}

/**
 * Starts the server again if it has ended: without room for its log it crashes, recovers in vain, and ends. If there is
 * room before that, it goes on by itself.
 */
async function startEnded(server: PostgresServer): Promise<void> {
  const isBack = await holdsWithin(RECOVERY_LIMIT, async () => {
    try {
      await server.query('postgres', 'SELECT 1');
    } catch (error) {
      // The port is closed once the server has ended; one that recovers has it open, and refuses connections by itself.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') return false;
      await server.startAgain();
    }
    return true;
  });
  if (!isBack) throw new Error(`PostgreSQL did not recover within ${RECOVERY_LIMIT / Seconds(1)} s after a full disk`);
}

/** Waits until each gateway has said once that it is degraded. Returns false if one does not in time. */
async function haveSaidDegraded({ gateways }: FaultSite): Promise<boolean> {
  const waiting = new Set(gateways);
  return await holdsWithin(DEGRADED_LIMIT, async () => {
    for (const gateway of waiting) if ((await gateway.readiness()) === 'degraded') waiting.delete(gateway);
    return waiting.size === 0;
  });
}

/** Lets time pass. Without a log nothing may be acknowledged; what fits into the tables may. */
async function stayFull(
  site: FaultSite,
  part: DiskPart,
  lastsMs: Milliseconds,
  judge: (isKept: boolean, sentence: string) => void,
): Promise<void> {
  const ackedBefore = await site.acked();
  await realDelay(lastsMs);
  const acked = (await site.acked()) - ackedBefore;
  if (part === 'wal') judge(acked === 0, `${acked} uplinks were acknowledged without a database`);
}
