/** Calls the merchants' interface as a client does, and returns the answer as text and as JSON. */
import { request as httpRequest } from 'node:http';
import type { Gateway } from '../../../gateway/gateway.js';

/** A call; without a method it is a GET, or a POST if it has a body. */
export interface MerchantCall {
  readonly method?: string;
  /** An API key, sent as HTTP basic authentication with an empty password. */
  readonly key?: string | undefined;
  /** An access token, sent as a bearer token. */
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts and bytes are sent unchanged, everything else as JSON. */
  readonly body?: unknown;
  /** Sends the body in chunks, without a Content-Length. */
  readonly isChunked?: boolean;
  /** The address to call from; Linux has all of 127.0.0.0/8. */
  readonly fromAddress?: string;
}

/** The gateway's answer. */
export interface MerchantAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed JSON; undefined where the text is not JSON. */
  readonly body: unknown;
}

/** The header of basic authentication. */
export function basicAuthorization(user: string, password = ''): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** Makes a call and waits for the answer. */
export function callMerchantApi(
  gateway: Pick<Gateway, 'httpPort'>,
  path: string,
  options: MerchantCall = {},
): Promise<MerchantAnswer> {
  const { key, token, body, isChunked = false, fromAddress } = options;
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = body === undefined ? undefined : isRaw ? body : JSON.stringify(body);
  const headers = {
    ...(key !== undefined && { authorization: basicAuthorization(key) }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(payload !== undefined && {
      'content-type': 'application/json',
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(Buffer.byteLength(payload)) }),
    }),
    ...options.headers,
  };
  const method = options.method ?? (payload === undefined ? 'GET' : 'POST');
  return new Promise((resolve, reject) => {
    // Without an agent each call has a connection of its own.
    const target = { host: '127.0.0.1', port: gateway.httpPort, path, agent: false as const };
    const request = httpRequest(
      { ...target, method, headers, ...(fromAddress && { localAddress: fromAddress }) },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, body: readJson(text) });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Creates an API key for a merchant. */
export async function apiKey(gateway: Gateway, merchant: string): Promise<string> {
  return (await gateway.merchants.apiKeys.create(merchant, 'test')).text;
}

/** Gets an access token for an API key. @param scope what the token may do; by default as much as the key */
export async function accessToken(gateway: Gateway, key: string, scope = ''): Promise<string> {
  const body = `grant_type=client_credentials${scope === '' ? '' : `&scope=${encodeURIComponent(scope)}`}`;
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const answer = await callMerchantApi(gateway, '/oauth/token', { key, body, headers });
  return (answer.body as { access_token: string }).access_token;
}
