/**
 * A chaos run: gateways share a database while locks ping, commands are sent, a merchant receives webhooks, and one
 * fault follows another. Afterwards the diaries of the locks and the merchant are compared with each other and with the
 * database's log, commands and bills.
 */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore } from '../../../gateway/store/open-store.js';
import { type Milliseconds, Minutes, monotonicMs, Seconds } from '../../../proto/clock.js';
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
import { buildFullDisk } from '../store/postgres/server-disk.js';
import { readUnfinishedDeliveries } from '../store/postgres/unfinished-deliveries.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { addEndedMonth, billFaults } from './bill-faults.js';
import { CHAOS_BOOT, type ChaosDiary } from './chaos-lock.js';
import { commandFaults, SentCommands } from './command-faults.js';
import { type AnyCrowd, Crowd, type CrowdOptions } from './crowd.js';
import { CrowdProcess } from './crowd-process.js';
import { areReady, type FaultSite, holdsWithin } from './fault-site.js';
import { doFault, type FaultName, faultNames } from './faults.js';
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
  /** How many faults; each is one of `only`, which by default are all faults that the database allows. */
  readonly faults: number;
  readonly only?: readonly FaultName[];
  /** Whether the database has a synchronous standby. */
  readonly withStandby: boolean;
  /** Whether the locks are in a process of their own. */
  readonly locksInOwnProcess: boolean;
  /** The share of webhooks, 0 to 1, that fail at the merchant the first time. */
  readonly webhookFailureShare: number;
  /** Makes the gateways break a promise on purpose. */
  readonly sabotage?: SabotageName;
}

/** How long a lock was without a gateway, which it lost after this fault had begun, and before the next one had. */
export interface ServedAgain {
  readonly fault: FaultName;
  /** The fault's place in the run; the first is 1. */
  readonly number: number;
  /** Whether all gateways were ready when the fault began: else the lock may have waited because of the one before. */
  readonly wereReady: boolean;
  readonly milliseconds: Milliseconds;
}

/** A fault that was begun. */
interface BegunFault {
  readonly name: FaultName;
  /** Monotonic. */
  readonly startMs: Milliseconds;
  readonly wereReady: boolean;
}

/** What a run showed. */
export interface ChaosResult {
  /** What was lost, doubled, out of order or billed wrongly, a sentence for each. */
  readonly broken: string[];
  readonly acked: number;
  readonly delivered: number;
  /** For each lock and fault that cost it its gateway. */
  readonly servedAgain: readonly ServedAgain[];
  /** The exit code of each gateway process that ended during the run, by a fault or by itself; null after a signal. */
  readonly exits: readonly (number | null)[];
}

/** How long the locks and commands may take after the last fault until all is acknowledged and answered. */
const MAX_DRAIN_SECONDS = 120;
/** How long commands may be unanswered when a fault has them paused. */
const MAX_ANSWER_TIME = Minutes(1);
/** If no webhook arrives for this long, no more are waited for. */
const STALL_SECONDS = 15;
/** How often a command is sent. */
const COMMAND_INTERVAL = Seconds(0.5);
/** How often the run checks whether the locks have got all acknowledgements. */
const LOOK_INTERVAL = Seconds(0.1);
/** A gateway stores its counted bytes about every second: those of this many seconds may be lost when it dies. */
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
  /** The library that fills servers' disks; undefined if no fault does, or it can't be built. */
  #fullDisk: string | undefined;
  #database = '';
  #merchant!: DiaryMerchant;
  #crowd!: AnyCrowd;
  #commands!: SentCommands;
  #acked = 0;
  /** In their order. */
  readonly #begun: BegunFault[] = [];
  /** What faults found broken. */
  readonly #foundByFaults: string[] = [];
  /**
   * Whether a restore may have lost commits that were visible, though not acknowledged; or a failover did, because
   * their waits for the standby were cancelled. Their events may have been delivered: the locks then send those uplinks
   * again, and the events are delivered again with another time of receipt.
   */
  #hasLostStored = false;
  /** How long the faults lasted, in all: meanwhile a gateway may have been unable to store what it counted. */
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

  /** The present PostgreSQL server: after a failover it is the former standby. */
  get #server(): PostgresServer {
    return this.#replicated?.primary ?? (this.#single as PostgresServer);
  }

  get #faultNames(): readonly FaultName[] {
    const { only, withStandby } = this.#options;
    return only ?? faultNames(withStandby);
  }

  async #start(): Promise<void> {
    const { withStandby, gateways, webhookFailureShare, pingEveryMs, locksInOwnProcess } = this.#options;
    if (this.#faultNames.includes('full-disk')) {
      this.#fullDisk = buildFullDisk(this.#test);
      if (this.#fullDisk === undefined) this.#test.comment('full-disk does nothing here: it needs Linux and g++');
    }
    const options = { fullDisk: this.#fullDisk };
    if (withStandby) this.#replicated = await ReplicatedPostgres.start(this.#test, options);
    else this.#single = await startPostgres(this.#test, options);
    this.#database = new URL(await this.#server.createDatabase()).pathname.slice(1);
    const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
    const onLine = (): void => this.#signal.notify();
    this.#merchant = await DiaryMerchant.start({ chance, webhookFailureShare, maxAnswerMs: 3, onLine });
    this.#test.teardown(() => this.#merchant.close());
    const keyFolder = tempFolder(this.#test);
    const locks = await this.#provision(keyFolder);
    while (this.#gateways.length < gateways) this.#gateways.push(await this.#startGateway(keyFolder));
    const [first] = this.#gateways;
    this.#merchant.verifyWith((await first?.child.addWebhook(this.#merchant.url)) ?? '');
    const crowd: CrowdOptions = { locks, pingEveryMs, ports: this.#gateways.map(({ child }) => child.mqttPort) };
    this.#crowd = locksInOwnProcess ? new CrowdProcess(this.#test, crowd) : new Crowd(crowd);
    const macs = locks.map(({ mac }) => mac);
    this.#commands = new SentCommands(this.#gateways, macs, new SeededChance(this.#chance.between(0, 2 ** 31)));
  }

  async #startGateway(keyFrom: string): Promise<KeptGateway> {
    return await KeptGateway.start(this.#test, {
      urlAt: (port) => `postgres://postgres@127.0.0.1:${port}/${this.#database}`,
      databasePort: () => this.#server.port,
      keyFrom,
      sabotage: this.#options.sabotage,
      hasOwnClock: this.#faultNames.includes('wrong-clock'),
    });
  }

  /** Stores a merchant, locks, and the usage of an ended month, which the gateways bill at their start. */
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

  /** Does the faults one after another, and meanwhile sends commands. */
  async #break(): Promise<void> {
    const { faults, faultEveryMs } = this.#options;
    const site: FaultSite = {
      gateways: this.#gateways,
      server: () => this.#server,
      replicated: this.#replicated,
      database: this.#database,
      chance: this.#chance,
      hasFullDisk: this.#fullDisk !== undefined,
      acked: async () => {
        await this.#count();
        return this.#acked;
      },
      pauseCommands: () => this.#pauseCommands(),
      resumeCommands: () => this.#commands.resume(),
      setLosing: (isLosing) => this.#crowd.setLosing(isLosing),
      note: (sentence) => this.#test.comment(sentence),
      onBroken: (sentence) => {
        this.#test.comment(`broken: ${sentence}`);
        this.#foundByFaults.push(sentence);
      },
    };
    const names = this.#faultNames;
    await this.#runFor(faultEveryMs);
    await this.#count();
    // In random order; none comes again before each has had its turn.
    const waiting: FaultName[] = [];
    for (let number = 1; number <= faults; number += 1) {
      if (waiting.length === 0) waiting.push(...names);
      const [name] = waiting.splice(this.#chance.between(0, waiting.length), 1) as [FaultName];
      const wereReady = await areReady(site);
      const startMs = monotonicMs();
      this.#begun.push({ name, startMs, wereReady });
      let faultMs = 0;
      const fault = doFault(name, site).then(() => {
        faultMs = monotonicMs() - startMs;
      });
      await Promise.all([fault, this.#runFor(faultEveryMs)]);
      this.#faultyMs += monotonicMs() - startMs;
      this.#hasLostStored ||= name === 'failover-with-lag' || name === 'restore';
      await this.#count();
      const ofThis = this.#servedAgain.filter((each) => each.number === number);
      const slowest = Math.round(Math.max(0, ...ofThis.map(({ milliseconds }) => milliseconds)));
      this.#test.comment(
        `fault ${number}, ${name} for ${Math.round(faultMs)} ms: ${this.#acked} acknowledged; ` +
          `locks were without a gateway for ${slowest} ms at most; gateways ${await this.#readiness()}`,
      );
    }
  }

  /** What each gateway says of itself. */
  async #readiness(): Promise<string> {
    return (await Promise.all(this.#gateways.map((gateway) => gateway.readiness()))).join(', ');
  }

  async #pauseCommands(): Promise<boolean> {
    await this.#commands.pause();
    const areAnswered = async (): Promise<boolean> =>
      (await this.#commands.countUnanswered(this.#server, this.#database)) === 0;
    return await holdsWithin(MAX_ANSWER_TIME, () => areAnswered().catch(() => false));
  }

  /** Sends commands for this time. */
  async #runFor(milliseconds: Milliseconds): Promise<void> {
    const endMs = monotonicMs() + milliseconds;
    while (monotonicMs() < endMs) {
      await Promise.all([this.#commands.send(), realDelay(COMMAND_INTERVAL)]);
    }
  }

  /**
   * Asks the crowd for its counts, and assigns each time that a lock was without a gateway to the fault after which it
   * began. Returns how many uplinks are not acknowledged.
   */
  async #count(): Promise<number> {
    const { acked, unacked, outages } = await this.#crowd.counts();
    const nowMs = monotonicMs();
    this.#acked = acked;
    for (const { lostAgoMs, milliseconds } of outages) {
      const index = this.#begun.findLastIndex(({ startMs }) => startMs <= nowMs - lostAgoMs);
      const fault = this.#begun[index];
      if (fault === undefined) continue;
      const { name, wereReady } = fault;
      this.#servedAgain.push({ fault: name, number: index + 1, wereReady, milliseconds });
    }
    return unacked;
  }

  /** Waits until all is acknowledged, answered and delivered, or a time limit is over. Returns the locks' diaries. */
  async #drain(): Promise<readonly ChaosDiary[]> {
    await this.#crowd.stopPings();
    const endMs = monotonicMs() + Seconds(MAX_DRAIN_SECONDS);
    // The 1s say only that something may be missing: the first turn of the loop counts.
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

  /** Compares the diaries with each other and with the database. */
  async #conclude(diaries: readonly ChaosDiary[], runMs: Milliseconds): Promise<ChaosResult> {
    const [server, database] = [this.#server, this.#database];
    const exits = this.#gateways.flatMap((gateway) => gateway.exits);
    const sent = diaries.reduce((sum, { bytes }) => sum + bytes.up, 0);
    const secondsLost = exits.length * COUNTED_SECONDS_LOST + (exits.length > 0 ? this.#faultyMs / 1000 : 0);
    const maxLost = exits.length === 0 ? sent / 100 : Math.ceil((sent / runMs) * 1000 * secondsLost);
    const findings = checkDeliveries(diaries.map(deliveryDiary), this.#merchant.arrivals, 1).filter(
      ({ broken }) => broken !== 'changed-on-repeat' || !this.#hasLostStored,
    );
    if (findings.some(({ broken }) => broken === 'missing'))
      for (const line of await readUnfinishedDeliveries(server, database)) this.#test.comment(line);
    const unacked = diaries.filter((diary) => diary.unacked.length > 0);
    return {
      broken: [
        ...this.#foundByFaults,
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
function deliveryDiary({ mac, made, unacked, answers, lost }: ChaosDiary) {
  const others = new Set([...unacked, ...answers, ...lost]);
  const sequences = Array.from({ length: made }, (_, index) => index + 1);
  const keyOf = (sequence: number) => ({ boot: CHAOS_BOOT, sequence });
  return {
    mac,
    acked: sequences.filter((sequence) => !others.has(sequence)).map(keyOf),
    // Answers to commands are no events of their own, and what a restore lost may have arrived before it.
    unacked: [...others].map(keyOf),
  };
}
