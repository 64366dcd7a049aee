/**
 * Sends commands to locks under adverse conditions: locks connect briefly and lose connections at random moments, and
 * the gateway is killed and restarted. Then compares the requested commands with the locks' diaries (the records in
 * which each lock writes what it carried out). The gateway's own records are never used. A finding is a command that
 * was lost, repeated or carried out wrongly.
 */
import { ChangeSignal } from '../clocks/change-signal.js';
import type { SabotageName } from '../durability/sabotage.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { CommandLock } from './command-lock.js';

/** The test in which the run takes place; it prints comments on the progress. */
type Test = Teardown & { comment(line: string): void };

/** The size of a run, and the seed from which everything random is drawn. */
export interface CommandRunOptions {
  readonly seed: number;
  readonly locks: number;
  readonly commandsPerLock: number;
  readonly kills: number;
  /** The run gives up waiting after this time without a new line in any diary. Must be long on a busy machine. */
  readonly stallSeconds: number;
  /** A fault that is switched on in the gateway, which the check must then find; none by default. */
  readonly sabotage?: SabotageName;
}

/** A violation: what went wrong with which command of which lock. */
export interface CommandFinding {
  /**
   * `missing`: never carried out. `twice`: carried out twice. `sent-after-answer`: the gateway sent the command again
   * although it had acknowledged the lock's answer.
   */
  readonly broken: 'missing' | 'unanswered' | 'twice' | 'never-requested' | 'sent-after-answer';
  readonly mac: string;
  readonly id: number;
}

/** What a run found, and how much happened in it. */
export interface CommandRunResult {
  readonly findings: readonly CommandFinding[];
  /** The number of requested commands. */
  readonly requested: number;
  /** The number of commands that the locks received, including repeats. */
  readonly received: number;
  /** The number of connections that the locks lost on purpose. */
  readonly lost: number;
  /** What the gateway wrote to stderr: nothing, unless there was an error. */
  readonly errorLines: readonly string[];
}

/** What a lock did, as it recorded it. */
export type CommandDiary = Pick<CommandLock, 'mac' | 'carriedOut' | 'answered' | 'sentAfterAnswer'>;

/** The gateway must stop within this time at the end. */
const STOP_SECONDS = 60;
/** The MAC of the first lock, as a number; further locks have the next numbers. */
const FIRST_MAC = 0xa4c138000001;
/** The lifetime of commands: longer than a run, so that none expires. */
const COMMAND_LIFETIME_SECONDS = 3600;

/** Checks that each lock carries out each requested command exactly once and answers it, and carries out no other. */
export function checkCommands(
  requested: ReadonlyMap<string, ReadonlySet<number>>,
  diaries: readonly CommandDiary[],
): CommandFinding[] {
  const findings: CommandFinding[] = [];
  for (const { mac, carriedOut, answered, sentAfterAnswer } of diaries) {
    const requestedIds = requested.get(mac) ?? new Set();
    const carriedOutIds = new Set<number>();
    for (const id of carriedOut) {
      if (!requestedIds.has(id)) findings.push({ broken: 'never-requested', mac, id });
      if (carriedOutIds.has(id)) findings.push({ broken: 'twice', mac, id });
      carriedOutIds.add(id);
    }
    for (const id of requestedIds) {
      if (!carriedOutIds.has(id)) findings.push({ broken: 'missing', mac, id });
      else if (!answered.has(id)) findings.push({ broken: 'unanswered', mac, id });
    }
    for (const id of sentAfterAnswer) findings.push({ broken: 'sent-after-answer', mac, id });
  }
  return findings;
}

/** One run, from the first start of the gateway to the comparison with the diaries. */
export class CommandRun {
  readonly #options: CommandRunOptions;
  readonly #chance: SeededChance;
  readonly #changeSignal = new ChangeSignal();
  readonly #requested = new Map<string, Set<number>>();
  #locks: CommandLock[] = [];
  #gateway!: GatewayChild;
  /** The number of diary lines: a line for each command carried out, and a line for each answer. */
  #lineCount = 0;

  private constructor(options: CommandRunOptions) {
    this.#options = options;
    this.#chance = new SeededChance(options.seed);
  }

  /**
   * Runs to the end. If no more lines arrive for `stallSeconds`, it goes on with the next kill, or with the comparison,
   * which then finds what is missing.
   *
   * @throws Error if a gateway does not start
   */
  static async run(test: Test, options: CommandRunOptions): Promise<CommandRunResult> {
    const run = new CommandRun(options);
    await run.#setUp(test);
    // Two lines for each command: the lock carries it out, and answers it.
    const total = options.locks * options.commandsPerLock * 2;
    for (let kill = 1; kill <= options.kills; kill += 1) {
      await run.#killAfterLines((total * kill) / (options.kills + 1));
      test.comment(`kill ${kill}: ${run.#lineCount} of ${total} lines`);
      await run.#gateway.start();
    }
    await run.#waitForLines(total);
    test.comment(`drained: ${run.#lineCount} of ${total} lines`);
    return await run.#conclude();
  }

  async #setUp(test: Teardown): Promise<void> {
    const { locks, sabotage } = this.#options;
    this.#gateway = await GatewayChild.start(test, { sabotage });
    const macs = Array.from({ length: locks }, (_, index) => (FIRST_MAC + index).toString(16).toUpperCase());
    for (const mac of macs) {
      const secret = await this.#gateway.addLock(mac);
      const chance = new SeededChance(this.#chance.between(0, 2 ** 31));
      const onLine = (): void => {
        this.#lineCount += 1;
        this.#changeSignal.notify();
      };
      this.#locks.push(new CommandLock({ mac, secret, port: this.#gateway.mqttPort, chance, onLine }));
      this.#requested.set(mac, new Set());
    }
    test.teardown(() => {
      for (const lock of this.#locks) lock.offline();
    });
    // Half of the commands are requested before any lock connects, half while locks connect and disconnect.
    const half = Math.floor(this.#options.commandsPerLock / 2);
    for (let round = 0; round < half; round += 1) await this.#requestCommands(macs);
    for (const lock of this.#locks) lock.online();
    for (let round = half; round < this.#options.commandsPerLock; round += 1) await this.#requestCommands(macs);
  }

  async #requestCommands(macs: readonly string[]): Promise<void> {
    const type = this.#chance.pick(['unlock', 'lock', 'locate-gps', 'locate-cell', 'reset']);
    const body = { macs, type, expires_in: COMMAND_LIFETIME_SECONDS };
    const { commands } = await this.#gateway.post<{ commands: { mac: string; id: number }[] }>('/commands', body);
    // The gateway answers with colons in the MACs.
    for (const { mac, id } of commands) this.#requested.get(mac.replaceAll(':', ''))?.add(id);
  }

  async #killAfterLines(lines: number): Promise<void> {
    await this.#waitForLines(lines);
    await this.#gateway.kill();
  }

  /** Waits until there are this many lines, or until no more arrive. */
  async #waitForLines(lines: number): Promise<void> {
    await this.#changeSignal.waitUntilOrStalled(
      () => this.#lineCount >= lines,
      () => this.#lineCount,
      this.#options.stallSeconds,
    );
  }

  async #conclude(): Promise<CommandRunResult> {
    for (const lock of this.#locks) lock.offline();
    await this.#gateway.stop(STOP_SECONDS);
    const sum = (count: (lock: CommandLock) => number): number =>
      this.#locks.reduce((all, lock) => all + count(lock), 0);
    return {
      findings: checkCommands(this.#requested, this.#locks),
      requested: [...this.#requested.values()].reduce((all, ids) => all + ids.size, 0),
      received: sum(({ received }) => received),
      lost: sum(({ lost }) => lost),
      errorLines: this.#gateway.errorLines,
    };
  }
}
