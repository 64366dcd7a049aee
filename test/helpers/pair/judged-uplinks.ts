// Makes uplinks (a lock's messages) for tests of the judge, the code that checks them against the power model. Also a
// judge that collects its findings (objections) except the withdrawn ones. The judge's belief is what it concludes from
// the uplinks about the lock's state.

import { type Belief, type InitialBelief, newBelief } from '../../../proto/power/judge/belief.js';
import {
  compareKeys,
  type Finding,
  type JudgeEvent,
  newVerdict,
  type UplinkNovelty,
} from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { findRule } from '../../../proto/power/rules.js';
import type { CellularPing, CommandAck, Ping, PowerSettings, Uplink } from '../../../proto/wire/ping.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { lifeOf, NO_MARKS } from '../../../proto/wire/uplink-life.js';

/** The time at which the uplinks of tests are made, unless the test gives another. */
export const START_MS = Date.UTC(2026, 10, 20, 6);

const CELLULAR: CellularPing = {
  kind: 'cellular',
  reason: 'REASON_NETWORK_PING',
  lockState: 'locked',
  batteryPercent: 80,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

/** A cellular ping with the given changes. */
export function cellular(change: Partial<CellularPing> = {}): CellularPing {
  return { ...CELLULAR, ...change };
}

/** The members of an uplink that differ from the default. */
export interface UplinkChanges {
  boot?: number;
  sequence?: number;
  timeMs?: number;
  power?: Partial<PowerSettings>;
  /** How many earlier uplinks still wait in the lock. */
  kept?: number;
  /** How many uplinks the lock has discarded because its buffer was full. */
  dropped?: number;
  body?: Ping | CommandAck;
}

/** An uplink with boot 1 and sequence 1, made at {@link START_MS}, with the given changes. */
export function uplink(changes: UplinkChanges = {}): Uplink {
  return {
    boot: changes.boot ?? 1,
    sequence: changes.sequence ?? 1,
    timeMs: changes.timeMs ?? START_MS,
    power: { ...DEFAULT_POWER, ...changes.power },
    kept: changes.kept ?? 0,
    dropped: changes.dropped ?? 0,
    body: changes.body ?? cellular(),
  };
}

/** A judge with its belief, and the findings that it made and has not withdrawn. */
export class JudgedRun {
  readonly belief: Belief;
  readonly findings: Finding[] = [];
  /**
   * The contents received so far, by the uplink's key. Each content has its life: the number of reflashes (new firmware
   * that restarts the numbers) of the lock before it.
   */
  readonly #livesByContent = new Map<string, Map<string, number>>();
  readonly #reflashTimesMs: readonly number[];

  /** @param reflashTimesMs when the lock was reflashed, ms since the epoch; its uplink numbers restart then */
  constructor(
    atMs = START_MS,
    initial: InitialBelief = { listeningSinceMs: START_MS },
    reflashTimesMs: readonly number[] = NO_MARKS,
  ) {
    this.belief = newBelief(POWER_MODEL, 'A4:C1:38:F0:E1:D2', atMs, initial);
    this.#reflashTimesMs = reflashTimesMs;
  }

  /** Judges an event, and returns the rules of its findings. */
  judge(event: JudgeEvent): string[] {
    const verdict = newVerdict();
    judgeInPlace(POWER_MODEL, this.belief, event, verdict);
    for (const { rule, about } of verdict.withdrawn) {
      const index = this.findings.findIndex((finding) => {
        return finding.rule === rule && finding.about !== null && compareKeys(finding.about, about) === 0;
      });
      if (index === -1) throw new Error(`a finding of ${rule} was withdrawn that was never made`);
      this.findings.splice(index, 1);
    }
    this.findings.push(...verdict.findings);
    return verdict.findings.map((finding) => finding.rule);
  }

  /**
   * Judges an uplink of the lock, and returns the rules of its findings. Whether it is new, a repeat or a conflict is
   * looked up, as a store would do. `credential` is the id of the lock's or a phone's secret that sent it.
   */
  receive(message: Uplink, atMs: number, credential = 0): string[] {
    const life = lifeOf(this.#reflashTimesMs, message.timeMs, atMs);
    const novelty = this.#noveltyOf(message, credential, life);
    return this.judge({ type: 'uplink', source: 'lock', atMs, credential, life, novelty, uplink: message });
  }

  /** The findings of rules that depend only on the uplinks' content, as rule and uplink, sorted and without repeats. */
  get contentFindings(): string[] {
    const findingTexts = this.findings
      .filter((finding) => findRule(finding.rule)?.restsOn === 'content')
      .map(
        (finding) => `${finding.rule} ${finding.about?.credential}/${finding.about?.boot}/${finding.about?.sequence}`,
      );
    return [...new Set(findingTexts)].sort();
  }

  /** The belief about the lock's state, and the uplinks that reported it. */
  get deviceBelief(): unknown {
    const { power, powerFrom, batteryPercent, batteryFrom, lockState, lockStateFrom } = this.belief;
    const { position, positionFrom, highWindow, windowFrom, state } = this.belief;
    const from = [powerFrom, batteryFrom, lockStateFrom, positionFrom, windowFrom];
    return structuredClone({ power, batteryPercent, lockState, position, highWindow, state, from });
  }

  /** Whether the uplink is new. Two uplinks with one key and different content are a conflict within one life. */
  #noveltyOf(message: Uplink, credential: number, life: number): UplinkNovelty {
    const key = `${credential}/${message.boot}/${message.sequence}`;
    const content = JSON.stringify(message);
    const lives = this.#livesByContent.get(key) ?? new Map<string, number>();
    if (lives.has(content)) return 'repeat';
    const isConflict = [...lives.values()].includes(life);
    this.#livesByContent.set(key, lives.set(content, life));
    return isConflict ? 'conflict' : 'new';
  }
}
