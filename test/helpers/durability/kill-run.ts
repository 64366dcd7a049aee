/**
 * The durability run: locks record sent and acknowledged uplinks (messages) in diaries, and a merchant records arrived
 * webhooks, while the gateway is killed repeatedly. After the last kill, the remaining uplinks and webhooks arrive, and
 * the run compares the diaries, without asking the gateway.
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { acceptDamage } from '../../../gateway/data-folder/damage-acceptance.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { checkDeliveries, type Finding } from './delivery-check.js';
import { DiaryLock } from './diary-lock.js';
import { DiaryMerchant } from './diary-merchant.js';
import type { PowerLoss } from './power-loss.js';
import type { SabotageName } from './sabotage.js';

/** The test that gets the run's comments. */
type Test = Teardown & { comment(line: string): void };

/** The size of a run, and what makes it harder. */
export interface KillRunOptions {
  readonly seed: number;
  readonly locks: number;
  /** Maximum number of unacknowledged uplinks of each lock. */
  readonly maxUnacked: number;
  readonly kills: number;
  /** The signal that ends the gateway, by default SIGKILL; after SIGTERM the gateway must exit in time. */
  readonly signal?: 'SIGKILL' | 'SIGTERM';
  /** Which diary lines are counted to time a kill; by default chosen at random for each kill. */
  readonly countedLines?: 'sent' | 'acked' | 'arrived';
  /** Minimum number of counted diary lines between a start and the next kill; the maximum is twice as many. */
  readonly minLinesPerKill: number;
  /** While the merchant lacks this many acknowledged pings, locks make no new pings. */
  readonly maxBacklog: number;
  /** A run with fewer acknowledgements fails. */
  readonly minAcked: number;
  /** The share of webhooks that the merchant fails the first time. */
  readonly webhookFailureShare: number;
  /** The maximum delay of the merchant's answers, in ms. */
  readonly maxAnswerMs: number;
  /** Makes the gateway lose pings on purpose. */
  readonly sabotage?: SabotageName;
  /** If given, each kill is also a loss of power: writes without an fsync are undone. */
  readonly powerLoss?: PowerLoss | undefined;
  /** Further environment variables of the gateway's processes. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Whether the run continues with a store that the gateway refuses as damaged, so that it shows what was lost. */
  readonly acceptsDamage?: boolean;
  /** The URL of the database with the store; SQLite if undefined. */
  readonly store?: string | undefined;
  /** Whether SQLite's file is checked after the run, which takes another kill and start. True by default. */
  readonly checksFile?: boolean;
}

/** What a run showed. */
export interface KillRunResult {
  /** What was lost, repeated or out of order, from the diaries of the locks and of the merchant. */
  readonly findings: readonly Finding[];
  /** The number of acknowledged uplinks. */
  readonly acked: number;
  /** The number of received webhooks. */
  readonly arrivals: number;
  /** Webhooks that did not verify. */
  readonly invalid: readonly string[];
  /** The result of SQLite's integrity check after the last kill and at the end: `ok`. */
  readonly integrity: readonly string[];
  /** What the gateway wrote to stderr. */
  readonly errorLines: readonly string[];
  /** The number of bytes that losses of power changed. */
  readonly bytesLost: number;
  /** The gateway's exit code after each SIGTERM. */
  readonly exitCodes: readonly (number | null)[];
}

/** After this time without a webhook no further one is expected: a webhook's first retry comes within 5.5 s. */
const STALL_SECONDS = 8;
/** The same time if the merchant fails no webhook, so that there are no retries. */
const STALL_SECONDS_WITHOUT_FAULTS = 3;
/** Maximum time of each phase of the run. */
const PHASE_SECONDS = 60;
/** The gateway stops within 5 s and loses nothing (interfaces.md §1). */
const STOP_SECONDS = 5;
/** Maximum random delay of a kill after its diary line, so that not all kills hit the end of a commit. */
const MAX_KILL_DELAY_MS = 15;
/** The share of kills after which the next start is killed too. */
const START_KILL_SHARE = 0.25;
/** The time within which a start is killed. */
const MAX_START_MS = 400;
/** The MAC of the first lock, as a number; further locks have the next numbers. */
const FIRST_MAC = 0xa4c138000001;

/** One run, from the first start of the gateway to the comparison of the diaries. */
export class KillRun {
  readonly #options: KillRunOptions;
  readonly #chance: SeededChance;
  readonly #changeSignal = new ChangeSignal();
  readonly #integrity: string[] = [];
  readonly #exitCodes: (number | null)[] = [];
  #bytesLost = 0;
  #gateway!: GatewayChild;
  #merchant!: DiaryMerchant;
  #locks: DiaryLock[] = [];
  /** Whether locks make no new pings, because the merchant is too far behind. */
  #isPaused = false;
  /** Lines in the diaries of all locks. */
  readonly #lineCounts = { sent: 0, acked: 0 };

  private constructor(options: KillRunOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  /** Runs to the end. @throws Error if a gateway does not start or a phase does not end */
  static async run(test: Test, options: KillRunOptions): Promise<KillRunResult> {
    const run = new KillRun(options);
    await run.#setUp(test);
    for (let kill = 1; kill <= options.kills; kill += 1) {
      await run.#killUnderLoad();
      test.comment(`kill ${kill}: ${run.#tally()}`);
    }
    await run.#reachMinAcked();
    test.comment(`no more kills: ${run.#tally()}`);
    await run.#drain();
    test.comment(`drained: ${run.#tally()}`);
    return await run.#conclude();
  }

  async #setUp(test: Teardown): Promise<void> {
    const { webhookFailureShare, maxAnswerMs, maxUnacked } = this.#options;
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    this.#merchant = await DiaryMerchant.start({
      chance,
      webhookFailureShare,
      maxAnswerMs,
      onLine: () => this.#onWebhook(),
    });
    test.teardown(() => this.#merchant.close());
    this.#gateway = await this.#startGateway(test);
    this.#merchant.verifyWith(await this.#gateway.addWebhook(this.#merchant.url));
    const macs = Array.from({ length: this.#options.locks }, (_, index) => FIRST_MAC + index);
    const added = macs.map(async (number) => {
      const mac = number.toString(16).toUpperCase();
      return { mac, secret: await this.#gateway.addLock(mac) };
    });
    for (const { mac, secret } of await Promise.all(added)) {
      const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
      const port = this.#gateway.mqttPort;
      const mayCreateUplinks = (): boolean => this.#mayCreateUplinks();
      const onLine = (what: 'sent' | 'acked'): void => {
        this.#lineCounts[what] += 1;
        this.#changeSignal.notify();
      };
      this.#locks.push(new DiaryLock({ mac, secret, port, maxUnacked, chance, mayCreateUplinks, onLine }));
    }
    test.teardown(() => {
      for (const lock of this.#locks) lock.cut();
    });
    await this.#checkpointAccounts();
    this.#connectLocks();
  }

  /**
   * A sabotaged store must lose pings in the power loss, but not the accounts, so a clean stop writes the WAL into the
   * database file first.
   */
  async #checkpointAccounts(): Promise<void> {
    if (this.#options.powerLoss === undefined) return;
    await this.#gateway.stop(STOP_SECONDS);
    await this.#gateway.start();
  }

  async #startGateway(test: Teardown): Promise<GatewayChild> {
    const { sabotage, powerLoss, environment, store } = this.#options;
    const gateway = await GatewayChild.create(test, { sabotage, store });
    gateway.environment = { ...environment, ...powerLoss?.environment(gateway.options.data) };
    await gateway.start();
    await gateway.post('/merchants', { name: 'Amber' });
    return gateway;
  }

  #mayCreateUplinks(): boolean {
    this.#isPaused = this.#lineCounts.acked - this.#merchant.accepted >= this.#options.maxBacklog;
    return !this.#isPaused;
  }

  #onWebhook(): void {
    this.#changeSignal.notify();
    if (this.#isPaused && this.#mayCreateUplinks()) for (const lock of this.#locks) lock.createUplinks();
  }

  #tally(): string {
    const [sent, acked, arrived] = [this.#count('sent'), this.#count('acked'), this.#count('arrived')];
    return `${sent} sent, ${acked} acknowledged, ${arrived} webhooks`;
  }

  #connectLocks(): void {
    for (const lock of this.#locks) lock.allowConnections();
  }

  #count(kind: 'sent' | 'acked' | 'arrived'): number {
    return kind === 'arrived' ? this.#merchant.arrivals.length : this.#lineCounts[kind];
  }

  async #killUnderLoad(): Promise<void> {
    const { minLinesPerKill } = this.#options;
    const kind = this.#options.countedLines ?? this.#chance.pick(['sent', 'acked', 'arrived'] as const);
    const target = this.#count(kind) + this.#chance.between(minLinesPerKill, 2 * minLinesPerKill);
    await this.#changeSignal.waitUntil(
      () => this.#count(kind) >= target,
      PHASE_SECONDS,
      () => `${target} pings ${kind}, ${this.#count(kind)} are`,
    );
    if (this.#chance.next() < 0.5) await realDelay(this.#chance.between(0, MAX_KILL_DELAY_MS));
    for (const lock of this.#locks) lock.forbidConnections();
    await this.#killOrStop();
    if (this.#chance.next() < START_KILL_SHARE) {
      this.#gateway.spawn();
      await realDelay(this.#chance.between(0, MAX_START_MS));
      await this.#kill();
    }
    await this.#startAgain();
    this.#connectLocks();
  }

  async #startAgain(): Promise<void> {
    try {
      await this.#gateway.start();
    } catch (error) {
      if (this.#options.acceptsDamage !== true || !String(error).includes("code: 'store-damaged'")) throw error;
      await acceptDamage(this.#gateway.options.data);
      await this.#gateway.start();
    }
  }

  async #killOrStop(): Promise<void> {
    if (this.#options.signal === 'SIGTERM') this.#exitCodes.push(await this.#gateway.stop(STOP_SECONDS));
    else await this.#kill();
  }

  async #kill(): Promise<void> {
    await this.#gateway.kill();
    this.#bytesLost += this.#options.powerLoss?.undoUnsynced(this.#chance) ?? 0;
  }

  /** Waits after the last kill, with locks sending, until enough pings are acknowledged. */
  async #reachMinAcked(): Promise<void> {
    const { minAcked, minLinesPerKill } = this.#options;
    const target = Math.max(minAcked, this.#count('acked') + minLinesPerKill);
    await this.#changeSignal.waitUntil(
      () => this.#count('acked') >= target,
      // Even a slow machine acknowledges 100 pings a second.
      PHASE_SECONDS + minAcked / 100,
      () => `${target} acknowledged pings, ${this.#count('acked')} are`,
    );
  }

  /** Waits until all uplinks are acknowledged, and until all have arrived at the merchant or nothing more arrives. */
  async #drain(): Promise<void> {
    for (const lock of this.#locks) lock.stopCreating();
    await this.#changeSignal.waitUntil(
      () => this.#locks.every((lock) => lock.unackedCount === 0),
      PHASE_SECONDS,
      () => 'an acknowledgement of every uplink that the locks made',
    );
    if (await this.#waitForDelivery()) return;
    // A restart delivers what was only lost in memory; data that is lost on the disk stays lost.
    for (const lock of this.#locks) lock.forbidConnections();
    await this.#gateway.stop(PHASE_SECONDS);
    await this.#startAgain();
    await this.#waitForDelivery();
  }

  #waitForDelivery(): Promise<boolean> {
    const seconds = this.#options.webhookFailureShare > 0 ? STALL_SECONDS : STALL_SECONDS_WITHOUT_FAULTS;
    const hasAll = (): boolean => this.#merchant.accepted >= this.#count('acked');
    return this.#changeSignal.waitUntilOrStalled(hasAll, () => this.#merchant.arrivals.length, seconds);
  }

  async #conclude(): Promise<KillRunResult> {
    // After one more kill the file must still be intact.
    for (const lock of this.#locks) lock.cut();
    await this.#kill();
    if (this.#options.checksFile !== false) await this.#checkFile();
    const { arrivals, invalid } = this.#merchant;
    const diaries = this.#locks.map(({ mac, acked }) => ({ mac, acked, unacked: [] }));
    return {
      findings: checkDeliveries(diaries, arrivals, this.#options.minAcked),
      acked: this.#count('acked'),
      arrivals: arrivals.length,
      invalid,
      integrity: this.#integrity,
      errorLines: this.#gateway.errorLines,
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
    const db = new Database(path.join(this.#gateway.options.data, 'lockgate.sqlite'), { readonly: true });
    this.#integrity.push(String(db.pragma('integrity_check', { simple: true })));
    db.close();
  }
}
