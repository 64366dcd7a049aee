/**
 * Plays very many locks in one separate process that uses little CPU (the bench's load generator). In a flood, each
 * lock sends its next ping as soon as the previous one is acknowledged. Records the last acknowledged ping of each
 * lock. After a kill of the gateway each lock first repeats a few acknowledged pings with the same bytes, as a lock
 * does that lost the acknowledgements.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { ChildProgram } from '../../bench/load/child-program.js';
import { compileOnce } from '../../bench/load/generator.js';
import { type LockLogin, lockLogins } from '../../bench/load/lock-logins.js';
import { pingTemplate, SEQUENCE_BEFORE_FIRST } from '../../bench/load/ping-template.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** Most locks belong to a merchant without a webhook URL, since no receiver could keep up with all locks. */
export const [MERCHANT_WITH_URL, MERCHANT_WITHOUT_URL] = ['Amber', 'Blue'] as const;
/** The boot number of all pings of a run, so that a sequence number identifies a ping. */
export const FLOOD_BOOT = 7;

/** Maximum number of acknowledged pings that a lock repeats when it continues. */
const MAX_REPEATED = 40;
/** In the past, so that no ping is from the future: a lock sends some hundred thousand pings, a millisecond apart. */
const FIRST_PING_MS = Date.UTC(2026, 10, 20, 6);

/** The generator's answer at the end of a flood: the sequence of each lock's last acknowledged ping. */
interface GeneratorResult {
  readonly last: readonly number[];
}

/** A lock of the flood. */
export interface FloodLock extends LockLogin {
  /** Whether the lock's merchant has a webhook URL. */
  readonly hasWebhookUrl: boolean;
  /** The sequence of the last acknowledged ping; SEQUENCE_BEFORE_FIRST, which no ping has, if there is none. */
  lastAcked: number;
}

/** The locks of a flood, and the generator that plays them. */
export class FloodLocks {
  readonly locks: readonly FloodLock[];
  readonly #generator: string;
  readonly #test: Teardown;
  readonly #chance: SeededChance;
  #program: ChildProgram | undefined;
  #floodResult: Promise<GeneratorResult> | undefined;

  private constructor(test: Teardown, generator: string, locks: readonly FloodLock[], chance: SeededChance) {
    this.#test = test;
    this.#generator = generator;
    this.#chance = chance;
    this.locks = locks;
  }

  /**
   * Registers `locks` locks in a data folder, `locksWithUrl` of them for the merchant with a webhook URL. Undefined if
   * there is no compiler to build the load generator.
   */
  static async create(
    test: Teardown,
    data: string,
    {
      locks: count,
      locksWithUrl,
      chance,
    }: { readonly locks: number; readonly locksWithUrl: number; readonly chance: SeededChance },
  ): Promise<FloodLocks | undefined> {
    const generator = compileOnce();
    if (generator === undefined) return undefined;
    const locks = lockLogins(count).map((lock, index) => ({
      ...lock,
      hasWebhookUrl: index < locksWithUrl,
      lastAcked: SEQUENCE_BEFORE_FIRST,
    }));
    const store = await openStore(sqliteUrl(data));
    for (const merchant of [MERCHANT_WITH_URL, MERCHANT_WITHOUT_URL]) await store.addMerchant(merchant, 0);
    // The store is new, so nothing depends on a key yet, and openKeys makes one.
    const isKeyInUse = false;
    const keys = openKeys(data, isKeyInUse);
    const devices = locks.map(({ mac: text, secret, hasWebhookUrl }) => {
      const mac = parseMac(text);
      if (!mac.ok) throw new Error(mac.error.message);
      const merchant = hasWebhookUrl ? MERCHANT_WITH_URL : MERCHANT_WITHOUT_URL;
      return { mac: mac.value, merchant, simulated: false, secretHash: keys.hashSecret(secret), nowMs: 0 };
    });
    await store.addDevices(devices);
    await store.close();
    return new FloodLocks(test, generator, locks, chance);
  }

  /** The number of acknowledged pings, each counted once. */
  get acked(): number {
    return this.locks.reduce((sum, { lastAcked }) => sum + lastAcked - SEQUENCE_BEFORE_FIRST, 0);
  }

  /** Connects all locks. They continue near their last ping, or send every ping again from the first. */
  async connect(port: number, from: 'last' | 'first'): Promise<void> {
    const plan = path.join(tempFolder(this.#test), 'plan');
    writeFileSync(plan, this.#planText(port, from));
    const program = new ChildProgram(this.#generator, [plan]);
    this.#test.teardown(() => program.stop());
    this.#program = program;
    await program.readAnswer();
  }

  /** Lets all locks send, for a limited time in ms. Resolves when as many pings are acknowledged as there are locks. */
  async flood(milliseconds: number): Promise<void> {
    const program = this.#program as ChildProgram;
    // `life` is the generator's command for a flood that the gateway's end may interrupt (ping-generator.cc).
    await program.ask(`life ${milliseconds}`);
    this.#floodResult = program.readAnswer();
    // The result is read when the flood has ended.
    this.#floodResult.catch(() => undefined);
  }

  /** Waits for the end of the flood, and records each lock's last acknowledged ping. */
  async waitForEnd(): Promise<void> {
    const { last } = (await this.#floodResult) as GeneratorResult;
    for (const [index, lock] of this.locks.entries()) lock.lastAcked = Math.max(lock.lastAcked, last[index] ?? 0);
    await this.#program?.stop();
  }

  #planText(port: number, from: 'last' | 'first'): string {
    const { bytes, sequenceAt, timeAt } = pingTemplate(FLOOD_BOOT);
    const lines = [`port ${port}`, `template ${bytes.toString('hex')}`, `time ${timeAt}`, `begin ${FIRST_PING_MS}`];
    for (const { mac, secret, lastAcked } of this.locks) {
      const firstSequence = Math.max(SEQUENCE_BEFORE_FIRST, lastAcked - this.#chance.between(0, MAX_REPEATED));
      lines.push(
        `sequence ${sequenceAt} ${from === 'last' ? firstSequence : SEQUENCE_BEFORE_FIRST}`,
        `lock ${mac} ${secret} up`,
      );
    }
    return `${lines.join('\n')}\n`;
  }
}
