/**
 * Counts what happens in a live run: the locks' events, from their diaries (each simulated lock reports every step to a
 * callback, its diary), and the gateway's findings (each is a rule of the protocol that a lock has broken).
 */
import type { DiaryEntry } from '../../../firmware-sim/lock/diary.js';
import type { Lock } from '../../../firmware-sim/lock/lock.js';
import { monotonicMs, Seconds } from '../../../proto/clock.js';
import type { GatewayClient } from '../../client.js';
import { plural } from './summary.js';

/**
 * Whether the lock is connected, or sleeps because nothing is due. False while it connects or disconnects, if it has
 * uplinks (messages to send) but no connection, and after a failed connect. In a silent power state, where only a theft
 * makes a lock connect, the lock may sleep with unsent uplinks.
 */
function isHealthy({ hasPower, state }: Lock): boolean {
  if (!hasPower) return false;
  if (state.link !== 'down') return state.link === 'up';
  const isSilent = state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
  if (isSilent && state.tracking !== 'theft') return true;
  return state.waiting.length === 0 && state.failures === 0;
}

function formatCount(number: number): string {
  return number.toLocaleString('en-US');
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}

/** Those members of the gateway's events that this file reads. */
interface EventJson {
  readonly event: string;
  readonly mac?: string;
  readonly finding?: { readonly rule: string };
  readonly findings?: readonly { readonly rule: string }[];
}

/** The counters of one run. */
export class SimTally {
  /** The simulated locks, for the progress line. */
  locks: readonly Lock[] = [];
  readonly #macs: ReadonlySet<string>;
  #connections = 0;
  #refused = 0;
  #lost = 0;
  #sent = 0;
  #acknowledged = 0;
  #commands = 0;
  #refusalReason = '';
  /** The last computed rate, and the counter at that time. */
  #lastRate = { atMs: monotonicMs(), rate: 0, acknowledged: 0 };
  /** The number of findings by rule; null if the gateway's findings are unknown. */
  #findings: Map<string, number> | null = null;
  #isEnding = false;

  /** @param macs MACs of the locks, with colons */
  constructor(macs: ReadonlySet<string>) {
    this.#macs = macs;
  }

  /** Call before the locks are stopped: findings about connections that the stop cuts don't count. */
  end(): void {
    this.#isEnding = true;
  }

  /** The number of findings by rule; null if the gateway's findings are unknown. */
  get findings(): ReadonlyMap<string, number> | null {
    return this.#findings;
  }

  /** The number of unacknowledged uplinks that the locks have stored. */
  get unacknowledged(): number {
    return this.locks.reduce((sum, { state }) => sum + state.waiting.length, 0);
  }

  /** Counts an entry of a lock's diary. */
  note(entry: DiaryEntry): void {
    if (entry.type === 'connected') this.#connections += 1;
    else if (entry.type === 'lost') this.#lost += 1;
    else if (entry.type === 'acknowledged') this.#acknowledged += 1;
    else if (entry.type === 'received') this.#commands += 1;
    else if (entry.type === 'did' && entry.effect.type === 'publish') this.#sent += 1;
    else if (entry.type === 'refused') {
      this.#refused += 1;
      this.#refusalReason = entry.trouble.message;
    }
  }

  /** Resolves when the gateway's event stream is open. Then counts findings about these locks until `signal` fires. */
  async listen(client: GatewayClient, signal: AbortSignal): Promise<void> {
    const lines = await client.listen('/events', signal);
    const findings = new Map<string, number>();
    this.#findings = findings;
    void this.#read(lines, findings).catch(() => {
      // After the end of the stream the findings are unknown.
      if (!signal.aborted) this.#findings = null;
    });
  }

  async #read(lines: AsyncGenerator<string>, findings: Map<string, number>): Promise<void> {
    for await (const line of lines) {
      // Most lines have no finding; they are skipped without parsing.
      if (!line.includes('"rule"')) continue;
      const { mac = '', finding, findings: findingsOfUplink = [] } = JSON.parse(line) as EventJson;
      if (!this.#macs.has(mac)) continue;
      for (const { rule } of finding === undefined ? findingsOfUplink : [finding]) {
        // A connection cut by the end of the run is not the lock's fault.
        if (this.#isEnding && rule === 'not-closed') continue;
        findings.set(rule, (findings.get(rule) ?? 0) + 1);
      }
    }
    throw new Error('the gateway closed its event stream');
  }

  /** The text of the progress line. */
  progress(): string {
    const healthy = this.locks.filter(isHealthy).length;
    const parts = [
      `${formatCount(healthy)} of ${formatCount(this.locks.length)} connected or asleep`,
      `${formatCount(Math.round(this.#rate()))} uplinks/s`,
      this.#findings === null ? 'findings unknown' : plural(sumOf(this.#findings.values()), 'finding'),
      `${formatCount(this.unacknowledged)} unacknowledged`,
    ];
    if (this.#refused > 0) parts.push(`${formatCount(this.#refused)} connects failed (${this.#refusalReason})`);
    return parts.join(', ');
  }

  /** Acknowledged uplinks per second, over the time since the last call but at least a second. */
  #rate(): number {
    const atMs = monotonicMs();
    const span = (atMs - this.#lastRate.atMs) / Seconds(1);
    if (span < 1) return this.#lastRate.rate;
    const rate = (this.#acknowledged - this.#lastRate.acknowledged) / span;
    this.#lastRate = { atMs, rate, acknowledged: this.#acknowledged };
    return rate;
  }

  /** The result as a line of text. @param unacknowledged the number of unacknowledged uplinks when the run ended */
  line(unacknowledged = this.unacknowledged): string {
    const parts = [
      `${formatCount(this.locks.filter(({ state }) => state.link === 'up').length)} connected`,
      `${formatCount(this.#sent)} sent`,
      `${formatCount(this.#acknowledged)} acknowledged`,
      `${formatCount(unacknowledged)} unacknowledged`,
    ];
    if (this.#refused > 0) parts.push(`${formatCount(this.#refused)} connects failed (${this.#refusalReason})`);
    if (this.#lost > 0) parts.push(`${formatCount(this.#lost)} connections lost`);
    if (this.#commands > 0) parts.push(`${formatCount(this.#commands)} commands`);
    parts.push(`findings ${this.#findingsText()}`);
    return parts.join(', ');
  }

  #findingsText(): string {
    if (this.#findings === null) return 'unknown';
    if (this.#findings.size === 0) return 'none';
    return [...this.#findings].map(([rule, count]) => `${rule} ${count}`).join(', ');
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
