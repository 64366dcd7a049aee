/**
 * The durability run at the highest rate: many locks flood a gateway that is killed repeatedly, with or without a loss
 * of power. Then the run compares the acknowledged pings with the store's file, and for some locks with the webhooks
 * that their merchant recorded in a diary. The gateway is not asked.
 */
import type { RunSize } from '../../../gateway/store/contract/store-options.js';
import { SEQUENCE_BEFORE_FIRST } from '../../bench/load/ping-template.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { checkDeliveries } from './delivery-check.js';
import type { PingKey } from './diary-lock.js';
import { DiaryMerchant } from './diary-merchant.js';
import { floodFaults } from './flood-check.js';
import { FLOOD_BOOT, type FloodLock, FloodLocks, MERCHANT_WITH_URL } from './flood-locks.js';
import type { PowerLoss } from './power-loss.js';
import type { SabotageName } from './sabotage.js';

/** The test that gets the run's comments. */
type Test = Teardown & { comment(line: string): void };

/** The size of a run, and what makes it harder. */
export interface FloodRunOptions {
  readonly seed: number;
  readonly locks: number;
  /** The number of locks whose merchant has a webhook URL, and writes a diary. */
  readonly locksWithUrl: number;
  readonly kills: number;
  /** Maximum time from the start of the flood to a kill, in ms; the minimum is a quarter of it. */
  readonly maxFloodMs: number;
  /**
   * A small number of uplinks that the store collects in memory before it sorts them into its indexes, so that some
   * kills interrupt the sorting; by default the gateway's number.
   */
  readonly runSize?: RunSize;
  /** Makes the gateway lose pings on purpose. */
  readonly sabotage?: SabotageName;
  /** If given, each kill is also a loss of power: writes without an fsync are undone. */
  readonly powerLoss?: PowerLoss | undefined;
  /** Further environment variables of the gateway's process. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** What a run showed. If no acknowledged ping was lost, there are neither faults nor error lines. */
export interface FloodRunResult {
  /** Differences between the acknowledged pings and the file or the diary. */
  readonly faults: readonly string[];
  readonly acked: number;
  /** The number of received webhooks. */
  readonly arrivals: number;
  readonly errorLines: readonly string[];
  /** The gateway's exit code after SIGTERM; null if a sabotage was found before. */
  readonly exitCode: number | null;
}

/** Longer than any flood lasts: a kill or a stop of the gateway ends it. */
const UNLIMITED_FLOOD_MS = 60_000;
/** quality.md §2, graceful stop. */
const STOP_SECONDS = 10;
/** The merchant is considered to have everything after this time without a webhook. */
const STALL_SECONDS = 4;

/** One run, from the first start of the gateway to its last stop. */
export class FloodRun {
  readonly #options: FloodRunOptions;
  readonly #chance: SeededChance;
  readonly #changeSignal = new ChangeSignal();
  readonly #faults: string[] = [];
  #gateway!: GatewayChild;
  #merchant!: DiaryMerchant;
  #locks!: FloodLocks;

  private constructor(options: FloodRunOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  /** Runs to the end. Undefined if there is no compiler to build the load generator. */
  static async run(test: Test, options: FloodRunOptions): Promise<FloodRunResult | undefined> {
    const run = new FloodRun(options);
    if (!(await run.#setUp(test))) return undefined;
    for (let kill = 1; kill <= options.kills; kill++) {
      await run.#floodAndKill();
      test.comment(`kill ${kill}: ${run.#locks.acked} acknowledged`);
      // A sabotage that was detected needs no further kills.
      if (options.sabotage !== undefined && run.#faults.length > 0) return run.#result(null);
      await run.#gateway.start();
    }
    return await run.#conclude();
  }

  async #setUp(test: Test): Promise<boolean> {
    const { locks: lockCount, locksWithUrl, sabotage, runSize, powerLoss, environment } = this.#options;
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    const onLine = (): void => this.#changeSignal.notify();
    this.#merchant = await DiaryMerchant.start({ chance, webhookFailureShare: 0, maxAnswerMs: 0, onLine });
    test.teardown(() => this.#merchant.close());
    const gateway = await GatewayChild.create(test, { sabotage, runSize });
    const size = { locks: lockCount, locksWithUrl, chance: this.#chance };
    const locks = await FloodLocks.create(test, gateway.options.data, size);
    if (locks === undefined) return false;
    this.#gateway = gateway;
    this.#locks = locks;
    gateway.environment = { ...environment, ...powerLoss?.environment(gateway.options.data) };
    await gateway.start();
    const { secret } = await gateway.post<{ secret: string }>('/webhooks', {
      url: this.#merchant.url,
      merchant: MERCHANT_WITH_URL,
    });
    this.#merchant.verifyWith(secret);
    // A sabotaged store must lose pings in the power loss, but not the accounts, so a clean stop empties the WAL first.
    if (powerLoss === undefined) return true;
    await gateway.stop(STOP_SECONDS);
    await gateway.start();
    return true;
  }

  async #floodAndKill(): Promise<void> {
    const { maxFloodMs, powerLoss } = this.#options;
    await this.#locks.connect(this.#gateway.mqttPort, 'last');
    await this.#locks.flood(UNLIMITED_FLOOD_MS);
    await realDelay(this.#chance.between(maxFloodMs / 4, maxFloodMs));
    await this.#gateway.kill();
    powerLoss?.undoUnsynced(this.#chance);
    await this.#locks.waitForEnd();
    this.#check('after a kill');
  }

  /** Sends every ping again, waits for the remaining webhooks, and stops the gateway in the middle of a last flood. */
  async #conclude(): Promise<FloodRunResult> {
    const { maxFloodMs, locksWithUrl } = this.#options;
    await this.#locks.connect(this.#gateway.mqttPort, 'first');
    await this.#locks.flood(maxFloodMs);
    await this.#locks.waitForEnd();
    this.#check('after all locks sent every ping again');
    const { locks } = this.#locks;
    const lastAckedOfWebhookLocks = locks.slice(0, locksWithUrl).map(({ lastAcked }) => lastAcked);
    const expectedWebhooks = lastAckedOfWebhookLocks.reduce(
      (sum, lastAcked) => sum + lastAcked - SEQUENCE_BEFORE_FIRST,
      0,
    );
    const { arrivals } = this.#merchant;
    await this.#changeSignal.waitUntilOrStalled(
      () => this.#merchant.accepted >= expectedWebhooks,
      () => arrivals.length,
      STALL_SECONDS,
    );
    await this.#locks.connect(this.#gateway.mqttPort, 'last');
    await this.#locks.flood(UNLIMITED_FLOOD_MS);
    await realDelay(this.#chance.between(maxFloodMs / 4, maxFloodMs));
    const exitCode = await this.#gateway.stop(STOP_SECONDS);
    await this.#locks.waitForEnd();
    this.#check('after a stop');
    this.#checkDiary(lastAckedOfWebhookLocks);
    return this.#result(exitCode);
  }

  #result(exitCode: number | null): FloodRunResult {
    return {
      faults: this.#faults,
      acked: this.#locks.acked,
      arrivals: this.#merchant.arrivals.length,
      errorLines: this.#gateway.errorLines,
      exitCode,
    };
  }

  #check(when: string): void {
    for (const fault of floodFaults(this.#gateway.options.data, this.#locks.locks))
      this.#faults.push(`${when}: ${fault}`);
  }

  /** Every ping acknowledged before the last flood must have arrived; pings of the last flood may have arrived. */
  #checkDiary(lastAckedOfWebhookLocks: readonly number[]): void {
    const pingKeys = (from: number, to: number): PingKey[] =>
      Array.from({ length: to - from }, (_, index) => ({ boot: FLOOD_BOOT, sequence: from + 1 + index }));
    const diaries = lastAckedOfWebhookLocks.map((upTo, index) => {
      const { mac, lastAcked } = this.#locks.locks[index] as FloodLock;
      return { mac, acked: pingKeys(SEQUENCE_BEFORE_FIRST, upTo), unacked: pingKeys(upTo, lastAcked + 1) };
    });
    const { arrivals, invalid } = this.#merchant;
    for (const { message } of checkDeliveries(diaries, arrivals, 0)) this.#faults.push(`the merchant: ${message}`);
    this.#faults.push(...invalid);
  }
}
