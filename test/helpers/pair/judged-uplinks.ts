// Uplinks for tests of the judge, and a judge that collects the findings which are not withdrawn.

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
import { ruleRow } from '../../../proto/power/rules.js';
import type { CellularPing, CommandAck, Ping, PowerSettings, Uplink } from '../../../proto/wire/ping.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';
import { lifeOf, NO_MARKS } from '../../../proto/wire/uplink-life.js';

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

export interface UplinkParts {
  boot?: number;
  sequence?: number;
  timeMs?: number;
  power?: Partial<PowerSettings>;
  kept?: number;
  dropped?: number;
  body?: Ping | CommandAck;
}

/** An uplink with boot 1 and sequence 1, made at {@link START_MS}, with the given changes. */
export function uplink(parts: UplinkParts = {}): Uplink {
  return {
    boot: parts.boot ?? 1,
    sequence: parts.sequence ?? 1,
    timeMs: parts.timeMs ?? START_MS,
    power: { ...DEFAULT_POWER, ...parts.power },
    kept: parts.kept ?? 0,
    dropped: parts.dropped ?? 0,
    body: parts.body ?? cellular(),
  };
}

/** A judge with its belief, and the findings that it made and has not withdrawn. */
export class JudgedRun {
  readonly belief: Belief;
  readonly findings: Finding[] = [];
  readonly #contents = new Map<string, Map<string, number>>();
  readonly #marks: readonly number[];

  /** @param marks when the lock was reflashed, ms since the epoch */
  constructor(
    atMs = START_MS,
    initial: InitialBelief = { listeningSinceMs: START_MS },
    marks: readonly number[] = NO_MARKS,
  ) {
    this.belief = newBelief(POWER_MODEL, 'A4:C1:38:F0:E1:D2', atMs, initial);
    this.#marks = marks;
  }

  /** Judges an event, and returns the rules of its findings. */
  judge(event: JudgeEvent): string[] {
    const out = newVerdict();
    judgeInPlace(POWER_MODEL, this.belief, event, out);
    for (const { rule, about } of out.withdrawn) {
      const index = this.findings.findIndex((one) => {
        return one.rule === rule && one.about !== null && compareKeys(one.about, about) === 0;
      });
      if (index === -1) throw new Error(`a finding of ${rule} was withdrawn that was never made`);
      this.findings.splice(index, 1);
    }
    this.findings.push(...out.findings);
    return out.findings.map((one) => one.rule);
  }

  /** Judges an uplink of the lock. Whether it is new, a repeat or a conflict is looked up, as a store would do. */
  receive(received: Uplink, atMs: number, credential = 0): string[] {
    const life = lifeOf(this.#marks, received.timeMs, atMs);
    const novelty = this.#noveltyOf(received, credential, life);
    return this.judge({ type: 'uplink', source: 'lock', atMs, credential, life, novelty, uplink: received });
  }

  /** The findings whose rules depend only on content, as rule and uplink, sorted and without repeats. */
  get contentFindings(): string[] {
    const names = this.findings
      .filter((one) => ruleRow(one.rule)?.restsOn === 'content')
      .map((one) => `${one.rule} ${one.about?.credential}/${one.about?.boot}/${one.about?.sequence}`);
    return [...new Set(names)].sort();
  }

  /** The belief about the lock's state, and from which uplinks it comes. */
  get device(): unknown {
    const { power, powerFrom, batteryPercent, batteryFrom, lockState, lockStateFrom } = this.belief;
    const { position, positionFrom, highWindow, windowFrom, state } = this.belief;
    const from = [powerFrom, batteryFrom, lockStateFrom, positionFrom, windowFrom];
    return structuredClone({ power, batteryPercent, lockState, position, highWindow, state, from });
  }

  #noveltyOf(received: Uplink, credential: number, life: number): UplinkNovelty {
    const name = `${credential}/${received.boot}/${received.sequence}`;
    const content = JSON.stringify(received);
    const contents = this.#contents.get(name) ?? new Map<string, number>();
    if (contents.has(content)) return 'repeat';
    const isConflict = [...contents.values()].includes(life);
    this.#contents.set(name, contents.set(content, life));
    return isConflict ? 'conflict' : 'new';
  }
}
