/**
 * The HTTP client of the gateway's operator interface (interfaces.md §4), which all commands that talk to a running
 * gateway use. It takes the gateway's address and token from flags, else from the environment, else from the data
 * folder, where `serve` writes them.
 */
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { userInfo } from 'node:os';
import path from 'node:path';
import type { AuditWho } from '../gateway/store/contract/operators/audit-store.js';
import { VERSION } from '../gateway/version.js';
import { LockgateError } from '../proto/errors.js';
import { clientTlsFailure } from '../proto/tls-failure.js';
import { printNote } from './terminal/output.js';
import { ProgressLine } from './terminal/progress-line.js';

/** The flags of every command that talks to a gateway. */
export interface ConnectionFlags {
  readonly gateway?: string;
  readonly token?: string;
  readonly data?: string;
}

const DEFAULT_GATEWAY = 'http://127.0.0.1:8081';
/** The maximum size of an answer of the gateway that is not a stream. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** The maximum length of a wrong URL's text in an error. */
const MAX_QUOTED_CHARACTERS = 120;

/**
 * An error answer of the gateway. `errors` lists the invalid members of the request, if the answer names them (RFC
 * 9457).
 */
export class GatewayRefusal extends LockgateError {
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[];

  constructor(code: string, detail: string, errors: GatewayRefusal['errors']) {
    super(code, detail);
    this.name = 'GatewayRefusal';
    this.errors = errors;
  }
}

/** Calls the operator interface. A `requestPath` is a URL path with its query, such as `/keys?merchant=Amber`. */
export class GatewayClient {
  readonly #base: string;
  readonly #token: string;

  /** @throws LockgateError `gateway-address` or `gateway-token` if the data folder's files can't be read */
  constructor(flags: ConnectionFlags) {
    // An empty variable counts as unset.
    const { LOCKGATE_GATEWAY, LOCKGATE_DATA } = process.env;
    const folder = flags.data ?? (LOCKGATE_DATA || './data');
    this.#base = flags.gateway ?? (LOCKGATE_GATEWAY || readAddress(folder)) ?? DEFAULT_GATEWAY;
    checkGateway(this.#base);
    this.#token = flags.token ?? tokenFromEnvironment() ?? readToken(folder);
    warnOfUnencryptedToken(new URL(this.#base));
  }

  /** @throws LockgateError `gateway-down`, `gateway-refused`, or the gateway's own code */
  async get<T>(requestPath: string, signal?: AbortSignal): Promise<T> {
    return await this.#json('GET', requestPath, undefined, signal);
  }

  /** @throws LockgateError as {@link get} */
  async post<T>(requestPath: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return await this.#json('POST', requestPath, body, signal);
  }

  /** @throws LockgateError as {@link get} */
  async patch<T>(requestPath: string, body: unknown): Promise<T> {
    return await this.#json('PATCH', requestPath, body);
  }

  /** @throws LockgateError as {@link get} */
  async delete<T>(requestPath: string): Promise<T> {
    return await this.#json('DELETE', requestPath);
  }

  /** The gateway's origin. */
  get origin(): string {
    return new URL(this.#base).origin;
  }

  /** The host name or IP address of the gateway's URL. */
  get host(): string {
    return new URL(this.#base).hostname;
  }

  /** The lines of a stream, until the gateway closes it or `signal` fires. */
  async *lines(requestPath: string, signal: AbortSignal): AsyncGenerator<string> {
    yield* await this.listen(requestPath, signal);
  }

  /**
   * As {@link lines}, but resolves when the gateway has started the stream.
   *
   * @throws LockgateError as {@link get}
   */
  async listen(requestPath: string, signal: AbortSignal): Promise<AsyncGenerator<string>> {
    return linesOf(await this.download(requestPath, signal));
  }

  /**
   * The gateway's answer as a stream, with its headers.
   *
   * @throws LockgateError as {@link get}
   */
  async download(requestPath: string, signal: AbortSignal): Promise<IncomingMessage> {
    const answer = await this.#send('GET', requestPath, undefined, signal);
    if (answer.statusCode !== 200) throw refusal(answer.statusCode ?? 0, await readAll(answer));
    return answer;
  }

  async #json<T>(method: string, requestPath: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const progress = new ProgressLine(() => `Waiting for the gateway at ${this.#base}`);
    const { answer, text } = await this.#sendAndRead(method, requestPath, body, signal).finally(() => progress.end());
    const status = answer.statusCode ?? 0;
    if (status < 200 || status > 299) throw refusal(status, text);
    return readAnswer<T>(text, this.origin);
  }

  async #sendAndRead(method: string, requestPath: string, body?: unknown, signal?: AbortSignal) {
    const answer = await this.#send(method, requestPath, body, signal);
    return { answer, text: await readAll(answer) };
  }

  async #send(method: string, requestPath: string, body?: unknown, signal?: AbortSignal): Promise<IncomingMessage> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const url = new URL(requestPath.replace(/^\//, ''), `${this.#base.replace(/\/$/, '')}/`);
    // node:https is loaded on demand: nearly all gateways are on loopback.
    const startRequest = url.protocol === 'https:' ? (await import('node:https')).request : httpRequest;
    const headers = {
      authorization: `Bearer ${this.#token}`,
      // The gateway's audit log shows these two.
      'user-agent': USER_AGENT,
      'x-lockgate-user': encodeURIComponent(systemUser() ?? ''),
      ...(payload !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(payload),
      }),
    };
    return await new Promise((resolve, reject) => {
      const request = startRequest(url, { method, headers, ...(signal && { signal }) }, resolve);
      request.on('error', (error: NodeJS.ErrnoException) => reject(signal?.aborted ? error : unreachable(url, error)));
      request.end(payload);
    });
  }
}

/** The program's user agent. */
export const USER_AGENT = `lockgate/${VERSION} (cli)`;

/** The name of the operating-system user who runs this process; null if the user has none. */
export function systemUser(): string | null {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER ?? null;
  }
}

/** The actor in a data folder's audit log for changes that this process makes without a gateway. */
export function localOwner(): AuditWho {
  return { actor: 'owner', address: null, agent: USER_AGENT, osUser: systemUser(), token: null };
}

/** @throws LockgateError `input-gateway` */
function checkGateway(base: string): void {
  if (URL.canParse(base) && /^https?:$/.test(new URL(base).protocol)) return;
  const given = JSON.stringify(base.slice(0, MAX_QUOTED_CHARACTERS));
  throw new LockgateError(
    'input-gateway',
    `${given} is not the URL of a gateway: expected http://host:port or https://…`,
  );
}

/** Warns if the token would go to another machine without TLS. */
function warnOfUnencryptedToken({ protocol, hostname, origin }: URL): void {
  if (protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return;
  printNote(`The operator’s token goes to ${origin} in clear text, where others can read it. Use https there.`);
}

/** Splits a streamed answer into lines. An unfinished last line is dropped. */
async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let unfinishedLine = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    const lines = (unfinishedLine + chunk).split('\n');
    unfinishedLine = lines.pop() ?? '';
    yield* lines;
  }
}

/** The file in which `serve` records the address of its operator's interface. */
export function addressFile(folder: string): string {
  return path.join(folder, 'operator-address');
}

/** The address that a gateway wrote into its data folder; undefined if there is none. */
function readAddress(folder: string): string | undefined {
  const file = addressFile(folder);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // No gateway was ever started on that folder.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new LockgateError(
      'gateway-address',
      `${file}, which has the gateway’s address, can't be read (${code}). Run this as the user who runs the ` +
        'gateway, or give --gateway and --token',
    );
  }
}

/**
 * The token of LOCKGATE_TOKEN, else of the file that LOCKGATE_TOKEN_FILE names, such as a mounted secret. An empty
 * variable counts as unset.
 *
 * @throws LockgateError `gateway-token` if the file can't be read or is empty
 */
function tokenFromEnvironment(): string | undefined {
  const { LOCKGATE_TOKEN: token, LOCKGATE_TOKEN_FILE: file } = process.env;
  if (token) return token;
  if (!file) return undefined;
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LockgateError('gateway-token', `${file}, which LOCKGATE_TOKEN_FILE names, can't be read (${code})`);
  }
  if (text !== '' && !/\s/.test(text)) return text;
  throw new LockgateError('gateway-token', `${file}, which LOCKGATE_TOKEN_FILE names, has no token`);
}

function readToken(folder: string): string {
  const file = path.join(folder, 'operator-token');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new LockgateError(
      'gateway-token',
      `no operator token: ${file} can't be read. Start the gateway with "lockgate serve", or name its data folder ` +
        'with --data, or give --token or LOCKGATE_TOKEN_FILE',
    );
  }
}

async function readAll(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer) {
    size += (chunk as Buffer).length;
    if (size > MAX_ANSWER_BYTES) throw new LockgateError('gateway-answer', 'the gateway answered more than 64 MiB');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Parses an answer. @throws LockgateError `gateway-answer` if it is not JSON: another program may listen there */
function readAnswer<T>(text: string, origin: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    const reason = 'the answer is not JSON, so it is not the operator’s interface of lockgate';
    throw new LockgateError('gateway-answer', `no gateway at ${origin} (${reason}). Name another with --gateway`);
  }
}

/** The error for a request that got no answer. */
function unreachable(url: URL, error: NodeJS.ErrnoException): LockgateError {
  const why =
    error.code === 'ECONNREFUSED'
      ? 'nothing listens there'
      : (clientTlsFailure(error) ?? (error.message || String(error.code)));
  return new LockgateError(
    'gateway-down',
    `no gateway at ${url.origin} (${why}). Start one with "lockgate serve", or name another with --gateway`,
  );
}

/** The error for an answer with an error status. */
function refusal(status: number, text: string): LockgateError {
  try {
    const problem = JSON.parse(text) as { code: string; detail: string; errors?: GatewayRefusal['errors'] };
    const { code, detail, errors = [] } = problem;
    return new GatewayRefusal(status === 401 ? 'gateway-refused' : code, detail, errors);
  } catch {
    return new LockgateError('gateway-answer', `the gateway answered ${status}`);
  }
}
