/**
 * The durability run: locks and a merchant keep diaries while the gateway between them is killed again and again. Then
 * the faults end, what is left drains, and the diaries are compared. Nobody asks the gateway.
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { acceptDamage } from '../../../gateway/data-folder/damage-acceptance.js';
import { Bell, oddMoment } from '../clocks/bell.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { checkDeliveries, type Finding } from './delivery-check.js';
import { DiaryLock } from './diary-lock.js';
import { DiaryMerchant } from './diary-merchant.js';
import type { PowerLoss } from './power-loss.js';
import type { SabotageName } from './sabotage.js';

/** The test that it runs in: told how it goes. */
type Test = Teardown & { comment(line: string): void };

export interface KillRunOptions {
  readonly seed: number;
  readonly locks: number;
  /** Uplinks of each lock under way at once. */
  readonly inFlight: number;
  readonly kills: number;
  /** What ends a life, SIGKILL where it is left out; after SIGTERM it must end by itself, in time. */
  readonly signal?: 'SIGKILL' | 'SIGTERM';
  /** What a life's lines are: left out, each life has its own, by chance. */
  readonly lines?: 'sent' | 'acked' | 'arrived';
  /** At least so many diary lines of the chosen kind are between a start and its kill, and less than twice as many. */
  readonly linesPerLife: number;
  /** Acknowledged pings that the merchant hasn't got yet, past which locks make no new ones: bounds the drain. */
  readonly backlog: number;
  /** A run that acknowledged less is a failure. */
  readonly floor: number;
  /** The share of webhooks that the merchant fails the first time. */
  readonly faultShare: number;
  /** The merchant's slowest answer, in ms. */
  readonly slowestMs: number;
  readonly sabotage?: SabotageName;
  /** With each kill goes the power too, and with that what was not fsynced. */
  readonly powerLoss?: PowerLoss | undefined;
  /** What the gateway's processes find in their environment besides. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Whether a store that a start refuses as damaged is accepted, so that the run shows what was lost. */
  readonly acceptsDamage?: boolean;
  /** Whether the file is checked after the run, which takes another kill and start. True by default. */
  readonly checksFile?: boolean;
}

export interface KillRunResult {
  readonly findings: readonly Finding[];
  readonly acked: number;
  readonly arrivals: number;
  /** Webhooks that did not verify. */
  readonly refused: readonly string[];
  /** What SQLite says of the file after the last kill and at the end: `ok`. */
  readonly integrity: readonly string[];
  /** What the gateway wrote to stderr. */
  readonly complaints: readonly string[];
  /** Bytes of its files that losses of power made others. */
  readonly bytesLost: number;
  /** How it ended, each time that it was asked to. */
  readonly exitCodes: readonly (number | null)[];
}

/** Seconds without a new line in any diary after which nothing more is expected: a first retry takes 5.5 s at most. */
const STILL_SECONDS = 8;
/** The same where the merchant fails nothing and so nothing is retried. */
const STILL_SECONDS_WITHOUT_FAULTS = 3;
const PHASE_SECONDS = 60;
/** interfaces.md §1: it stops within 5 s and loses nothing. */
const STOP_SECONDS = 5;
/** A kill comes up to so many ms after the line that it waited for, so that not all fall at the end of a commit. */
const ODD_MS = 15;
/** Some starts are killed too, within so many ms. */
const START_MS = 400;
const START_KILL_SHARE = 0.25;
/** The MAC of the first lock, as a number; the others follow. */
const FIRST_MAC = 0xa4c138000001;

export class KillRun {
  readonly #options: KillRunOptions;
  readonly #chance: SeededChance;
  readonly #bell = new Bell();
  readonly #integrity: string[] = [];
  readonly #exitCodes: (number | null)[] = [];
  #bytesLost = 0;
  #gateway!: GatewayChild;
  #merchant!: DiaryMerchant;
  #locks: DiaryLock[] = [];
  /** The merchant is too far behind for locks to make more. */
  #isHeld = false;
  /** Lines in the diaries of all locks. */
  readonly #lines = { sent: 0, acked: 0 };

  private constructor(options: KillRunOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  /** Runs it to its end. @throws Error where a gateway does not start or a phase does not end */
  static async run(test: Test, options: KillRunOptions): Promise<KillRunResult> {
    const run = new KillRun(options);
    await run.#setUp(test);
    for (let kill = 1; kill <= options.kills; kill += 1) {
      await run.#killUnderLoad();
      test.comment(`kill ${kill}: ${run.#tally()}`);
    }
    await run.#fillUp();
    test.comment(`no more faults: ${run.#tally()}`);
    await run.#drain();
    test.comment(`drained: ${run.#tally()}`);
    return await run.#conclude();
  }

  async #setUp(test: Teardown): Promise<void> {
    const { faultShare, slowestMs, inFlight } = this.#options;
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    this.#merchant = await DiaryMerchant.start({ chance, faultShare, slowestMs, onLine: () => this.#goOn() });
    test.teardown(() => this.#merchant.close());
    this.#gateway = await this.#startGateway(test);
    this.#merchant.trust(await this.#gateway.addWebhook(this.#merchant.url));
    const macs = Array.from({ length: this.#options.locks }, (_, index) => FIRST_MAC + index);
    const added = macs.map(async (number) => {
      const mac = number.toString(16).toUpperCase();
      return { mac, secret: await this.#gateway.addLock(mac) };
    });
    for (const { mac, secret } of await Promise.all(added)) {
      const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
      const port = this.#gateway.mqttPort;
      const mayMake = (): boolean => this.#mayMake();
      const onLine = (what: 'sent' | 'acked'): void => {
        this.#lines[what] += 1;
        this.#bell.ring();
      };
      this.#locks.push(new DiaryLock({ mac, secret, port, inFlight, chance, mayMake, onLine }));
    }
    test.teardown(() => {
      for (const lock of this.#locks) lock.cut();
    });
    await this.#settleAccounts();
    this.#online();
  }

  /** A sabotaged store shall lose pings with the power, and not the locks' accounts. A stop empties the WAL. */
  async #settleAccounts(): Promise<void> {
    if (this.#options.powerLoss === undefined) return;
    await this.#gateway.stop(STOP_SECONDS);
    await this.#gateway.start();
  }

  async #startGateway(test: Teardown): Promise<GatewayChild> {
    const { sabotage, powerLoss, environment } = this.#options;
    const gateway = await GatewayChild.make(test, sabotage);
    gateway.environment = { ...environment, ...powerLoss?.environment(gateway.request.data) };
    await gateway.start();
    await gateway.post('/merchants', { name: 'Amber' });
    return gateway;
  }

  #mayMake(): boolean {
    this.#isHeld = this.#lines.acked - this.#merchant.accepted >= this.#options.backlog;
    return !this.#isHeld;
  }

  #goOn(): void {
    this.#bell.ring();
    if (this.#isHeld && this.#mayMake()) for (const lock of this.#locks) lock.make();
  }

  #tally(): string {
    const [sent, acked, arrived] = [this.#count('sent'), this.#count('acked'), this.#count('arrived')];
    return `${sent} sent, ${acked} acknowledged, ${arrived} webhooks`;
  }

  #online(): void {
    for (const lock of this.#locks) lock.online();
  }

  #count(kind: 'sent' | 'acked' | 'arrived'): number {
    return kind === 'arrived' ? this.#merchant.arrivals.length : this.#lines[kind];
  }

  async #killUnderLoad(): Promise<void> {
    const { linesPerLife } = this.#options;
    const kind = this.#options.lines ?? this.#chance.pick(['sent', 'acked', 'arrived'] as const);
    const target = this.#count(kind) + this.#chance.between(linesPerLife, 2 * linesPerLife);
    await this.#bell.until(
      () => this.#count(kind) >= target,
      PHASE_SECONDS,
      () => `${target} pings ${kind}, ${this.#count(kind)} are`,
    );
    if (this.#chance.next() < 0.5) await oddMoment(this.#chance.between(0, ODD_MS));
    for (const lock of this.#locks) lock.offline();
    await this.#endLife();
    if (this.#chance.next() < START_KILL_SHARE) {
      this.#gateway.spawn();
      await oddMoment(this.#chance.between(0, START_MS));
      await this.#kill();
    }
    await this.#startAgain();
    this.#online();
  }

  async #startAgain(): Promise<void> {
    try {
      await this.#gateway.start();
    } catch (error) {
      if (this.#options.acceptsDamage !== true || !String(error).includes("code: 'store-damaged'")) throw error;
      await acceptDamage(this.#gateway.request.data);
      await this.#gateway.start();
    }
  }

  async #endLife(): Promise<void> {
    if (this.#options.signal === 'SIGTERM') this.#exitCodes.push(await this.#gateway.stop(STOP_SECONDS));
    else await this.#kill();
  }

  async #kill(): Promise<void> {
    await this.#gateway.kill();
    this.#bytesLost += this.#options.powerLoss?.strike(this.#chance) ?? 0;
  }

  /** Some load after the last kill too, and enough in all. */
  async #fillUp(): Promise<void> {
    const { floor, linesPerLife } = this.#options;
    const target = Math.max(floor, this.#count('acked') + linesPerLife);
    await this.#bell.until(
      () => this.#count('acked') >= target,
      PHASE_SECONDS + floor / 100,
      () => `${target} acknowledged pings, ${this.#count('acked')} are`,
    );
  }

  /** No faults any more: what waits in the locks is acknowledged, and all of it arrives, or nothing more does. */
  async #drain(): Promise<void> {
    for (const lock of this.#locks) lock.finish();
    await this.#bell.until(
      () => this.#locks.every((lock) => lock.waiting === 0),
      PHASE_SECONDS,
      () => 'an acknowledgement for everything that the locks made',
    );
    if (await this.#settled()) return;
    // Should something only have been forgotten in memory, a start finds it on the disk; what is lost stays lost.
    for (const lock of this.#locks) lock.offline();
    await this.#gateway.stop(PHASE_SECONDS);
    await this.#startAgain();
    await this.#settled();
  }

  #settled(): Promise<boolean> {
    const seconds = this.#options.faultShare > 0 ? STILL_SECONDS : STILL_SECONDS_WITHOUT_FAULTS;
    const hasAll = (): boolean => this.#merchant.accepted >= this.#count('acked');
    return this.#bell.untilOrStill(hasAll, () => this.#merchant.arrivals.length, seconds);
  }

  async #conclude(): Promise<KillRunResult> {
    // Whatever it has on the disk now, killed once more, must be a whole file.
    for (const lock of this.#locks) lock.cut();
    await this.#kill();
    if (this.#options.checksFile !== false) await this.#checkFile();
    const { arrivals, refused } = this.#merchant;
    const diaries = this.#locks.map(({ mac, acked }) => ({ mac, acked, unacked: [] }));
    return {
      findings: checkDeliveries(diaries, arrivals, this.#options.floor),
      acked: this.#count('acked'),
      arrivals: arrivals.length,
      refused,
      integrity: this.#integrity,
      complaints: this.#gateway.complaints,
      bytesLost: this.#bytesLost,
      exitCodes: this.#exitCodes,
    };
  }

  /** Checks the file after the kill, and after another start and stop. */
  async #checkFile(): Promise<void> {
    this.#checkIntegrity();
    await this.#startAgain();
    this.#exitCodes.push(await this.#gateway.stop(STOP_SECONDS));
    this.#checkIntegrity();
  }

  #checkIntegrity(): void {
    const db = new Database(path.join(this.#gateway.request.data, 'lockgate.sqlite'), { readonly: true });
    this.#integrity.push(String(db.pragma('integrity_check', { simple: true })));
    db.close();
  }
}
