/**
 * Opens the connections of webhooks. The address rule is applied when a socket is opened, for two reasons: a name's
 * addresses can change between an earlier check and the connection, and Node calls no lookup hook for IP literals. (The
 * class `URL` has already turned other spellings such as `0x7f.1` into IP literals.) A reused idle connection needs no
 * check: it still leads to its checked address.
 */
import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction, connect as tcpConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type AddressRange, isAllowedAddress } from './address-rule.js';
import { type ConnectionOwner, ReceiverConnection } from './http/receiver-connection.js';
import { Exchange, type ExchangeCallbacks, ReceiverPool } from './http/receiver-pool.js';
import { type PostRequest, postRequestBytes } from './http/request-text.js';
import { type LookupAll, NameService } from './name-service.js';

/** Maximum number of receivers without a connection whose TLS session is kept, so that the next one opens faster. */
const MAX_EMPTY_POOLS = 100;
/** After this time without data, the system finds out whether the other side is still there. */
const KEEP_ALIVE_DELAY: Milliseconds = Seconds(1);
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** The code of the error for an address that the rule forbids. */
export const ADDRESS_REFUSED_CODE = 'address-refused';

/** The error for a forbidden address. It has no details: it must not reveal whether something listens there. */
function addressRefused(): LockgateError {
  return new LockgateError(ADDRESS_REFUSED_CODE, 'the address is not allowed');
}

/** Where a connection leads. */
interface Target {
  readonly isSecure: boolean;
  /** A name or an IP address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** PEM: the certificate authorities to trust instead of the usual ones. */
  readonly ca: string | undefined;
}

/** Connections to allowed addresses only. Tests replace `lookUpAll`, the system's name look-up. */
export class GuardedConnections {
  /** The name service that all connections use. */
  readonly names: NameService;
  readonly #allowed: readonly AddressRange[];
  readonly #checkedLookup: LookupFunction;
  /** By authorities, then by scheme, host and port: no connection serves a request that trusts other authorities. */
  readonly #pools = new Map<string | undefined, Map<string, ReceiverPool>>();
  /** How to forget each pool that has no connection, the longest empty one first. */
  readonly #empty = new Map<ReceiverPool, () => void>();

  constructor(allowed: readonly AddressRange[], lookUpAll: LookupAll = systemLookup as LookupAll) {
    this.names = new NameService(lookUpAll);
    this.#allowed = allowed;
    this.#checkedLookup = checkedLookup(allowed, this.names.lookUp);
  }

  /**
   * Posts a request.
   *
   * @param ca PEM: the certificate authorities to trust instead of the usual ones
   * @throws Error if a header is not valid in HTTP
   */
  post(request: PostRequest, ca: string | undefined, callbacks: ExchangeCallbacks): Exchange {
    return new Exchange(this.#poolFor(request.url, ca), postRequestBytes(request), callbacks);
  }

  /** Closes all idle connections. */
  closeIdle(): void {
    for (const pools of this.#pools.values()) for (const pool of pools.values()) pool.closeIdle();
  }

  #poolFor({ origin, protocol, hostname, port }: URL, ca: string | undefined): ReceiverPool {
    const isSecure = protocol === 'https:';
    const trusted = isSecure ? ca : undefined;
    const known = this.#pools.get(trusted)?.get(origin);
    if (known !== undefined) {
      this.#empty.delete(known);
      return known;
    }
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    // As in Node's client, port 0 stands for the usual one.
    const target = { isSecure, host, port: Number(port) || (DEFAULT_PORTS[protocol] ?? 0), ca: trusted };
    const pool = this.#makePool(target, () => this.#forget(origin, trusted, pool));
    const pools = this.#pools.get(trusted) ?? new Map<string, ReceiverPool>();
    this.#pools.set(trusted, pools.set(origin, pool));
    return pool;
  }

  #makePool(target: Target, forget: () => void): ReceiverPool {
    let session: Buffer | undefined;
    const open = (owner: ConnectionOwner): ReceiverConnection => {
      if (isIP(target.host) !== 0 && !isAllowedAddress(target.host, this.#allowed)) throw addressRefused();
      const socket = this.#openSocket(target, session);
      socket.on('session', (latest: Buffer) => {
        session = latest;
      });
      // The TLS session that was resumed may be the cause: the next connection starts without one.
      socket.on('error', () => {
        session = undefined;
      });
      return new ReceiverConnection(socket, target.isSecure ? 'secureConnect' : 'connect', owner);
    };
    const pool: ReceiverPool = new ReceiverPool(open, () => this.#becameEmpty(pool, forget));
    return pool;
  }

  #openSocket({ isSecure, host, port, ca }: Target, session: Buffer | undefined) {
    const options = { host, port, lookup: this.#checkedLookup };
    const socket = isSecure
      ? tlsConnect({
          ...options,
          servername: isIP(host) === 0 ? host : '',
          ALPNProtocols: ['http/1.1'],
          ...(ca === undefined ? {} : { ca }),
          ...(session === undefined ? {} : { session }),
        })
      : tcpConnect(options);
    return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_DELAY);
  }

  #becameEmpty(pool: ReceiverPool, forget: () => void): void {
    this.#empty.delete(pool);
    this.#empty.set(pool, forget);
    const [oldest] = this.#empty;
    if (this.#empty.size <= MAX_EMPTY_POOLS || oldest === undefined) return;
    this.#empty.delete(oldest[0]);
    oldest[1]();
  }

  #forget(origin: string, ca: string | undefined, pool: ReceiverPool): void {
    const pools = this.#pools.get(ca);
    if (pools?.get(origin) === pool) pools.delete(origin);
    if (pools?.size === 0) this.#pools.delete(ca);
  }
}

/** A lookup that resolves a name once per socket and returns exactly the addresses that it has checked. */
function checkedLookup(allowed: readonly AddressRange[], lookUpAll: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookUpAll(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowedAddresses = addresses.filter(({ address }) => isAllowedAddress(address, allowed));
      const [first] = allowedAddresses;
      // Every address must be allowed: a name with one internal address is refused.
      if (first === undefined || allowedAddresses.length < addresses.length) return callback(addressRefused(), '', 0);
      if (options.all) callback(null, allowedAddresses);
      else callback(null, first.address, first.family);
    });
  };
}
