/**
 * The durability run at the highest rate: a crowd of locks floods a gateway that is killed repeatedly, with or without
 * a loss of power. Then the acknowledged pings are compared with the file of the store, and for some locks with the
 * diary of their merchant, without asking the gateway.
 */
import type { RunSize } from '../../../gateway/store/contract/store-options.js';
import { FIRST_SEQUENCE } from '../../bench/load/ping-template.js';
import { Bell, oddMoment } from '../clocks/bell.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { checkDeliveries } from './delivery-check.js';
import type { PingName } from './diary-lock.js';
import { DiaryMerchant } from './diary-merchant.js';
import { floodFaults } from './flood-check.js';
import { FLOOD_BOOT, FloodCrowd, type FloodLock, HEARD } from './flood-crowd.js';
import type { PowerLoss } from './power-loss.js';
import type { SabotageName } from './sabotage.js';

type Test = Teardown & { comment(line: string): void };

export interface FloodRunOptions {
  readonly seed: number;
  readonly locks: number;
  /** The number of locks whose merchant writes a diary. */
  readonly heard: number;
  readonly kills: number;
  /** Maximum time from the start of the flood to a kill, in ms; the minimum is a quarter of it. */
  readonly lifeMs: number;
  /** A small size of the log's runs, so that kills hit a flush of the memtable; by default the gateway's. */
  readonly runSize?: RunSize;
  readonly sabotage?: SabotageName;
  /** If given, each kill is also a loss of power: writes without an fsync are undone. */
  readonly powerLoss?: PowerLoss | undefined;
  readonly environment?: NodeJS.ProcessEnv;
}

export interface FloodRunResult {
  /** Differences between the acknowledged pings and the file or the diary. */
  readonly faults: readonly string[];
  readonly acked: number;
  /** The number of received webhooks. */
  readonly arrivals: number;
  readonly complaints: readonly string[];
  /** How the gateway stopped when it was asked to. */
  readonly exitCode: number | null;
}

/** quality.md §2, graceful stop. */
const STOP_SECONDS = 10;
/** The merchant is considered to have everything after this time without a webhook. */
const STILL_SECONDS = 4;

export class FloodRun {
  readonly #options: FloodRunOptions;
  readonly #chance: SeededChance;
  readonly #bell = new Bell();
  readonly #faults: string[] = [];
  #gateway!: GatewayChild;
  #merchant!: DiaryMerchant;
  #crowd!: FloodCrowd;

  private constructor(options: FloodRunOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  /** Runs to the end. Undefined if there is no compiler to build the crowd with. */
  static async run(test: Test, options: FloodRunOptions): Promise<FloodRunResult | undefined> {
    const run = new FloodRun(options);
    if (!(await run.#setUp(test))) return undefined;
    for (let kill = 1; kill <= options.kills; kill++) {
      await run.#liveAndDie();
      test.comment(`kill ${kill}: ${run.#crowd.acked} acknowledged`);
      // A sabotage that was detected needs no further kills.
      if (options.sabotage !== undefined && run.#faults.length > 0) return run.#result(null);
      await run.#gateway.start();
    }
    return await run.#conclude();
  }

  async #setUp(test: Test): Promise<boolean> {
    const { locks, heard, sabotage, runSize, powerLoss, environment } = this.#options;
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    const onLine = (): void => this.#bell.ring();
    this.#merchant = await DiaryMerchant.start({ chance, faultShare: 0, slowestMs: 0, onLine });
    test.teardown(() => this.#merchant.close());
    const gateway = await GatewayChild.make(test, sabotage, false, runSize);
    const crowd = await FloodCrowd.make(test, gateway.request.data, { locks, heard, chance: this.#chance });
    if (crowd === undefined) return false;
    this.#gateway = gateway;
    this.#crowd = crowd;
    gateway.environment = { ...environment, ...powerLoss?.environment(gateway.request.data) };
    await gateway.start();
    const { secret } = await gateway.post<{ secret: string }>('/webhooks', {
      url: this.#merchant.url,
      merchant: HEARD,
    });
    this.#merchant.trust(secret);
    // A sabotaged store must lose pings in the power loss, but not the accounts, so a clean stop empties the WAL first.
    if (powerLoss === undefined) return true;
    await gateway.stop(STOP_SECONDS);
    await gateway.start();
    return true;
  }

  async #liveAndDie(): Promise<void> {
    const { lifeMs, powerLoss } = this.#options;
    await this.#crowd.connect(this.#gateway.mqttPort, 'last');
    await this.#crowd.flood(60_000);
    await oddMoment(this.#chance.between(lifeMs / 4, lifeMs));
    await this.#gateway.kill();
    powerLoss?.strike(this.#chance);
    await this.#crowd.over();
    this.#check('after a kill');
  }

  /** Sends every ping again, stops the gateway in the middle, and waits for the remaining webhooks. */
  async #conclude(): Promise<FloodRunResult> {
    const { lifeMs, heard } = this.#options;
    await this.#crowd.connect(this.#gateway.mqttPort, 'first');
    await this.#crowd.flood(lifeMs);
    await this.#crowd.over();
    this.#check('after everything came once more');
    const { locks } = this.#crowd;
    const heardUpTo = locks.slice(0, heard).map(({ last }) => last);
    const expected = heardUpTo.reduce((sum, last) => sum + last - FIRST_SEQUENCE, 0);
    const { arrivals } = this.#merchant;
    await this.#bell.untilOrStill(
      () => this.#merchant.accepted >= expected,
      () => arrivals.length,
      STILL_SECONDS,
    );
    await this.#crowd.connect(this.#gateway.mqttPort, 'last');
    await this.#crowd.flood(60_000);
    await oddMoment(this.#chance.between(lifeMs / 4, lifeMs));
    const exitCode = await this.#gateway.stop(STOP_SECONDS);
    await this.#crowd.over();
    this.#check('after a stop');
    this.#checkDiary(heardUpTo);
    return this.#result(exitCode);
  }

  #result(exitCode: number | null): FloodRunResult {
    return {
      faults: this.#faults,
      acked: this.#crowd.acked,
      arrivals: this.#merchant.arrivals.length,
      complaints: this.#gateway.complaints,
      exitCode,
    };
  }

  #check(when: string): void {
    for (const fault of floodFaults(this.#gateway.request.data, this.#crowd.locks))
      this.#faults.push(`${when}: ${fault}`);
  }

  /** Every ping acknowledged before the last flood must have arrived; of the last flood only some need to. */
  #checkDiary(heardUpTo: readonly number[]): void {
    const named = (from: number, to: number): PingName[] =>
      Array.from({ length: to - from }, (_, index) => ({ boot: FLOOD_BOOT, sequence: from + 1 + index }));
    const diaries = heardUpTo.map((upTo, index) => {
      const { mac, last } = this.#crowd.locks[index] as FloodLock;
      return { mac, acked: named(FIRST_SEQUENCE, upTo), unacked: named(upTo, last + 1) };
    });
    const { arrivals, refused } = this.#merchant;
    for (const { message } of checkDeliveries(diaries, arrivals, 0)) this.#faults.push(`the merchant: ${message}`);
    this.#faults.push(...refused);
  }
}
