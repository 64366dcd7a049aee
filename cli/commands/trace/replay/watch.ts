/**
 * Follows the gateway's event stream during a replay: which uplinks (messages of locks) the gateway received, and which
 * rules it found broken.
 */
import { type Milliseconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { GatewayClient } from '../../../client.js';

/** A finding as the event stream reports it. */
export interface ReportedFinding {
  /** With colons. */
  readonly mac: string;
  readonly rule: string;
  readonly severity: string;
  readonly message: string;
  /** Null if the finding is not about an uplink. */
  readonly uplink: { readonly boot: number; readonly sequence: number } | null;
}

/** A quarantined uplink, which the gateway can't decode, as the event stream reports it. */
export interface ReportedQuarantine {
  readonly mac: string;
  readonly message: string;
  /** The uplink's bytes, base64. */
  readonly raw: string;
}

/** Identifies an uplink of a lock. */
interface UplinkKey {
  readonly boot: number;
  readonly sequence: number;
}

/** Those members of the stream's events that this file reads. */
interface EventJson {
  readonly event: string;
  readonly mac?: string;
  readonly repeated?: boolean;
  readonly findings?: readonly FindingJson[];
  readonly finding?: FindingJson;
  readonly ping?: UplinkKey;
  readonly ack?: UplinkKey;
  readonly message?: string;
  readonly raw?: string;
  readonly what?: string;
  readonly client_id?: string;
  readonly why?: string;
}

interface FindingJson extends Omit<ReportedFinding, 'mac' | 'uplink'> {
  /** Null if the finding names none: then it is about the uplink of its event, if the event has one. */
  readonly uplink: UplinkKey | null;
}

/** A caller that waits until `holds` returns true. */
interface Waiter {
  readonly holds: () => boolean;
  readonly done: () => void;
}

/** What the event stream has reported so far. Its memory grows with the replayed uplinks, whose number is limited. */
export class ReplayWatch {
  readonly findings: ReportedFinding[] = [];
  readonly quarantined: ReportedQuarantine[] = [];
  /** Why CONNECTs were refused, by client id. A CONNACK does not give the reason. */
  readonly refusals = new Map<string, string>();
  /** Resolves if the stream ends before `signal` fires. */
  readonly ended: Promise<void>;
  /** The replayed locks, with colons. Events of other locks are ignored. */
  readonly #macs: ReadonlySet<string>;
  /** The reported uplinks by MAC, boot and sequence, and whether each was ever reported as new. */
  readonly #uplinks = new Map<string, { isNew: boolean }>();
  /** How many connections of each lock have ended. */
  readonly #disconnects = new Map<string, number>();
  readonly #waiters = new Set<Waiter>();
  #reported = 0;
  #isClosed = false;

  private constructor(lines: AsyncGenerator<string>, macs: ReadonlySet<Mac>, signal: AbortSignal) {
    this.#macs = new Set([...macs].map(formatMac));
    this.ended = new Promise((resolve) => {
      void this.#read(lines).then(() => {
        this.#isClosed = true;
        this.#notifyWaiters();
        if (!signal.aborted) resolve();
      });
    });
  }

  /** Resolves when the stream is open; later events are seen. @throws LockgateError as {@link GatewayClient.get} */
  static async start(client: GatewayClient, macs: ReadonlySet<Mac>, signal: AbortSignal): Promise<ReplayWatch> {
    return new ReplayWatch(await client.listen('/events', signal), macs, signal);
  }

  /** How many uplinks of the replayed locks the gateway has reported, quarantined ones included. */
  get reported(): number {
    return this.#reported;
  }

  /** Whether the gateway reported an uplink with this key. */
  hasReceived(mac: string, { boot, sequence }: UplinkKey): boolean {
    return this.#uplinks.has(`${mac} ${boot} ${sequence}`);
  }

  /** Whether the gateway had the uplink before the replay: it reported it as a repeat, and never as new. */
  hadBefore(mac: string, { boot, sequence }: UplinkKey): boolean {
    return this.#uplinks.get(`${mac} ${boot} ${sequence}`)?.isNew === false;
  }

  /** How many replayed uplinks the gateway had before the replay. */
  get hadBeforeCount(): number {
    let count = 0;
    for (const { isNew } of this.#uplinks.values()) if (!isNew) count += 1;
    return count;
  }

  /** How many ended connections of a lock the gateway has reported. */
  disconnectsOf(mac: string): number {
    return this.#disconnects.get(mac) ?? 0;
  }

  /** Waits until `holds`, which is checked at every event, returns true, or until the time limit. Returns `holds()`. */
  async waitUntil(holds: () => boolean, limit: Milliseconds): Promise<boolean> {
    if (holds() || this.#isClosed) return holds();
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
        this.#handleEvent(JSON.parse(line) as EventJson);
        this.#notifyWaiters();
      }
    } catch {
      // A broken stream counts as ended: the constructor wakes the waiters and resolves `ended`.
    }
  }

  #notifyWaiters(): void {
    for (const waiter of this.#waiters) {
      if (!this.#isClosed && !waiter.holds()) continue;
      this.#waiters.delete(waiter);
      waiter.done();
    }
  }

  #handleEvent(event: EventJson): void {
    const { mac = '' } = event;
    if (event.event === 'refused') {
      if (event.what === 'connect') this.refusals.set(event.client_id ?? '', event.why ?? '');
    } else if (!this.#macs.has(mac)) return;
    else if (event.event === 'ping' || event.event === 'ack') this.#addUplink(mac, event);
    else if (event.event === 'finding' && event.finding !== undefined) this.#addFinding(mac, event.finding, null);
    else if (event.event === 'disconnect') this.#disconnects.set(mac, this.disconnectsOf(mac) + 1);
    else if (event.event === 'quarantined') {
      this.#reported += 1;
      this.quarantined.push({ mac, message: event.message ?? '', raw: event.raw ?? '' });
    }
  }

  #addUplink(mac: string, event: EventJson): void {
    const uplinkKey = event.ping ?? event.ack;
    if (uplinkKey === undefined) return;
    this.#reported += 1;
    const key = `${mac} ${uplinkKey.boot} ${uplinkKey.sequence}`;
    const known = this.#uplinks.get(key);
    const isNew = event.repeated !== true;
    if (known === undefined) this.#uplinks.set(key, { isNew });
    else known.isNew ||= isNew;
    for (const finding of event.findings ?? []) this.#addFinding(mac, finding, uplinkKey);
  }

  #addFinding(mac: string, { rule, severity, message, uplink }: FindingJson, uplinkOfEvent: UplinkKey | null): void {
    this.findings.push({ mac, rule, severity, message, uplink: uplink ?? uplinkOfEvent });
  }
}
