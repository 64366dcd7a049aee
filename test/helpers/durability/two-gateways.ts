/**
 * A run of two gateways on one database: locks connect to either, move between them, and one gateway is killed. After
 * it the run compares the diaries of locks and merchant, and reads the log.
 */
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { monotonicMs } from '../../../proto/clock.js';
import { ChangeSignal } from '../clocks/change-signal.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import { readLogFaults } from '../store/postgres/log-faults.js';
import type { PostgresServer } from '../store/postgres/server.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { checkDeliveries, type Finding } from './delivery-check.js';
import { DiaryLock } from './diary-lock.js';
import { DiaryMerchant } from './diary-merchant.js';
import type { SabotageName } from './sabotage.js';

type Test = Teardown & { comment(line: string): void };

/** The size of a run. */
export interface TwoGatewaysOptions {
  readonly seed: number;
  readonly locks: number;
  /** How often half of the locks move to the other gateway, before one gateway is killed. */
  readonly moves: number;
  /** How many uplinks of all locks are acknowledged between two moves. */
  readonly ackedPerMove: number;
  /** Makes the gateways lose pings on purpose. */
  readonly sabotage?: SabotageName;
}

/** What a run showed. */
export interface TwoGatewaysResult {
  /** What was lost, repeated or out of order, from the diaries of the locks and of the merchant. */
  readonly findings: readonly Finding[];
  /** Uplinks (by lock, boot and sequence) that are in the database's log twice, or out of order. */
  readonly logFaults: readonly string[];
  /** Webhooks that did not verify. */
  readonly invalid: readonly string[];
  /** What the gateway that was not killed wrote to stderr. */
  readonly errorLines: readonly string[];
  /** The longest time from the kill to a lock's next acknowledgement, ms. */
  readonly takeoverMs: number;
}

/** Maximum time of each phase of the run. */
const MAX_PHASE_SECONDS = 60;
/** After this time without a new webhook, none is expected any more. */
const STALL_SECONDS = 15;
/** Locks make no new pings while the merchant lacks this many acknowledged ones. */
const MAX_BACKLOG = 300;
/** The MAC of the first lock, as a number; further locks have the next numbers. */
const FIRST_MAC = 0xa4c138000001;

/** A lock that changes between the two gateways. */
interface MovingLock {
  readonly diaryLock: DiaryLock;
  /** The gateway to which it connects, 0 or 1. */
  gateway: number;
}

/** One run. */
export class TwoGateways {
  readonly #options: TwoGatewaysOptions;
  readonly #chance: SeededChance;
  readonly #signal = new ChangeSignal();
  readonly #gateways: GatewayChild[] = [];
  readonly #locks: MovingLock[] = [];
  #merchant!: DiaryMerchant;
  #database = '';

  private constructor(options: TwoGatewaysOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  static async run(test: Test, server: PostgresServer, options: TwoGatewaysOptions): Promise<TwoGatewaysResult> {
    const run = new TwoGateways(options);
    await run.#start(test, await server.createDatabase());
    for (let move = 1; move <= options.moves; move += 1) await run.#move();
    test.comment(`${run.#acked()} acknowledged after ${options.moves} moves`);
    const takeoverMs = await run.#killFirst();
    test.comment(`all locks of the killed gateway were served again after ${Math.round(takeoverMs)} ms`);
    await run.#drain();
    test.comment(`drained: ${run.#acked()} acknowledged, ${run.#merchant.accepted} delivered`);
    const diaries = run.#locks.map(({ diaryLock: { mac, acked } }) => ({ mac, acked, unacked: [] }));
    return {
      // At least one ping must have been acknowledged; each move has already waited for many more.
      findings: checkDeliveries(diaries, run.#merchant.arrivals, 1),
      logFaults: await readLogFaults(server, run.#database),
      invalid: run.#merchant.invalid,
      errorLines: run.#gateways[1]?.errorLines ?? [],
      takeoverMs,
    };
  }

  async #start(test: Test, store: string): Promise<void> {
    const onLine = (): void => this.#signal.notify();
    this.#database = new URL(store).pathname.slice(1);
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    this.#merchant = await DiaryMerchant.start({ chance, webhookFailureShare: 0, maxAnswerMs: 3, onLine });
    test.teardown(() => this.#merchant.close());
    const { sabotage } = this.#options;
    for (let index = 0; index < 2; index += 1) {
      const data = tempFolder(test);
      const gateway = await GatewayChild.create(test, { sabotage, data, store, isShared: true });
      const [first] = this.#gateways;
      // All gateways on a database have its key.
      if (first !== undefined) copyFileSync(path.join(first.options.data, 'key'), path.join(data, 'key'));
      await gateway.start();
      this.#gateways.push(gateway);
      if (index === 0) await this.#provision(gateway);
    }
    test.teardown(() => {
      for (const { diaryLock } of this.#locks) diaryLock.cut();
    });
    for (const { diaryLock } of this.#locks) diaryLock.allowConnections();
  }

  async #provision(gateway: GatewayChild): Promise<void> {
    await gateway.post('/merchants', { name: 'Amber' });
    this.#merchant.verifyWith(await gateway.addWebhook(this.#merchant.url));
    for (let index = 0; index < this.#options.locks; index += 1) {
      const mac = (FIRST_MAC + index).toString(16).toUpperCase();
      const secret = await gateway.addLock(mac);
      const lock: { gateway: number; diaryLock?: DiaryLock } = { gateway: index % 2 };
      const diaryLock = new DiaryLock({
        ...{ mac, secret, maxUnacked: 3, mayCreateUplinks: () => this.#mayCreate() },
        chance: new SeededChance(this.#chance.between(0, 2 ** 31)),
        port: () => (this.#gateways[lock.gateway] as GatewayChild).mqttPort,
        onLine: () => this.#signal.notify(),
      });
      this.#locks.push(Object.assign(lock, { diaryLock }));
    }
  }

  /** Not while the merchant is far behind. */
  #mayCreate(): boolean {
    return this.#acked() - this.#merchant.accepted < MAX_BACKLOG;
  }

  #acked(): number {
    return this.#locks.reduce((sum, { diaryLock }) => sum + diaryLock.acked.length, 0);
  }

  async #waitUntil(isDone: () => boolean, what: string): Promise<void> {
    await this.#signal.waitUntil(isDone, MAX_PHASE_SECONDS, () => what);
  }

  /** Half of the locks lose their connections and connect to the other gateway. */
  async #move(): Promise<void> {
    const target = this.#acked() + this.#options.ackedPerMove;
    await this.#waitUntil(() => this.#acked() >= target, `${target} acknowledged uplinks, ${this.#acked()} are`);
    const moved = this.#locks.filter(() => this.#chance.next() < 0.5);
    for (const lock of moved) {
      lock.diaryLock.cut();
      lock.gateway = 1 - lock.gateway;
      lock.diaryLock.allowConnections();
    }
    await this.#progressOf(moved);
  }

  /** Waits until each of these locks got another acknowledgement. */
  async #progressOf(locks: readonly MovingLock[]): Promise<void> {
    const before = new Map(locks.map(({ diaryLock }) => [diaryLock, diaryLock.acked.length]));
    const late = () => [...before].filter(([diaryLock, count]) => diaryLock.acked.length <= count);
    const isDone = (): boolean => {
      // Nobody tells a lock that stopped while the merchant was far behind to go on, so each check does.
      for (const [diaryLock] of late()) diaryLock.createUplinks();
      return late().length === 0;
    };
    await this.#waitUntil(isDone, 'an acknowledgement of each lock that moved');
  }

  /** Kills the gateway that started first, which also delivers; its locks try the other one. */
  async #killFirst(): Promise<number> {
    await (this.#gateways[0] as GatewayChild).kill();
    const startMs = monotonicMs();
    const orphans = this.#locks.filter(({ gateway }) => gateway === 0);
    for (const lock of orphans) lock.gateway = 1;
    await this.#progressOf(orphans);
    return monotonicMs() - startMs;
  }

  async #drain(): Promise<void> {
    for (const { diaryLock } of this.#locks) diaryLock.stopCreating();
    const isAcked = (): boolean => this.#locks.every(({ diaryLock }) => diaryLock.unackedCount === 0);
    await this.#waitUntil(isAcked, 'an acknowledgement of every uplink');
    const hasAll = (): boolean => this.#merchant.accepted >= this.#acked();
    await this.#signal.waitUntilOrStalled(hasAll, () => this.#merchant.arrivals.length, STALL_SECONDS);
    await (this.#gateways[1] as GatewayChild).stop(MAX_PHASE_SECONDS);
  }
}
