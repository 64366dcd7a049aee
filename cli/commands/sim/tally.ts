/** The counters of a live run: from the locks' diaries, and the gateway's findings. */
import type { DiaryEntry } from '../../../firmware-sim/lock/diary.js';
import type { Lock } from '../../../firmware-sim/lock/lock.js';
import { monotonicMs, Seconds } from '../../../proto/clock.js';
import type { GatewayClient } from '../../client.js';
import { plural } from './summary.js';

/**
 * Whether the lock is connected, or asleep because nothing is due: not while it connects or disconnects, has uplinks
 * but no connection, or failed to connect the last time. In a silent state it sleeps whatever it retains.
 */
function isHealthy({ hasPower, state }: Lock): boolean {
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
  /** The last computation of the rate. */
  #rated = { atMs: monotonicMs(), rate: 0, acknowledged: 0 };
  /** By rule; null where the gateway does not report them. */
  #findings: Map<string, number> | null = null;

  /** @param macs in the form in which they are printed */
  constructor(macs: ReadonlySet<string>) {
    this.#macs = macs;
  }

  /** What the gateway found, by rule; null where it does not report it. */
  get findings(): ReadonlyMap<string, number> | null {
    return this.#findings;
  }

  /** How many unacknowledged uplinks the locks retain. */
  get kept(): number {
    return this.locks.reduce((sum, { state }) => sum + state.waiting.length, 0);
  }

  /** Takes an entry of a lock's diary. */
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

  /** Counts the gateway's findings about these locks, from when this resolves until `signal` fires. */
  async listen(client: GatewayClient, signal: AbortSignal): Promise<void> {
    const lines = await client.listen('/events', signal);
    const findings = new Map<string, number>();
    this.#findings = findings;
    void this.#read(lines, findings).catch(() => {
      // Once the stream ends, the findings are unknown.
      if (!signal.aborted) this.#findings = null;
    });
  }

  async #read(lines: AsyncGenerator<string>, findings: Map<string, number>): Promise<void> {
    for await (const line of lines) {
      // Most lines have no finding, and need not be parsed.
      if (!line.includes('"rule"')) continue;
      const { mac = '', finding, findings: several = [] } = JSON.parse(line) as EventJson;
      if (!this.#macs.has(mac)) continue;
      for (const { rule } of finding === undefined ? several : [finding])
        findings.set(rule, (findings.get(rule) ?? 0) + 1);
    }
    throw new Error('the gateway ended its stream of events');
  }

  /** The current state in a few words, for the progress line. */
  progress(): string {
    const healthy = this.locks.filter(isHealthy).length;
    const parts = [
      `${count(healthy)} of ${count(this.locks.length)} connected or asleep`,
      `${count(Math.round(this.#rate()))} pings/s`,
      this.#findings === null ? 'findings unknown' : plural(sumOf(this.#findings.values()), 'finding'),
      `${count(this.kept)} kept`,
    ];
    if (this.#refused > 0) parts.push(`${count(this.#refused)} connects failed (${this.#whyRefused})`);
    return parts.join(', ');
  }

  /** Uplinks acknowledged per second since the last call, but over at least a second. */
  #rate(): number {
    const atMs = monotonicMs();
    const span = (atMs - this.#rated.atMs) / Seconds(1);
    if (span < 1) return this.#rated.rate;
    const rate = (this.#acknowledged - this.#rated.acknowledged) / span;
    this.#rated = { atMs, rate, acknowledged: this.#acknowledged };
    return rate;
  }

  /** The result, for people. */
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

  /** The counters for `--json`. */
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
