/**
 * The HTTP agents that open the sockets of webhooks, with the address rule applied where a socket is opened: a lookup
 * hook isn't called for IP literals (nor for `0x7f.1`), and what a name resolves to can change between a check and a
 * connection. An idle socket was checked when it was opened, and still leads to the same address.
 */
import { lookup as systemLookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { LockgateError } from '../../../proto/errors.js';
import { type AddressRange, isAllowedAddress } from './address-rule.js';
import { type LookupAll, NameService } from './name-service.js';

/** The most idle sockets to each receiver. */
export const IDLE_SOCKETS = 16;

export interface GuardedAgents {
  readonly http: http.Agent;
  readonly https: https.Agent;
  /** Looks names up for both. */
  readonly names: NameService;
}

/** The code of the error for an address that the rule forbids. */
export const ADDRESS_REFUSED_CODE = 'address-refused';

/** An error without details: it must not reveal whether something listens on an internal address. */
function refused(): LockgateError {
  return new LockgateError(ADDRESS_REFUSED_CODE, 'the address is not allowed');
}

/** Resolves a name once for each socket, and returns exactly the addresses that were checked. */
function guardedLookup(allowed: readonly AddressRange[], lookUp: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const good = addresses.filter(({ address }) => isAllowedAddress(address, allowed));
      const [first] = good;
      // All must be allowed: a name with an internal address among others is refused.
      if (first === undefined || good.length < addresses.length) return callback(refused(), '', 0);
      if (options.all) callback(null, good);
      else callback(null, first.address, first.family);
    });
  };
}

/** Agents that connect to allowed addresses only. `lookUp` is the system's, except in tests. */
export function makeGuardedAgents(
  allowed: readonly AddressRange[],
  lookUp: LookupAll = systemLookup as LookupAll,
): GuardedAgents {
  const names = new NameService(lookUp);
  const options = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS, lookup: guardedLookup(allowed, names.lookUp) };
  const agents = { http: new http.Agent(options), https: new https.Agent(options), names };
  guard(agents.http, allowed);
  guard(agents.https, allowed);
  return agents;
}

/** A literal address is never looked up, so it is checked here. */
function guard(agent: http.Agent, allowed: readonly AddressRange[]): void {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = (options as { host?: string }).host ?? '';
    if (isIP(host) === 0 || isAllowedAddress(host, allowed)) return connect(options, callback);
    callback?.(refused(), undefined as never);
    return undefined;
  };
}
