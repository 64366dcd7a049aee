/** Watches the gateway's event stream during a replay: which uplinks it took, and what it found. */
import { type Milliseconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { GatewayClient } from '../../../client.js';

/** A finding as the stream has it. */
export interface SeenFinding {
  /** As printed. */
  readonly mac: string;
  readonly rule: string;
  readonly severity: string;
  readonly message: string;
  /** The uplink that it is about; null where it is about none. */
  readonly uplink: { readonly boot: number; readonly sequence: number } | null;
}

export interface SeenQuarantine {
  readonly mac: string;
  readonly message: string;
  /** The bytes, base64. */
  readonly raw: string;
}

interface Envelope {
  readonly boot: number;
  readonly sequence: number;
}

/** The members of the stream's events that are used. */
interface EventJson {
  readonly event: string;
  readonly mac?: string;
  readonly repeated?: boolean;
  readonly findings?: readonly FindingJson[];
  readonly finding?: FindingJson;
  readonly ping?: Envelope;
  readonly ack?: Envelope;
  readonly message?: string;
  readonly raw?: string;
  readonly what?: string;
  readonly client_id?: string;
  readonly why?: string;
}

interface FindingJson extends Omit<SeenFinding, 'mac' | 'uplink'> {
  readonly uplink: Envelope | null;
}

interface Waiter {
  readonly holds: () => boolean;
  readonly done: () => void;
}

/** Its memory grows with what is replayed, which the plan bounds. */
export class ReplayWatch {
  readonly findings: SeenFinding[] = [];
  readonly quarantined: SeenQuarantine[] = [];
  /** Why CONNECTs were refused, by client id: the gateway tells only operators. */
  readonly refusals = new Map<string, string>();
  /** Resolves when the stream ends before `signal` fires. */
  readonly ended: Promise<void>;
  readonly #macs: ReadonlySet<string>;
  readonly #taken = new Map<string, { isNew: boolean }>();
  readonly #disconnects = new Map<string, number>();
  readonly #waiters = new Set<Waiter>();
  #reported = 0;
  #isOver = false;

  private constructor(lines: AsyncGenerator<string>, macs: ReadonlySet<Mac>, signal: AbortSignal) {
    this.#macs = new Set([...macs].map(formatMac));
    this.ended = new Promise((resolve) => {
      void this.#read(lines).then(() => {
        this.#isOver = true;
        this.#notifyWaiters();
        if (!signal.aborted) resolve();
      });
    });
  }

  /** Starts to listen: events from when this resolves are seen. @throws LockgateError as the client's calls do */
  static async start(client: GatewayClient, macs: ReadonlySet<Mac>, signal: AbortSignal): Promise<ReplayWatch> {
    return new ReplayWatch(await client.listen('/events', signal), macs, signal);
  }

  /** How many uplinks of the replayed locks the gateway has reported, quarantined ones included. */
  get reported(): number {
    return this.#reported;
  }

  /** Whether the gateway took an uplink with this key. */
  hasTaken(mac: string, { boot, sequence }: Envelope): boolean {
    return this.#taken.has(`${mac} ${boot} ${sequence}`);
  }

  /** Whether the gateway had the uplink before the replay: it was reported as a repeat, and never as new. */
  hadBefore(mac: string, { boot, sequence }: Envelope): boolean {
    return this.#taken.get(`${mac} ${boot} ${sequence}`)?.isNew === false;
  }

  /** How many of these uplinks it had before. */
  get hadBeforeCount(): number {
    let count = 0;
    for (const { isNew } of this.#taken.values()) if (!isNew) count += 1;
    return count;
  }

  /** How many connections of a lock the gateway saw end. */
  disconnectsOf(mac: string): number {
    return this.#disconnects.get(mac) ?? 0;
  }

  /** Waits until `holds`, which is checked at every event, or the time limit. Resolves to whether it holds. */
  async until(holds: () => boolean, limit: Milliseconds): Promise<boolean> {
    if (holds() || this.#isOver) return holds();
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      const waiter: Waiter = { holds, done: resolve };
      this.#waiters.add(waiter);
      timer = systemClock.after(limit, () => {
        this.#waiters.delete(waiter);
        resolve();
      });
    });
    timer?.cancel();
    return holds();
  }

  async #read(lines: AsyncGenerator<string>): Promise<void> {
    try {
      for await (const line of lines) {
        this.#note(JSON.parse(line) as EventJson);
        this.#notifyWaiters();
      }
    } catch {
      // A broken stream counts as ended, which is reported to whoever waits.
    }
  }

  #notifyWaiters(): void {
    for (const waiter of this.#waiters) {
      if (!this.#isOver && !waiter.holds()) continue;
      this.#waiters.delete(waiter);
      waiter.done();
    }
  }

  #note(event: EventJson): void {
    const { mac = '' } = event;
    if (event.event === 'refused') {
      if (event.what === 'connect') this.refusals.set(event.client_id ?? '', event.why ?? '');
    } else if (!this.#macs.has(mac)) return;
    else if (event.event === 'ping' || event.event === 'ack') this.#noteUplink(mac, event);
    else if (event.event === 'finding' && event.finding !== undefined) this.#noteFinding(mac, event.finding, null);
    else if (event.event === 'disconnect') this.#disconnects.set(mac, this.disconnectsOf(mac) + 1);
    else if (event.event === 'quarantined') {
      this.#reported += 1;
      this.quarantined.push({ mac, message: event.message ?? '', raw: event.raw ?? '' });
    }
  }

  #noteUplink(mac: string, event: EventJson): void {
    const envelope = event.ping ?? event.ack;
    if (envelope === undefined) return;
    this.#reported += 1;
    const key = `${mac} ${envelope.boot} ${envelope.sequence}`;
    const known = this.#taken.get(key);
    const isNew = event.repeated !== true;
    if (known === undefined) this.#taken.set(key, { isNew });
    else known.isNew ||= isNew;
    for (const finding of event.findings ?? []) this.#noteFinding(mac, finding, envelope);
  }

  #noteFinding(mac: string, { rule, severity, message, uplink }: FindingJson, inEvent: Envelope | null): void {
    this.findings.push({ mac, rule, severity, message, uplink: uplink ?? inEvent });
  }
}
