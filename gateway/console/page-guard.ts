/**
 * Checks requests with a session's cookie (README.md, A request of a page). A browser sends the cookie by itself, also
 * with requests that another site's page makes, so the guard lets through only requests that our own page made.
 *
 * - The Host must be one of ours. Otherwise an attacker's name that resolves to this machine (DNS rebinding) would
 *   count as the same origin as the attacker's page, which could then log in and read.
 * - A change needs our exact Origin and a header that only a script of our own page can set.
 * - Sessions exist over HTTPS, and over plain HTTP only on the loopback interface: on other networks, machines between
 *   browser and gateway could read the cookie.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { Refusal } from '../http/merchant/refusal.js';
import { plainAddress } from '../network/address-group.js';
import type { TrustedProxies } from '../network/trusted-proxies.js';

/** The header that our pages send with each call. */
export const PAGE_HEADER = 'x-lockgate-console';

/** The parts of a request that the guard reads. */
export interface PageRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };
}

export class PageGuard {
  readonly #hosts: readonly string[];
  readonly #proxies: TrustedProxies;

  /** @param hosts further names under which the pages are reached: those of proxies */
  constructor(hosts: readonly string[], proxies: TrustedProxies) {
    this.#hosts = hosts.map((host) => host.toLowerCase());
    this.#proxies = proxies;
  }

  isHttps(request: PageRequest): boolean {
    return this.#proxies.isHttps(request);
  }

  /**
   * Whether the request's headers say that our page made it. A refusal must then not have the header WWW-Authenticate,
   * which would open the browser's login dialog.
   */
  isFromPage({ headers }: PageRequest): boolean {
    return headers[PAGE_HEADER] !== undefined || headers['sec-fetch-site'] === 'same-origin';
  }

  /**
   * Checks that a session may be used for this request.
   *
   * @throws Refusal 403 `wrong-host`, `insecure`, `cross-site`
   */
  check(request: PageRequest): void {
    this.#checkHost(request);
    this.#checkConnection(request);
    const { method, headers } = request;
    // `none`: no page made the request, but the user, by typing the address or by a bookmark.
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw crossSite('it comes from another site');
    if (method !== 'GET' && method !== 'HEAD') this.#checkChange(request);
  }

  #checkHost({ headers, socket }: PageRequest): void {
    const name = hostName(headers.host);
    const isOurs =
      name === 'localhost' ||
      this.#hosts.includes(name) ||
      (isIP(name) !== 0 && plainAddress(name) === plainAddress(socket.localAddress ?? ''));
    if (isOurs) return;
    throw new Refusal({
      status: 403,
      code: 'wrong-host',
      detail: `this page has no host name ${JSON.stringify(name.slice(0, 80))}: --console-hosts adds names`,
    });
  }

  #checkConnection(request: PageRequest): void {
    const name = hostName(request.headers.host);
    const isLoopback = isLoopbackName(name) && isLoopbackName(this.#proxies.clientOf(request));
    if (this.isHttps(request) || isLoopback) return;
    throw new Refusal({
      status: 403,
      code: 'insecure',
      detail:
        'this page can be used over plain HTTP on this machine only: put a TLS proxy in front and name it with ' +
        '--trusted-proxies, or use an SSH tunnel',
    });
  }

  #checkChange(request: PageRequest): void {
    const { headers } = request;
    const scheme = this.isHttps(request) ? 'https' : 'http';
    if (headers.origin !== `${scheme}://${headers.host}`) throw crossSite('its Origin is not that of the page');
    if (headers[PAGE_HEADER] === undefined) throw crossSite(`it lacks the header ${PAGE_HEADER}`);
  }
}

function crossSite(why: string): Refusal {
  return new Refusal({ status: 403, code: 'cross-site', detail: `the request was not made by the page: ${why}` });
}

/** The name or address in a Host header, without the port, in lower case: `::1` of `[::1]:8080`; empty if malformed. */
function hostName(host: string | undefined): string {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host ?? '') ?? [];
  return (bracketed ?? plain).toLowerCase();
}

function isLoopbackName(name: string): boolean {
  if (name === 'localhost') return true;
  const address = plainAddress(name);
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}
