/**
 * Fetches tiles from the tile server that the operator names. What it answers is a stranger's: only images of a limited
 * size count, in a limited time, and no other host is asked. The server's address is the operator's own setting, so it
 * may be private, unlike that of a webhook.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Got, OptionsInit } from 'got';
import { type Clock, Days, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { imageTypeOf } from './image-type.js';
import { type AgingTile, type TileSource, tileUnavailable } from './tile.js';
import { type TilePlace, tileAddress } from './tile-place.js';

/** A tile of an aerial photograph has some 100 KB. */
export const MAX_TILE_BYTES = 1024 * 1024;
/** The time limit of a tile, from the name look-up to the last byte. Until then it holds a connection of a browser. */
export const TILE_TIMEOUT: Milliseconds = Seconds(8);
/** How long a tile is kept whose server does not say. */
export const DEFAULT_TILE_AGE: Milliseconds = Days(1);
/** The bounds of what a server may say: streets change rarely, but a wrong tile must go some time. */
export const MIN_TILE_AGE: Milliseconds = Minutes(5);
export const MAX_TILE_AGE: Milliseconds = Days(7);
/** Redirects within the tile server. */
const MAX_REDIRECTS = 3;
/** Answers by which tile servers say that the map has nothing at a place. */
const NOTHING_THERE: ReadonlySet<number> = new Set([204, 404, 410]);

/** What {@link TileServer} needs. */
export interface TileServerOptions {
  /** The address of a tile, as the setting has it. */
  readonly url: string;
  readonly userAgent: string;
  /** Measures the time limit. */
  readonly clock: Clock;
}

export class TileServer implements TileSource {
  readonly #options: TileServerOptions;
  readonly #agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  readonly #origin: string;
  /** Loaded with the first tile: most gateways fetch none. */
  #got: Promise<Got> | undefined;

  constructor(options: TileServerOptions) {
    this.#options = options;
    this.#origin = new URL(options.url).origin;
  }

  async get(place: TilePlace, signal: AbortSignal): Promise<AgingTile> {
    this.#got ??= import('got').then(({ got }) => got);
    const got = await this.#got;
    const limit = new AbortController();
    const timer = this.#options.clock.after(TILE_TIMEOUT, () => limit.abort());
    try {
      return await this.#read(got, tileAddress(this.#options.url, place), AbortSignal.any([signal, limit.signal]));
    } catch (error) {
      if (error instanceof LockgateError) throw error;
      if (limit.signal.aborted) throw tileUnavailable(`the tile server did not answer within ${TILE_TIMEOUT / 1000} s`);
      const { code } = error as NodeJS.ErrnoException;
      throw tileUnavailable(`the tile server can’t be reached${code === undefined ? '' : ` (${code})`}`);
    } finally {
      timer.cancel();
    }
  }

  async close(): Promise<void> {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  async #read(got: Got, address: string, signal: AbortSignal): Promise<AgingTile> {
    const stream = got.stream(address, this.#requestOptions(signal));
    // Without a listener, an error after the last chunk was read would be thrown at the process.
    stream.on('error', () => undefined);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of stream) {
      const bytes = chunk as Buffer;
      size += bytes.length;
      // Leaving the loop destroys the stream.
      if (size > MAX_TILE_BYTES)
        throw tileUnavailable(`the tile server sent more than ${MAX_TILE_BYTES / 1024} KiB for a tile`);
      chunks.push(bytes);
    }
    const { response } = stream;
    if (response === undefined) throw new Error('the stream has ended without an answer');
    const { statusCode, headers } = response;
    const maxAge = maxAgeOf(headers['cache-control']);
    if (NOTHING_THERE.has(statusCode)) return { tile: null, maxAge };
    if (statusCode >= 300 && statusCode < 400) throw tileUnavailable('the tile server redirects to another host');
    if (statusCode !== 200) throw tileUnavailable(`the tile server answered ${statusCode}`);
    const bytes = Buffer.concat(chunks);
    const type = imageTypeOf(bytes);
    // Both must hold: a page of HTML that begins like an image is none, and neither is an image that claims to be HTML.
    if (type === undefined || !/^image\//i.test(headers['content-type'] ?? ''))
      throw tileUnavailable('the tile server answered something other than an image');
    return { tile: { type, bytes }, maxAge };
  }

  #requestOptions(signal: AbortSignal): OptionsInit & { isStream: true } {
    return {
      isStream: true,
      signal,
      agent: this.#agents,
      headers: { 'user-agent': this.#options.userAgent, accept: 'image/*' },
      retry: { limit: 0 },
      throwHttpErrors: false,
      maxRedirects: MAX_REDIRECTS,
      followRedirect: ({ headers, url }) => this.#isOurs(headers.location, url),
    };
  }

  /** Whether a redirect stays on the tile server. */
  #isOurs(location: string | undefined, url: string): boolean {
    return location !== undefined && URL.canParse(location, url) && new URL(location, url).origin === this.#origin;
  }
}

/** How long an answer may be kept, within our bounds. */
function maxAgeOf(cacheControl: string | undefined): Milliseconds {
  if (cacheControl === undefined) return DEFAULT_TILE_AGE;
  if (/\bno-(?:store|cache)\b/i.test(cacheControl)) return MIN_TILE_AGE;
  const seconds = /\bmax-age=(\d{1,10})\b/i.exec(cacheControl)?.[1];
  if (seconds === undefined) return DEFAULT_TILE_AGE;
  return Math.min(MAX_TILE_AGE, Math.max(MIN_TILE_AGE, Seconds(Number(seconds))));
}
