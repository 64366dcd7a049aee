/**
 * A test merchant that records every webhook that it receives: its diary. It verifies signatures with the reference
 * library of Standard Webhooks instead of lockgate's code. It is sometimes slow, answers 500, or closes the connection
 * before its answer; the gateway must deliver each ping nevertheless.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from '../../clients/webhook-libraries.js';
import { realDelay } from '../clocks/change-signal.js';
import type { SeededChance } from '../pair/seeded-chance.js';

/** One line of the merchant's diary. */
export interface Arrival {
  readonly webhookId: string;
  /** 12 hex digits, as on the wire. */
  readonly mac: string;
  readonly boot: number;
  readonly sequence: number;
  /** A hash of the received body. */
  readonly bodyHash: string;
  /** Whether it was answered with 2xx; if not, the gateway must send it again. */
  readonly accepted: boolean;
}

/** How the merchant answers; `chance` decides about each webhook. */
export interface DiaryMerchantOptions {
  readonly chance: SeededChance;
  /** Called after each line of the diary. */
  readonly onLine: () => void;
  /** The share of webhooks that fail at their first arrival. */
  readonly webhookFailureShare: number;
  /** The maximum delay of an answer, in ms. */
  readonly maxAnswerMs: number;
}

/** The merchant's HTTP server and its diary. */
export class DiaryMerchant {
  readonly arrivals: Arrival[] = [];
  /** Why webhooks did not verify, a sentence for each. */
  readonly invalid: string[] = [];
  /** How many pings were answered with 2xx at least once. */
  get accepted(): number {
    return this.#acceptedPings.size;
  }
  readonly #options: DiaryMerchantOptions;
  readonly #server: Server;
  readonly #seenIds = new Set<string>();
  readonly #acceptedPings = new Set<string>();
  #webhook: Webhook | undefined;

  private constructor(options: DiaryMerchantOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#onRequest(request, response));
  }

  static async start(options: DiaryMerchantOptions): Promise<DiaryMerchant> {
    const merchant = new DiaryMerchant(options);
    await new Promise<void>((resolve) => merchant.#server.listen(0, '127.0.0.1', resolve));
    return merchant;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/locks`;
  }

  /** Verifies with this signing secret. */
  verifyWith(secret: string): void {
    this.#webhook = new Webhook(secret);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks).toString('utf8');
      const fault = this.#chooseFault(String(request.headers['webhook-id']));
      this.#recordArrival(request, body, fault === undefined);
      if (this.#options.maxAnswerMs > 0) await realDelay(this.#options.chance.between(0, this.#options.maxAnswerMs));
      if (fault === 'hang-up') response.destroy();
      else response.writeHead(fault === undefined ? 204 : 500).end();
    } catch {
      // The gateway was killed while it sent: nothing arrived.
    }
    this.#options.onLine();
  }

  /**
   * How this webhook fails; undefined if it does not. Each fails at most once, since the gateway retries five minutes
   * after a second failure.
   */
  #chooseFault(id: string): 'hang-up' | 'error' | undefined {
    const { chance, webhookFailureShare } = this.#options;
    const isFirst = !this.#seenIds.has(id);
    this.#seenIds.add(id);
    if (!isFirst || chance.next() >= webhookFailureShare) return undefined;
    return chance.pick(['hang-up', 'error']);
  }

  #recordArrival(request: IncomingMessage, body: string, accepted: boolean): void {
    try {
      this.#webhook?.verify(body, request.headers as Record<string, string>);
    } catch (error) {
      this.invalid.push((error as Error).message);
      return;
    }
    const { mac_addr, boot, sequence } = JSON.parse(body) as { mac_addr: string; boot: number; sequence: number };
    const webhookId = String(request.headers['webhook-id']);
    const mac = mac_addr.replaceAll(':', '');
    const bodyHash = createHash('sha256').update(body).digest('base64url').slice(0, 12);
    this.arrivals.push({ webhookId, mac, boot, sequence, bodyHash, accepted });
    if (accepted) this.#acceptedPings.add(`${mac}/${boot}/${sequence}`);
  }
}
