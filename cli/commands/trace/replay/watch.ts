/**
 * What the gateway tells an operator while a trace is replayed: which uplinks it took and what it found, over its
 * stream of events.
 */
import { type Milliseconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { GatewayClient } from '../../../client.js';

/** A finding as the stream has it. */
export interface SeenFinding {
  /** As we print it. */
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

/** The members of the stream's events that are looked at. */
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

interface Waiting {
  readonly holds: () => boolean;
  readonly done: () => void;
}

/** What is kept grows with what is played, which a plan bounds. */
export class ReplayWatch {
  readonly findings: SeenFinding[] = [];
  readonly quarantined: SeenQuarantine[] = [];
  /** Why CONNECTs were refused, by client id: what the gateway says to operators alone. */
  readonly refusals = new Map<string, string>();
  /** Resolves when the stream ends before `signal` fires. */
  readonly ended: Promise<void>;
  readonly #macs: ReadonlySet<string>;
  readonly #taken = new Map<string, { isNew: boolean }>();
  readonly #disconnects = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();
  #told = 0;
  #isOver = false;

  private constructor(lines: AsyncGenerator<string>, macs: ReadonlySet<Mac>, signal: AbortSignal) {
    this.#macs = new Set([...macs].map(formatMac));
    this.ended = new Promise((resolve) => {
      void this.#read(lines).then(() => {
        this.#isOver = true;
        this.#ring();
        if (!signal.aborted) resolve();
      });
    });
  }

  /** Begins to listen: what happens from when this resolves is heard. @throws LockgateError as the client's calls do */
  static async start(client: GatewayClient, macs: ReadonlySet<Mac>, signal: AbortSignal): Promise<ReplayWatch> {
    return new ReplayWatch(await client.listen('/events', signal), macs, signal);
  }

  /** How many uplinks of the replayed locks the gateway has told of, quarantined ones included. */
  get told(): number {
    return this.#told;
  }

  /** Whether the gateway took an uplink of this name. */
  hasTaken(mac: string, { boot, sequence }: Envelope): boolean {
    return this.#taken.has(`${mac} ${boot} ${sequence}`);
  }

  /** Whether it had the uplink before the replay: it came as a repeat, and never as a new one. */
  hadBefore(mac: string, { boot, sequence }: Envelope): boolean {
    return this.#taken.get(`${mac} ${boot} ${sequence}`)?.isNew === false;
  }

  /** How many names of uplinks it had before. */
  get hadBeforeCount(): number {
    let count = 0;
    for (const { isNew } of this.#taken.values()) if (!isNew) count += 1;
    return count;
  }

  /** How many connections of a lock the gateway saw end. */
  disconnectsOf(mac: string): number {
    return this.#disconnects.get(mac) ?? 0;
  }

  /** Resolves when `holds`, which is looked at with every event, and to false where that does not come in time. */
  async until(holds: () => boolean, limit: Milliseconds): Promise<boolean> {
    if (holds() || this.#isOver) return holds();
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      const waiting: Waiting = { holds, done: resolve };
      this.#waiting.add(waiting);
      timer = systemClock.after(limit, () => {
        this.#waiting.delete(waiting);
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
        this.#ring();
      }
    } catch {
      // A stream that breaks is one that ended: who waits for it says so.
    }
  }

  #ring(): void {
    for (const waiting of this.#waiting) {
      if (!this.#isOver && !waiting.holds()) continue;
      this.#waiting.delete(waiting);
      waiting.done();
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
      this.#told += 1;
      this.quarantined.push({ mac, message: event.message ?? '', raw: event.raw ?? '' });
    }
  }

  #noteUplink(mac: string, event: EventJson): void {
    const envelope = event.ping ?? event.ack;
    if (envelope === undefined) return;
    this.#told += 1;
    const name = `${mac} ${envelope.boot} ${envelope.sequence}`;
    const known = this.#taken.get(name);
    const isNew = event.repeated !== true;
    if (known === undefined) this.#taken.set(name, { isNew });
    else known.isNew ||= isNew;
    for (const finding of event.findings ?? []) this.#noteFinding(mac, finding, envelope);
  }

  #noteFinding(mac: string, { rule, severity, message, uplink }: FindingJson, beside: Envelope | null): void {
    this.findings.push({ mac, rule, severity, message, uplink: uplink ?? beside });
  }
}
