/** What is counted of a live run: what the locks wrote down of themselves, and what the gateway found. */
import type { DiaryEntry } from '../../../firmware-sim/lock/diary.js';
import type { Lock } from '../../../firmware-sim/lock/lock.js';
import { monotonicMs, Seconds } from '../../../proto/clock.js';
import type { GatewayClient } from '../../client.js';
import { plural } from './summary.js';

/**
 * Whether it is connected, or silent because nothing asks it to speak: not while it connects or ends, has something to
 * say and no connection, or could not connect the last time. In a silent state it sleeps, whatever it keeps.
 */
function isAsItShould({ hasPower, state }: Lock): boolean {
  if (!hasPower || state.link !== 'down') return hasPower && state.link === 'up';
  const isSilent = state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
  if (isSilent && state.tracking !== 'theft') return true;
  return state.waiting.length === 0 && state.failures === 0;
}

function count(number: number): string {
  return number.toLocaleString('en-US');
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}

interface EventJson {
  readonly event: string;
  readonly mac?: string;
  readonly finding?: { readonly rule: string };
  readonly findings?: readonly { readonly rule: string }[];
}

export class SimTally {
  locks: readonly Lock[] = [];
  readonly #macs: ReadonlySet<string>;
  #connections = 0;
  #refused = 0;
  #lost = 0;
  #sent = 0;
  #acknowledged = 0;
  #commands = 0;
  #whyRefused = '';
  /** When the rate was reckoned last, and from what. */
  #rated = { atMs: monotonicMs(), rate: 0, acknowledged: 0 };
  /** By rule; null where nobody tells. */
  #findings: Map<string, number> | null = null;

  /** @param macs as we print them */
  constructor(macs: ReadonlySet<string>) {
    this.#macs = macs;
  }

  /** What the gateway found, by rule; null where nobody tells. */
  get findings(): ReadonlyMap<string, number> | null {
    return this.#findings;
  }

  /** How many uplinks the locks keep that nobody has acknowledged. */
  get kept(): number {
    return this.locks.reduce((sum, { state }) => sum + state.waiting.length, 0);
  }

  /** Takes a line of a lock's diary. */
  note(entry: DiaryEntry): void {
    if (entry.type === 'connected') this.#connections += 1;
    else if (entry.type === 'lost') this.#lost += 1;
    else if (entry.type === 'acknowledged') this.#acknowledged += 1;
    else if (entry.type === 'received') this.#commands += 1;
    else if (entry.type === 'did' && entry.effect.type === 'publish') this.#sent += 1;
    else if (entry.type === 'refused') {
      this.#refused += 1;
      this.#whyRefused = entry.trouble.message;
    }
  }

  /** Counts what the gateway finds of these locks, from when this resolves until `signal` fires. */
  async listen(client: GatewayClient, signal: AbortSignal): Promise<void> {
    const lines = await client.listen('/events', signal);
    const findings = new Map<string, number>();
    this.#findings = findings;
    void this.#read(lines, findings).catch(() => {
      // What the gateway no longer tells is unknown from there on.
      if (!signal.aborted) this.#findings = null;
    });
  }

  async #read(lines: AsyncGenerator<string>, findings: Map<string, number>): Promise<void> {
    for await (const line of lines) {
      // Most lines have none, and need not be taken apart.
      if (!line.includes('"rule"')) continue;
      const { mac = '', finding, findings: several = [] } = JSON.parse(line) as EventJson;
      if (!this.#macs.has(mac)) continue;
      for (const { rule } of finding === undefined ? several : [finding])
        findings.set(rule, (findings.get(rule) ?? 0) + 1);
    }
    throw new Error('the gateway ended its stream of events');
  }

  /** How things stand at this moment, in few words: the line of a run that goes on. */
  progress(): string {
    const fine = this.locks.filter(isAsItShould).length;
    const parts = [
      `${count(fine)} of ${count(this.locks.length)} connected or asleep`,
      `${count(Math.round(this.#rate()))} pings/s`,
      this.#findings === null ? 'findings unknown' : plural(sumOf(this.#findings.values()), 'finding'),
      `${count(this.kept)} kept`,
    ];
    if (this.#refused > 0) parts.push(`${count(this.#refused)} connects failed (${this.#whyRefused})`);
    return parts.join(', ');
  }

  /** Uplinks a second that were acknowledged since this was asked before, but for at least a second. */
  #rate(): number {
    const atMs = monotonicMs();
    const span = (atMs - this.#rated.atMs) / Seconds(1);
    if (span < 1) return this.#rated.rate;
    const rate = (this.#acknowledged - this.#rated.acknowledged) / span;
    this.#rated = { atMs, rate, acknowledged: this.#acknowledged };
    return rate;
  }

  /** How things stand, for people. */
  line(kept = this.kept): string {
    const parts = [
      `${count(this.locks.filter(({ state }) => state.link === 'up').length)} connected`,
      `${count(this.#sent)} sent`,
      `${count(this.#acknowledged)} acknowledged`,
      `${count(kept)} kept`,
    ];
    if (this.#refused > 0) parts.push(`${count(this.#refused)} connects failed (${this.#whyRefused})`);
    if (this.#lost > 0) parts.push(`${count(this.#lost)} connections lost`);
    if (this.#commands > 0) parts.push(`${count(this.#commands)} commands`);
    parts.push(`findings ${this.#findingsText()}`);
    return parts.join(', ');
  }

  #findingsText(): string {
    if (this.#findings === null) return 'unknown';
    if (this.#findings.size === 0) return 'none';
    return [...this.#findings].map(([rule, number]) => `${rule} ${number}`).join(', ');
  }

  /** The counts as `--json` has them. */
  toJson(): Record<string, unknown> {
    return {
      connections: this.#connections,
      refused: this.#refused,
      lost: this.#lost,
      sent: this.#sent,
      acknowledged: this.#acknowledged,
      commands: this.#commands,
      findings: this.#findings === null ? null : Object.fromEntries(this.#findings),
    };
  }
}
