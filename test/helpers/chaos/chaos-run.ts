/**
 * A chaos run: gateways share a database while locks ping, commands are sent and a merchant receives, and one thing
 * after the other fails. Afterwards what the locks and the merchant wrote down is compared with the log and the bills.
 */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore } from '../../../gateway/store/open-store.js';
import { type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { lockLogins } from '../../bench/load/lock-logins.js';
import { ChangeSignal, realDelay } from '../clocks/change-signal.js';
import { checkDeliveries } from '../durability/delivery-check.js';
import { DiaryMerchant } from '../durability/diary-merchant.js';
import type { SabotageName } from '../durability/sabotage.js';
import { SeededChance } from '../pair/seeded-chance.js';
import { readLogFaults } from '../store/postgres/log-faults.js';
import { ReplicatedPostgres } from '../store/postgres/replicated.js';
import { type PostgresServer, startPostgres } from '../store/postgres/server.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { addEndedMonth, billFaults } from './bill-faults.js';
import { CHAOS_BOOT, type ChaosDiary } from './chaos-lock.js';
import { commandFaults, SentCommands } from './command-faults.js';
import { type AnyCrowd, Crowd, type CrowdOptions } from './crowd.js';
import { CrowdProcess } from './crowd-process.js';
import { doFault, type FaultName, type FaultSite, faultNames } from './faults.js';
import { KeptGateway } from './kept-gateway.js';

type Test = Teardown & { comment(line: string): void };

/** The size of a run. */
export interface ChaosOptions {
  readonly seed: number;
  readonly gateways: number;
  readonly locks: number;
  readonly pingEveryMs: Milliseconds;
  /** How long locks send before the first fault, between two faults, and after the last. */
  readonly faultEveryMs: Milliseconds;
  /** How many faults; each is one of `only`, or of all that the database allows. */
  readonly faults: number;
  readonly only?: readonly FaultName[];
  /** Whether the database has a synchronous standby. */
  readonly withStandby: boolean;
  /** Whether the locks are in a process of their own. */
  readonly crowdApart: boolean;
  /** The share of webhooks that the merchant refuses at first. */
  readonly faultShare: number;
  /** Makes the gateways break a promise on purpose. */
  readonly sabotage?: SabotageName;
}

/** How long locks of a gateway that failed were without one. */
export interface ServedAgain {
  readonly fault: FaultName;
  readonly milliseconds: Milliseconds;
}

/** What a run showed. */
export interface ChaosResult {
  /** What was lost, doubled, out of order or billed wrongly, a sentence for each. */
  readonly broken: string[];
  readonly acked: number;
  readonly delivered: number;
  /** For each lock and fault that cost it its gateway. */
  readonly servedAgain: readonly ServedAgain[];
  /** The exit codes of processes that ended without being asked; null after a signal. */
  readonly exits: readonly (number | null)[];
}

const MAX_DRAIN_SECONDS = 120;
const STALL_SECONDS = 15;
const COMMAND_INTERVAL = Seconds(0.5);
/** How often it is looked whether the locks have all acknowledgements. */
const LOOK_INTERVAL = Seconds(0.1);
/** A death may cost what was counted since the last second was stored, and while the database was away. */
const COUNTED_SECONDS_LOST = 3;

/** One run. */
export class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #chance: SeededChance;
  readonly #signal = new ChangeSignal();
  readonly #gateways: KeptGateway[] = [];
  readonly #servedAgain: ServedAgain[] = [];
  readonly #test: Test;
  #replicated: ReplicatedPostgres | undefined;
  #single: PostgresServer | undefined;
  #database = '';
  #merchant!: DiaryMerchant;
  #crowd!: AnyCrowd;
  #commands!: SentCommands;
  #acked = 0;
  #lastFault: FaultName | undefined;
  /**
   * Whether a failover lost commits that were not acknowledged, but visible since waits for the standby were cancelled:
   * an event may have been delivered by then, and comes again, with the time at which it was received again.
   */
  #hasLostStored = false;
  /** How long nothing could be stored, by the faults that were done. */
  #faultyMs: Milliseconds = 0;

  private constructor(test: Test, options: ChaosOptions) {
    this.#test = test;
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  static async run(test: Test, options: ChaosOptions): Promise<ChaosResult> {
    const run = new ChaosRun(test, options);
    await run.#start();
    const startMs = monotonicMs();
    await run.#break();
    const runMs = monotonicMs() - startMs;
    const diaries = await run.#drain();
    return await run.#conclude(diaries, runMs);
  }

  /** PostgreSQL, which is another server after a failover. */
  get #server(): PostgresServer {
    return this.#replicated?.primary ?? (this.#single as PostgresServer);
  }

  async #start(): Promise<void> {
    const { withStandby, gateways, faultShare, pingEveryMs, crowdApart } = this.#options;
    if (withStandby) this.#replicated = await ReplicatedPostgres.start(this.#test);
    else this.#single = await startPostgres(this.#test);
    this.#database = new URL(await this.#server.createDatabase()).pathname.slice(1);
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    const onLine = (): void => this.#signal.notify();
    this.#merchant = await DiaryMerchant.start({ chance, faultShare, maxAnswerMs: 3, onLine });
    this.#test.teardown(() => this.#merchant.close());
    const keyFolder = tempFolder(this.#test);
    const locks = await this.#provision(keyFolder);
    while (this.#gateways.length < gateways) this.#gateways.push(await this.#startGateway(keyFolder));
    const [first] = this.#gateways;
    this.#merchant.verifyWith((await first?.child.addWebhook(this.#merchant.url)) ?? '');
    const options: CrowdOptions = { locks, pingEveryMs, ports: this.#gateways.map(({ child }) => child.mqttPort) };
    this.#crowd = crowdApart ? new CrowdProcess(this.#test, options) : new Crowd(options);
    const macs = locks.map(({ mac }) => mac);
    this.#commands = new SentCommands(this.#gateways, macs, new SeededChance(this.#chance.between(0, 2 ** 31)));
  }

  async #startGateway(keyFrom: string): Promise<KeptGateway> {
    return await KeptGateway.start(this.#test, {
      urlAt: (port) => `postgres://postgres@127.0.0.1:${port}/${this.#database}`,
      databasePort: () => this.#server.port,
      keyFrom,
      sabotage: this.#options.sabotage,
    });
  }

  /** Registers a merchant and locks, and usage of a month that the gateways find and bill at their start. */
  async #provision(data: string): Promise<CrowdOptions['locks']> {
    const store = await openStore(this.#server.url(this.#database));
    await store.addMerchant('Amber', 0);
    // The store is new and has no secrets yet, so a missing key may be made.
    const isKeyInUse = false;
    const keys = openKeys(data, isKeyInUse);
    const locks = lockLogins(this.#options.locks);
    const devices = locks.map(({ mac: text, secret }) => {
      const mac = parseMac(text);
      if (!mac.ok) throw new Error(mac.error.message);
      const secretHash = keys.hashSecret(secret);
      return { mac: mac.value, merchant: 'Amber', simulated: false, secretHash, nowMs: 0 };
    });
    await store.addDevices(devices);
    await store.close();
    await addEndedMonth(this.#server, this.#database);
    return locks;
  }

  /** Does the faults, and meanwhile sends commands and counts. */
  async #break(): Promise<void> {
    const { faults, faultEveryMs, only } = this.#options;
    const site: FaultSite = {
      gateways: this.#gateways,
      server: () => this.#server,
      replicated: this.#replicated,
      database: this.#database,
      chance: this.#chance,
    };
    const names = only ?? faultNames(this.#replicated !== undefined);
    await this.#runFor(faultEveryMs);
    await this.#count();
    // Each fault once, and then by chance.
    const waiting: FaultName[] = [];
    for (let number = 1; number <= faults; number += 1) {
      if (waiting.length === 0) waiting.push(...names);
      const [name] = waiting.splice(this.#chance.between(0, waiting.length), 1) as [FaultName];
      const startMs = monotonicMs();
      const fault = doFault(name, site);
      await Promise.all([fault, this.#runFor(faultEveryMs)]);
      this.#faultyMs += monotonicMs() - startMs;
      this.#lastFault = name;
      this.#hasLostStored ||= name === 'failover-with-lag';
      await this.#count();
      const mine = this.#servedAgain.filter(({ fault: each }) => each === name).map((each) => each.milliseconds);
      const slowest = Math.round(Math.max(0, ...mine));
      this.#test.comment(
        `fault ${number}, ${name}: ${this.#acked} acknowledged; locks were without a gateway for ${slowest} ms at most`,
      );
    }
  }

  async #runFor(milliseconds: Milliseconds): Promise<void> {
    const endMs = monotonicMs() + milliseconds;
    while (monotonicMs() < endMs) {
      await Promise.all([this.#commands.send(), realDelay(COMMAND_INTERVAL)]);
    }
  }

  async #count(): Promise<number> {
    const fault = this.#lastFault;
    const { acked, unacked, servedAgainMs } = await this.#crowd.counts();
    this.#acked = acked;
    if (fault !== undefined) this.#servedAgain.push(...servedAgainMs.map((milliseconds) => ({ fault, milliseconds })));
    return unacked;
  }

  /** Waits until all is acknowledged, answered and delivered, or nothing comes any more. */
  async #drain(): Promise<readonly ChaosDiary[]> {
    await this.#crowd.stopPings();
    const endMs = monotonicMs() + Seconds(MAX_DRAIN_SECONDS);
    let unanswered = 1;
    for (let unacked = 1; unacked + unanswered > 0 && monotonicMs() < endMs; ) {
      await realDelay(LOOK_INTERVAL);
      unacked = await this.#count();
      unanswered = unacked > 0 ? 1 : await this.#commands.countUnanswered(this.#server, this.#database);
    }
    const { arrivals } = this.#merchant;
    const owed = this.#acked - (await this.#commands.countAnswers(this.#server, this.#database));
    await this.#signal.waitUntilOrStalled(
      () => this.#merchant.accepted >= owed,
      () => arrivals.length,
      STALL_SECONDS,
    );
    const diaries = await this.#crowd.end();
    for (const gateway of this.#gateways) await gateway.stop();
    return diaries;
  }

  async #conclude(diaries: readonly ChaosDiary[], runMs: Milliseconds): Promise<ChaosResult> {
    const [server, database] = [this.#server, this.#database];
    const exits = this.#gateways.flatMap((gateway) => gateway.exits);
    const sent = diaries.reduce((sum, { bytes }) => sum + bytes.up, 0);
    const secondsLost = exits.length * COUNTED_SECONDS_LOST + (exits.length > 0 ? this.#faultyMs / 1000 : 0);
    const maxLost = exits.length === 0 ? sent / 100 : Math.ceil((sent / runMs) * 1000 * secondsLost);
    const findings = checkDeliveries(diaries.map(deliveryDiary), this.#merchant.arrivals, 1).filter(
      ({ broken }) => broken !== 'changed-on-repeat' || !this.#hasLostStored,
    );
    const unacked = diaries.filter((diary) => diary.unacked.length > 0);
    return {
      broken: [
        ...findings.map(({ message }) => message),
        ...(await readLogFaults(server, database)),
        ...unacked.map((diary) => `${diary.mac} got no acknowledgement of ${diary.unacked.join(', ')}`),
        ...this.#merchant.invalid,
        ...(await commandFaults(server, database, diaries, this.#commands)),
        ...(await billFaults(server, database, diaries, maxLost)),
      ],
      acked: this.#acked,
      delivered: this.#merchant.accepted,
      servedAgain: this.#servedAgain,
      exits,
    };
  }
}

/** A lock's diary as the check of deliveries needs it. */
function deliveryDiary({ mac, made, unacked, answers }: ChaosDiary) {
  const others = new Set([...unacked, ...answers]);
  const sequences = Array.from({ length: made }, (_, index) => index + 1);
  const keyOf = (sequence: number) => ({ boot: CHAOS_BOOT, sequence });
  return {
    mac,
    acked: sequences.filter((sequence) => !others.has(sequence)).map(keyOf),
    // Answers to commands are no events of their own.
    unacked: [...others].map(keyOf),
  };
}
