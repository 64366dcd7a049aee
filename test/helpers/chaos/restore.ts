/**
 * The fault of a restore: the database goes back to a backup that was made before a gateway started, and so before it
 * drew its epoch (the random number of its claim). Another gateway starts on the restored database, in the same slot,
 * before the first one reaches it: the first one must then be refused, although the database has forgotten that its
 * epoch ever began and ended.
 *
 * What was acknowledged after the backup is lost by the restore. Meanwhile no commands are sent: a restored database
 * gives their numbers again, which locks take for repeats.
 */
import { Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import { backUp } from '../store/postgres/server.js';
import { areReady, cutOff, type FaultSite, holdsWithin, letThrough } from './fault-site.js';
import type { KeptGateway } from './kept-gateway.js';

/** How soon all gateways must be ready, also after the fault before this one. */
const READY_LIMIT = Seconds(60);
/** How soon a gateway must notice that the database is away. */
const AWAY_LIMIT = Seconds(10);
/** How soon a gateway with a lost claim must end, once it reaches the database. */
const REFUSED_LIMIT = Seconds(15);
/** How often a gateway is started in the hope of the lowest slot. */
const MAX_STARTS = 3;

/** The fault. With a single gateway nothing happens. */
export async function restore(site: FaultSite): Promise<void> {
  const { gateways } = site;
  if (gateways.length < 2) return;
  const isQuiet = (await site.pauseCommands()) && (await holdsWithin(READY_LIMIT, () => areReady(site)));
  try {
    if (!isQuiet) return site.onBroken('before a restore, gateways were not ready or commands not answered in time');
    await standStill(site);
    await site.setLosing(true);
    const copy = backUp(site.server());
    letThrough(gateways);
    const [lost, ...others] = await bySlot(site);
    if (lost === undefined) return site.onBroken('gateways were not ready in time after a backup');
    for (let starts = 0; starts < MAX_STARTS; starts += 1) {
      await startOver(site, lost);
      // Its slot may have seemed in use, so that it got a higher one, which the next gateway would not take.
      if ((await bySlot(site))[0] === lost) break;
    }
    await realDelay(site.chance.between(Seconds(0), Seconds(4)));
    await standStill(site);
    await site.setLosing(false);
    await (site.replicated ?? site.server()).goBackTo(copy);
    letThrough(others);
    const next = site.chance.pick(others);
    await startOver(site, next);
    const exits = lost.exits.length;
    letThrough([lost]);
    const isRefused = await holdsWithin(REFUSED_LIMIT, async () => lost.exits.length > exits);
    if (!isRefused) site.onBroken('a gateway went on although a restore had undone its start');
  } finally {
    letThrough(gateways);
    site.resumeCommands();
  }
}

/** Takes the database from all gateways, and waits until the last acknowledgements have been counted. */
async function standStill(site: FaultSite): Promise<void> {
  cutOff(site.gateways);
  await holdsWithin(AWAY_LIMIT, async () => {
    const all = await Promise.all(site.gateways.map((gateway) => gateway.readiness()));
    return !all.includes('ready');
  });
  // A gateway that says so has sent its last acknowledgements before; a count later the locks have read them.
  await site.acked();
}

/**
 * The gateways, the one with the lowest slot first: a gateway that starts takes the lowest free slot. Waits until all
 * are ready, since a slow one may have been replaced, and starts again. None if they are not ready in time.
 */
async function bySlot(site: FaultSite): Promise<KeptGateway[]> {
  let slots: readonly { readonly gateway: KeptGateway; readonly slot: number }[] = [];
  await holdsWithin(READY_LIMIT, async () => {
    if (!(await areReady(site))) return false;
    try {
      slots = await Promise.all(site.gateways.map(async (gateway) => ({ gateway, slot: await slotOf(gateway) })));
      return true;
    } catch {
      // One has ended since it was ready.
      return false;
    }
  });
  return [...slots].sort((a, b) => a.slot - b.slot).map(({ gateway }) => gateway);
}

async function slotOf({ child }: KeptGateway): Promise<number> {
  const { store } = await child.get<{ readonly store: string }>('/status');
  return Number(/slot (\d+)$/.exec(store)?.[1]);
}

/** Kills a gateway, and waits until it has started again and is ready. */
async function startOver({ onBroken }: FaultSite, gateway: KeptGateway): Promise<void> {
  const exits = gateway.exits.length;
  gateway.kill();
  const isBack = await holdsWithin(
    READY_LIMIT,
    async () => gateway.exits.length > exits && (await gateway.readiness()) === 'ready',
  );
  if (!isBack) onBroken('a gateway did not start before or after a restore');
}
