/**
 * The agents that make the sockets of webhooks. The address rule is applied where a socket is made: a lookup hook isn't
 * called for IP literals (`0x7f.1` too), and what a name resolves to can change between a check and a connection. A
 * kept-alive socket was checked when it was made and leads where it led.
 */
import { lookup as systemLookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { LockgateError } from '../../../proto/errors.js';
import { type AddressRange, isAllowedAddress } from './address-rule.js';
import { type LookupAll, NameService } from './name-service.js';

/** Idle sockets kept to each receiver, at the most. */
export const IDLE_SOCKETS = 16;

export interface GuardedAgents {
  readonly http: http.Agent;
  readonly https: https.Agent;
  /** Where they look names up. */
  readonly names: NameService;
}

/** An error that says no more than that: a URL must not turn out whether something listens inside. */
function refused(): LockgateError {
  return new LockgateError('address-refused', 'the address is not allowed');
}

/** Resolves a name once for each socket, and hands on what the rule was asked about and nothing else. */
function guardedLookup(allowed: readonly AddressRange[], lookUp: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const good = addresses.filter(({ address }) => isAllowedAddress(address, allowed));
      const [first] = good;
      // All of them must be allowed: a name with one foot inside is not a merchant's.
      if (first === undefined || good.length < addresses.length) return callback(refused(), '', 0);
      if (options.all) callback(null, good);
      else callback(null, first.address, first.family);
    });
  };
}

/** Agents that connect to allowed addresses only. `lookUp` is the system's, but in tests. */
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

/** A literal address never meets the lookup, so it is judged here. */
function guard(agent: http.Agent, allowed: readonly AddressRange[]): void {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = (options as { host?: string }).host ?? '';
    if (isIP(host) === 0 || isAllowedAddress(host, allowed)) return connect(options, callback);
    callback?.(refused(), undefined as never);
    return undefined;
  };
}
