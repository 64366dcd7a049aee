/**
 * Makes the HTTP agents that open the sockets of webhooks. They apply the address rule when they open a socket, for two
 * reasons: a name's addresses can change between an earlier check and the connection, and Node calls no lookup hook for
 * IP literals (nor for `0x7f.1`). A reused idle socket needs no check: it still leads to its checked address.
 */
import { lookup as systemLookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { LockgateError } from '../../../proto/errors.js';
import { type AddressRange, isAllowedAddress } from './address-rule.js';
import { type LookupAll, NameService } from './name-service.js';

/** Maximum number of idle sockets to each receiver. */
export const MAX_IDLE_SOCKETS = 16;

export interface GuardedAgents {
  readonly http: http.Agent;
  readonly https: https.Agent;
  /** The name service that both agents use. */
  readonly names: NameService;
}

/** The code of the error for an address that the rule forbids. */
export const ADDRESS_REFUSED_CODE = 'address-refused';

/** The error for a forbidden address. It has no details: it must not reveal whether something listens there. */
function addressRefused(): LockgateError {
  return new LockgateError(ADDRESS_REFUSED_CODE, 'the address is not allowed');
}

/** A lookup that resolves a name once per socket and returns exactly the addresses that it has checked. */
function guardedLookup(allowed: readonly AddressRange[], lookUp: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, addresses) => {
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

/** Agents that connect only to allowed addresses. Tests replace `lookUp`, the system's name look-up. */
export function makeGuardedAgents(
  allowed: readonly AddressRange[],
  lookUp: LookupAll = systemLookup as LookupAll,
): GuardedAgents {
  const names = new NameService(lookUp);
  const options = { keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS, lookup: guardedLookup(allowed, names.lookUp) };
  const agents = { http: new http.Agent(options), https: new https.Agent(options), names };
  guardLiteralAddresses(agents.http, allowed);
  guardLiteralAddresses(agents.https, allowed);
  return agents;
}

/** Checks literal addresses, which Node never looks up. */
function guardLiteralAddresses(agent: http.Agent, allowed: readonly AddressRange[]): void {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = (options as { host?: string }).host ?? '';
    if (isIP(host) === 0 || isAllowedAddress(host, allowed)) return connect(options, callback);
    callback?.(addressRefused(), undefined as never);
    return undefined;
  };
}
