/**
 * Makes routes for the merchant's own data (interfaces.md §2): each is called with an API key that has a scope, and
 * each has the same answers to a caller without a key, without the scope or over budget.
 */
import { Type } from 'typebox';
import { parseMac } from '../../../../proto/wire/mac.js';
import type { DeviceReading } from '../../../store/contract/devices/device.js';
import type { KeyScope } from '../../../store/contract/merchants/key-scopes.js';
import { inputRefusal, Refusal } from '../refusal.js';
import {
  type Call,
  lacksScopeResponse,
  type MerchantRoute,
  problemResponse,
  type ResponseTerms,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
} from '../route.js';

/** A route, without what all of them have in common. */
export type OwnDataTerms = Omit<MerchantRoute, 'scheme' | 'keyScope'> & { readonly keyScope: KeyScope };

/** The parameter of a path that names a lock. */
export const MacParam = Type.String({ description: 'The lock’s MAC, in any common spelling.' });

export const NO_SUCH_LOCK: ResponseTerms = problemResponse('The merchant has no such lock.');

/** The answers that every route of own data has; docs/http.md describes them once. */
export function commonResponses(scope: KeyScope): Readonly<Record<number, ResponseTerms>> {
  return { 401: UNAUTHORIZED, 403: lacksScopeResponse(scope), 429: tooMany(), 503: UNAVAILABLE };
}

/** Makes a route: adds an API key as the scheme, the scope to the description, and the common answers. */
export function ownDataRoute(terms: OwnDataTerms): MerchantRoute {
  const { keyScope, description, responses } = terms;
  const scopeSentence = `Needs the scope \`${keyScope}\`.`;
  return {
    ...terms,
    scheme: 'api-key',
    description: description === undefined ? scopeSentence : `${description} ${scopeSentence}`,
    responses: { ...responses, ...commonResponses(keyScope) },
  };
}

/**
 * Returns the caller's lock that the path names. Another merchant's lock, an unknown lock and a malformed MAC get the
 * same answer.
 *
 * @throws Refusal 404 `no-such-device`
 */
export async function findOwnLock({ parts, merchantId, params }: Call): Promise<DeviceReading> {
  const mac = parseMac(params.mac ?? '');
  const reading = mac.ok ? await parts.store.findDevice(mac.value) : null;
  if (reading?.device.merchantId === merchantId) return reading;
  throw new Refusal({ status: 404, code: 'no-such-device', detail: 'there is no such lock' });
}

/**
 * Returns the caller's lock that the parameter `mac_addr` names; undefined without the parameter.
 *
 * @throws Refusal 404 `no-such-device`, 400 `input-query` for a malformed MAC
 */
export async function findQueriedLock(call: Call): Promise<DeviceReading | undefined> {
  const { mac_addr: mac } = call.query as { readonly mac_addr?: string };
  if (mac === undefined) return undefined;
  if (!parseMac(mac).ok)
    throw inputRefusal('query', [{ pointer: '/mac_addr', detail: 'expected a MAC such as A4:C1:38:F0:E1:D2' }]);
  return await findOwnLock({ ...call, params: { mac } });
}
