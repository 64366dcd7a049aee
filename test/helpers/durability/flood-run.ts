/**
 * Durability at the highest rate that a gateway has: a crowd of locks floods it while it is killed again and again,
 * with or without a loss of power. Then what the crowd was told is compared with the file of the store, and for some
 * of the locks with the diary of their merchant. Nobody asks the gateway.
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
  /** So many of them have a merchant who writes a diary. */
  readonly heard: number;
  readonly kills: number;
  /** A kill comes up to so many ms after the flood began, and no less than a quarter of that. */
  readonly lifeMs: number;
  /** Uplinks of one run of the log: so small that kills fall into its settling. Absent, as a gateway has it. */
  readonly runSize?: RunSize;
  readonly sabotage?: SabotageName;
  /** With each kill goes the power too, and with that what was not fsynced. */
  readonly powerLoss?: PowerLoss | undefined;
  readonly environment?: NodeJS.ProcessEnv;
}

export interface FloodRunResult {
  /** What of the file is not as the crowd was told, or of the diary. */
  readonly faults: readonly string[];
  readonly acked: number;
  /** Webhooks that came. */
  readonly arrivals: number;
  readonly complaints: readonly string[];
  /** How it ended when it was asked to. */
  readonly exitCode: number | null;
}

/** quality.md §2, graceful stop. */
const STOP_SECONDS = 10;
/** Nothing more is expected of the merchant when it has heard nothing for so long. */
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

  /** Runs it to its end. Undefined where there is no compiler to make the crowd with. */
  static async run(test: Test, options: FloodRunOptions): Promise<FloodRunResult | undefined> {
    const run = new FloodRun(options);
    if (!(await run.#setUp(test))) return undefined;
    for (let kill = 1; kill <= options.kills; kill++) {
      await run.#liveAndDie();
      test.comment(`kill ${kill}: ${run.#crowd.acked} acknowledged`);
      // A sabotage that is found has shown what it is for.
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
    // A sabotaged store shall lose pings with the power, and not the accounts. A stop empties the WAL.
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

  /** Everything once more from the first ping on, a stop in the middle of it, and what is left for the merchant. */
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

  /** Of what was acknowledged before the last flood everything arrived; of that one what it had time for. */
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
