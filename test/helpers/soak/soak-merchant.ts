/**
 * A merchant that hears millions of webhooks and remembers each in eight bytes: how often it came, and a hash of its id
 * and body, so that a repeat under another id or with another body shows.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FIRST_SEQUENCE } from '../../bench/load/ping-template.js';
import { Webhook } from '../../clients/webhook-libraries.js';

/** Pings of one lock that there is room for. */
const MOST_PINGS = 16_384;
/** The first sentences of what was wrong are enough. */
const MOST_WRONGS = 20;

interface Page {
  readonly counts: Uint8Array;
  readonly hashes: Uint32Array;
}

export class SoakMerchant {
  /** What did not verify, or came in another shape than before. */
  readonly wrongs: string[] = [];
  /** Webhooks that came. */
  arrivals = 0;
  /** Pings that came at least once. */
  pings = 0;
  readonly #pages = new Map<string, Page>();
  readonly #server: Server;
  #webhook: Webhook | undefined;
  onArrival: () => void = () => undefined;

  private constructor() {
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => this.#take(request, response));
  }

  static async start(): Promise<SoakMerchant> {
    const merchant = new SoakMerchant();
    await new Promise<void>((resolve) => merchant.#server.listen(0, '127.0.0.1', resolve));
    return merchant;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/locks`;
  }

  /** Verifies with this signing secret. */
  trust(secret: string): void {
    this.#webhook = new Webhook(secret);
  }

  /** The pings of a lock up to `last` that never came, and how many came that it had not sent. */
  compare(mac: string, last: number): { readonly missing: number; readonly never_sent: number } {
    const page = this.#pages.get(mac);
    let [missing, neverSent] = [0, 0];
    for (let index = 0; index < MOST_PINGS; index += 1) {
      const isSent = index < last - FIRST_SEQUENCE;
      const count = page?.counts[index] ?? 0;
      if (isSent && count === 0) missing += 1;
      if (!isSent && count > 0) neverSent += 1;
    }
    return { missing, never_sent: neverSent };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const pieces: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      this.#note(request, Buffer.concat(pieces).toString('utf8'));
      response.writeHead(204).end();
      this.onArrival();
    });
  }

  #note(request: IncomingMessage, body: string): void {
    try {
      this.#webhook?.verify(body, request.headers as Record<string, string>);
    } catch (error) {
      this.#wrong((error as Error).message);
      return;
    }
    this.arrivals += 1;
    const { mac_addr, sequence } = JSON.parse(body) as { mac_addr: string; sequence: number };
    const index = sequence - FIRST_SEQUENCE - 1;
    if (index < 0 || index >= MOST_PINGS) {
      this.#wrong(`a ping with sequence ${sequence}`);
      return;
    }
    const { counts, hashes } = this.#page(mac_addr.replaceAll(':', ''));
    const id = String(request.headers['webhook-id']);
    const hash = createHash('sha256').update(id).update(body).digest().readUInt32LE(0);
    if (counts[index] === 0) {
      this.pings += 1;
      hashes[index] = hash;
    } else if (hashes[index] !== hash) this.#wrong(`${mac_addr} ${sequence} came again as another event: ${id}`);
    counts[index] = Math.min((counts[index] ?? 0) + 1, 255);
  }

  #page(mac: string): Page {
    let page = this.#pages.get(mac);
    if (page === undefined) {
      page = { counts: new Uint8Array(MOST_PINGS), hashes: new Uint32Array(MOST_PINGS) };
      this.#pages.set(mac, page);
    }
    return page;
  }

  #wrong(what: string): void {
    if (this.wrongs.length < MOST_WRONGS) this.wrongs.push(what);
  }
}
