/**
 * Simulates a month of some locks and a gateway on one virtual clock, with the gateway's real ingest, power model and
 * store, and with everything that can go wrong between a lock and its gateway. For tests of presence (whether the
 * gateway reports a lock as online, asleep or late).
 */

import { fleetMacs } from '../../../firmware-sim/fleet/fleet.js';
import { MemoryFlash } from '../../../firmware-sim/lock/flash.js';
import { Lock } from '../../../firmware-sim/lock/lock.js';
import { Prng } from '../../../firmware-sim/prng.js';
import { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest } from '../../../gateway/ingest/ingest.js';
import type { Sender } from '../../../gateway/ingest/pending-uplink.js';
import type { PresenceChanged } from '../../../gateway/lock-events.js';
import { withCurrentStates } from '../../../gateway/locks/current-states.js';
import { startListening, stopListening } from '../../../gateway/locks/listening.js';
import { Locks } from '../../../gateway/locks/locks.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { NO_COMMANDS } from '../commands/no-commands.js';
import { withOverrides } from '../durability/sabotage.js';
import { lockSender } from '../mqtt/lock-sender.js';
import { openStore } from '../store/new-store.js';
import { PresenceLink, type PresenceNetwork } from './link.js';
import { type LockHistory, makeHistory } from './lock-histories.js';

/** The clock advances in steps of this length. The events of a step share as few commits as possible. */
const CLOCK_STEP = Seconds(20);
/** The interval at which the gateway records its clock: a crash loses up to this much. */
const CLOCK_RECORD_INTERVAL = Seconds(5);

/** One lock of the month. */
export interface MonthLock {
  readonly mac: Mac;
  readonly deviceId: number;
  readonly history: LockHistory;
  readonly link: PresenceLink;
}

/** A time during which the gateway does not run. */
export interface GatewayOutage {
  readonly atMs: number;
  readonly span: Milliseconds;
  readonly how: 'stop' | 'crash';
}

/** The locks and the gateway of one month. */
export class PresenceMonth {
  readonly clock: VirtualClock;
  readonly startMs: number;
  readonly locks: MonthLock[] = [];
  /** All presence events of the gateway. */
  readonly presenceEvents: PresenceChanged[] = [];
  readonly #random: Prng;
  readonly #folder: string;
  readonly #network: PresenceNetwork;
  #store: Store | undefined;
  #gateway: { readonly ingest: Ingest; readonly locks: Locks } | undefined;
  /** Whether the gateway has crashed, so that it must not store anything more. */
  #hasCrashed = false;
  /** When the gateway last ran, as it recorded before its stop or crash. */
  #lastRanMs: number | null = null;

  private constructor(seed: number, folder: string, startMs: number) {
    this.#random = new Prng(`presence ${seed}`);
    this.#folder = folder;
    this.startMs = startMs;
    this.clock = new VirtualClock(startMs);
    const chance = this.#random.fork('network');
    this.#network = { clock: this.clock, ingest: undefined, random: () => chance.fraction(), lostAcks: 0.03 };
  }

  /** Starts a month of `count` locks: the gateway runs, and the locks have no power yet. */
  static async start(seed: number, folder: string, count: number, span: Milliseconds): Promise<PresenceMonth> {
    const month = new PresenceMonth(seed, folder, Date.UTC(2026, 0, 5));
    await month.#startGateway();
    await month.#provision(seed, count, span);
    return month;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('the store is closed');
    return this.#store;
  }

  /** Whether the gateway listens. */
  get isGatewayRunning(): boolean {
    return this.#gateway !== undefined;
  }

  /** Runs until `untilMs`. Everything received by then is stored, answered and announced. */
  async runUntil(untilMs: number): Promise<void> {
    while (this.clock.now() < untilMs) {
      this.clock.run(Math.min(this.clock.now() + CLOCK_STEP, untilMs));
      await this.#gateway?.ingest.idle();
    }
  }

  /** Runs until the outage starts, and on until it is over. */
  async runThroughOutage({ atMs, span, how }: GatewayOutage): Promise<void> {
    await this.runUntil(atMs);
    // A crash interrupts uplinks that were received but not stored yet.
    if (how === 'crash') this.clock.run(this.clock.now() + CLOCK_STEP);
    await this.#stopGateway(how);
    await this.runUntil(this.clock.now() + span);
    await this.#startGateway();
  }

  async close(): Promise<void> {
    if (this.#gateway !== undefined) await this.#stopGateway('stop');
  }

  async #startGateway(): Promise<void> {
    const opened = await openStore(this.#folder);
    this.#store = opened;
    this.#hasCrashed = false;
    const store = withOverrides(opened, {
      append: async (commit) => {
        if (this.#hasCrashed) throw new Error('the gateway is dead');
        return await opened.append(commit);
      },
    });
    const { clock } = this;
    const events = new GatewayEvents();
    events.on('presence', (event) => this.presenceEvents.push(event));
    const locks = new Locks(store, clock, (due) => {
      for (const { deviceId, mac } of due) ingest.recordEvent(deviceId, mac, { type: 'tick', atMs: clock.now() });
    });
    const ingest = new Ingest({ commands: NO_COMMANDS, store, locks, clock, events, onStored: () => undefined });
    await startListening({ locks, ingest, clock, lastRanMs: this.#lastRanMs });
    this.#gateway = { ingest, locks };
    this.#store = withCurrentStates(opened, locks);
    this.#network.ingest = ingest;
    for (const { link } of this.locks) link.gatewayStarted();
    await ingest.idle();
  }

  async #stopGateway(how: GatewayOutage['how']): Promise<void> {
    const gateway = this.#gateway;
    if (gateway === undefined) return;
    this.#hasCrashed = how === 'crash';
    for (const { link } of this.locks) link.gatewayEnded(how);
    this.#network.ingest = undefined;
    this.#gateway = undefined;
    await stopListening({ ...gateway, clock: this.clock });
    const lostClockMs = how === 'crash' ? this.#random.between(0, CLOCK_RECORD_INTERVAL) : 0;
    this.#lastRanMs = Math.floor(this.clock.now() - lostClockMs);
    await this.#store?.close();
    this.#store = undefined;
  }

  async #provision(seed: number, count: number, span: Milliseconds): Promise<void> {
    await this.store.addMerchant('Amber', this.startMs);
    const flash = new MemoryFlash();
    for (const [index, mac] of fleetMacs(`presence ${seed}`, count).entries()) {
      const secretHash = Buffer.from(mac);
      await this.store.addDevice({ mac, merchant: 'Amber', simulated: false, secretHash, nowMs: this.startMs });
      const sender = await lockSender(this.store, mac);
      const history = makeHistory(index, this.#random.fork(`life ${index}`), this.startMs, span);
      const commandIds = await this.#addCommands(sender, history.commands);
      this.locks.push(this.#startLock({ mac, deviceId: sender.deviceId, history }, sender, flash, commandIds));
    }
  }

  /** Stores a lock's commands, since only stored ones are sent. Returns their ids. */
  async #addCommands(
    { deviceId, merchantId }: Sender,
    commands: MonthLock['history']['commands'],
  ): Promise<readonly number[]> {
    const stored = commands.map(({ atMs, command }) => {
      const times = { createdAtMs: this.startMs, notBeforeMs: atMs, expiresAtMs: atMs + Days(1) };
      return { deviceId, merchantId, command, ...times, askedBy: 'the test' };
    });
    return (await this.store.commands.add(stored)).map(({ id }) => id);
  }

  /** Creates a simulated lock and schedules its history. */
  #startLock(provisioned: Omit<MonthLock, 'link'>, sender: Sender, flash: MemoryFlash, commandIds: readonly number[]) {
    const { clock } = this;
    const { mac, history } = provisioned;
    const links: PresenceLink[] = [];
    const lock = new Lock({
      mac,
      firmwareVersion: '2.4.1',
      clock,
      world: history.world,
      openLink: (_mac, events) => {
        const link = new PresenceLink(sender, events, this.#network);
        links.push(link);
        return link;
      },
      flash,
      jitterSeed: this.#random.uint32(),
    });
    const link = links[0] as PresenceLink;
    link.gatewayStarted();
    const at = (atMs: number, callback: () => void): void => void clock.after(Math.round(atMs - clock.now()), callback);
    at(history.poweredOnMs, () => lock.start());
    for (const [index, { atMs, command }] of history.commands.entries())
      at(atMs, () => link.command(commandIds[index] ?? 0, command));
    for (const atMs of history.connectionLossesMs) at(atMs, () => link.breakConnection());
    return { ...provisioned, link };
  }
}

/** Random outages of the gateway in a month, of seconds to days, by stop or crash. */
export function randomOutages(random: Prng, startMs: number, endMs: number): GatewayOutage[] {
  const outages: GatewayOutage[] = [];
  const spans = [Seconds(5), Minutes(2), Minutes(25), Hours(2), Hours(9), Days(1.2)];
  let atMs = startMs + Hours(20);
  for (let number = 0; atMs < endMs; number++) {
    const span = Math.round((spans[number % spans.length] as number) * random.between(0.6, 1.4));
    outages.push({ atMs: Math.round(atMs), span, how: random.chance(0.5) ? 'crash' : 'stop' });
    atMs += span + random.between(Hours(12), Days(4));
  }
  return outages.filter((outage) => outage.atMs + outage.span < endMs - Days(1));
}
