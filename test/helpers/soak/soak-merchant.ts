/**
 * A merchant's server that receives millions of webhooks. For each ping it stores, in a few bytes, how often it arrived
 * and a hash of its webhook id and body, so that it detects a repeat with another id or body.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SEQUENCE_BEFORE_FIRST } from '../../bench/load/ping-template.js';
import { Webhook } from '../../clients/webhook-libraries.js';

/** Maximum number of pings of one lock. */
const MAX_PINGS_PER_LOCK = 16_384;
/** Maximum number of recorded mistakes. */
const MAX_MISTAKES = 20;

interface LockPings {
  /** How often each ping arrived, by its index; at most 255. */
  readonly counts: Uint8Array;
  /** The hash of each ping's first webhook. */
  readonly hashes: Uint32Array;
}

/** The server, and its counts. */
export class SoakMerchant {
  /** Webhooks with an invalid signature, or repeats that differ, as sentences. */
  readonly mistakes: string[] = [];
  /** The number of received webhooks with a valid signature. */
  arrivals = 0;
  /** The number of pings that were received at least once. */
  pings = 0;
  readonly #pingsByMac = new Map<string, LockPings>();
  readonly #server: Server;
  #webhook: Webhook | undefined;
  /** Called after each received webhook. */
  onArrival: () => void = () => undefined;

  private constructor() {
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => this.#receive(request, response));
  }

  static async start(): Promise<SoakMerchant> {
    const merchant = new SoakMerchant();
    await new Promise<void>((resolve) => merchant.#server.listen(0, '127.0.0.1', resolve));
    return merchant;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/locks`;
  }

  /** Sets the signing secret of the webhooks. */
  verifyWith(secret: string): void {
    this.#webhook = new Webhook(secret);
  }

  /**
   * Compares with the sequence of the lock's last acknowledged ping. Returns the number of pings up to it that were not
   * received, and the number of received pings that the lock never sent.
   */
  compare(mac: string, lastAcked: number): { readonly missing: number; readonly neverSent: number } {
    const pings = this.#pingsByMac.get(mac);
    let [missing, neverSent] = [0, 0];
    for (let index = 0; index < MAX_PINGS_PER_LOCK; index += 1) {
      const isSent = index < lastAcked - SEQUENCE_BEFORE_FIRST;
      const count = pings?.counts[index] ?? 0;
      if (isSent && count === 0) missing += 1;
      if (!isSent && count > 0) neverSent += 1;
    }
    return { missing, neverSent };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.#countWebhook(request, Buffer.concat(chunks).toString('utf8'));
      response.writeHead(204).end();
      this.onArrival();
    });
  }

  #countWebhook(request: IncomingMessage, body: string): void {
    try {
      this.#webhook?.verify(body, request.headers as Record<string, string>);
    } catch (error) {
      this.#addMistake((error as Error).message);
      return;
    }
    this.arrivals += 1;
    const { mac_addr, sequence } = JSON.parse(body) as { mac_addr: string; sequence: number };
    const index = sequence - SEQUENCE_BEFORE_FIRST - 1;
    if (index < 0 || index >= MAX_PINGS_PER_LOCK) {
      this.#addMistake(`a ping with sequence ${sequence}`);
      return;
    }
    const { counts, hashes } = this.#pingsOf(mac_addr.replaceAll(':', ''));
    const id = String(request.headers['webhook-id']);
    const hash = createHash('sha256').update(id).update(body).digest().readUInt32LE(0);
    if (counts[index] === 0) {
      this.pings += 1;
      hashes[index] = hash;
    } else if (hashes[index] !== hash) this.#addMistake(`${mac_addr} ${sequence} came again as another event: ${id}`);
    counts[index] = Math.min((counts[index] ?? 0) + 1, 255);
  }

  #pingsOf(mac: string): LockPings {
    let pings = this.#pingsByMac.get(mac);
    if (pings === undefined) {
      pings = { counts: new Uint8Array(MAX_PINGS_PER_LOCK), hashes: new Uint32Array(MAX_PINGS_PER_LOCK) };
      this.#pingsByMac.set(mac, pings);
    }
    return pings;
  }

  #addMistake(what: string): void {
    if (this.mistakes.length < MAX_MISTAKES) this.mistakes.push(what);
  }
}
