/**
 * The pet routes of the merchants' interface, which has a pet registry beside the locks: creation, update, null members
 * and int64 (specification; interfaces.md §2). The specification wants 405 for a wrong body of `PUT /v2/pet`, and 400
 * for a wrong id.
 */
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { accessToken, apiKey, callMerchantApi, type MerchantAnswer } from '../../helpers/http/merchant-call.js';

interface PetSetup {
  readonly gateway: Gateway;
  readonly key: string;
  readonly token: string;
}

async function setUpGateway(test: Parameters<typeof testGateway>[0]): Promise<PetSetup> {
  const gateway = await testGateway(test);
  const key = await apiKey(gateway, MERCHANT);
  return { gateway, key, token: await accessToken(gateway, key) };
}

/** The header of an error, which is a problem document (RFC 9457). */
const PROBLEM = { 'content-type': /^application\/problem\+json/ };

t.test('a pet is created, and updated under its assigned id', async (t) => {
  const { gateway, key, token } = await setUpGateway(t);
  const pet = { name: 'Rex', owner_id: '42', species: 'dog', breed: 'Beagle' };
  const created = await callMerchantApi(gateway, '/v1/pet', { key, body: pet });
  t.match(created, { status: 201, headers: { 'content-type': /^application\/json/ } });
  t.same(created.body, { id: 1, ...pet, photoUrls: [] });
  const change = { id: 1, name: 'Max', photoUrls: ['a', ''], status: 'sold', category: { id: 7, name: 'c' } };
  const tags = [{ id: 1, name: 'x' }, {}];
  const changed = await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { ...change, tags } });
  t.equal(changed.status, 200);
  t.same(changed.body, { ...pet, ...change, tags });
  const updated = await callMerchantApi(gateway, '/v2/pet', {
    method: 'PUT',
    token,
    body: { id: 1, name: 'Max', photoUrls: [] },
  });
  t.same(
    updated.body,
    { ...pet, id: 1, name: 'Max', photoUrls: [] },
    'an update removes the members that it leaves out',
  );
  // A list in a pet has at most 1,000 items.
  const list = <T>(item: T, length: number): T[] => Array.from({ length }, () => item);
  const put = (body: object) =>
    callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { ...change, ...body } });
  t.match(await put({ photoUrls: list('a', 1000), tags: list({ id: 1 }, 1000) }), { status: 200 });
  t.match(await put({ photoUrls: list('a', 1001) }), { status: 405, body: { errors: [{ pointer: '/photoUrls' }] } });
  t.match(await put({ tags: list({ id: 1 }, 1001) }), { status: 405, body: { errors: [{ pointer: '/tags' }] } });
  t.match((await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'a', more: { x: 1 } } })).body, {
    id: 2,
    name: 'a',
  });
});

t.test('null is the same as absent for an optional member', async (t) => {
  const { gateway, key, token } = await setUpGateway(t);
  const nothing = { owner_id: null, species: null, breed: null, owner: null };
  const created = await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex', ...nothing } });
  t.same(created.body, { id: 1, name: 'Rex', photoUrls: [] });
  const owned = await callMerchantApi(gateway, '/v1/pet', {
    key,
    body: { name: 'Max', owner: { id: 'u', name: null } },
  });
  t.same(owned.body, { id: 2, name: 'Max', owner_id: 'u', photoUrls: [] });
  const put = (body: object) =>
    callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { id: 1, name: 'Rex', photoUrls: [], ...body } });
  const changed = await put({ status: null, category: null, tags: null });
  t.same(changed.body, { id: 1, name: 'Rex', photoUrls: [] });
  const inside = await put({ category: { id: null, name: 'c' }, tags: [{ id: 7, name: null }] });
  t.match(inside, { status: 200, body: { category: { name: 'c' }, tags: [{ id: 7 }] } });
  t.match(
    await callMerchantApi(gateway, '/v1/pet', { key, body: { name: null } }),
    { status: 400 },
    'but not for a required member',
  );
  t.match(await put({ photoUrls: null }), { status: 405, body: { errors: [{ pointer: '/photoUrls' }] } });
  t.match(await put({ tags: [null] }), { status: 405, body: { errors: [{ pointer: '/tags/0' }] } });
  t.match(await put({ id: null }), { status: 400, body: { detail: 'Invalid ID supplied' } });
});

t.test('an int64 is exact from the body to the answer', async (t) => {
  const { gateway, key, token } = await setUpGateway(t);
  await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } });
  const put = (id: string, category: string): Promise<MerchantAnswer> =>
    callMerchantApi(gateway, '/v2/pet', {
      method: 'PUT',
      token,
      body: `{"id":${id},"name":"Rex","photoUrls":[],"category":{"id":${category}}}`,
    });
  const exact = ['9223372036854775807', '-9223372036854775808', '9007199254740993', '-9007199254740993', '0', '-1'];
  for (const digits of exact) {
    const { status, text } = await put('1', digits);
    t.equal(status, 200, digits);
    t.ok(text.includes(`"category":{"id":${digits}}`), text);
  }
  /** Other spellings of whole numbers, and their digits. */
  const spellings = {
    '1e3': '1000',
    '1.0': '1',
    '1E+2': '100',
    '-0': '0',
    '0e9': '0',
    '10e-1': '1',
    '9007199254740993.0': '9007199254740993',
  };
  const more = { '9.223372036854775807e18': '9223372036854775807', '123456789012345678e1': '1234567890123456780' };
  for (const [typed, digits] of Object.entries({ ...spellings, ...more })) {
    const { status, text } = await put('1', typed);
    t.equal(status, 200, typed);
    t.ok(text.includes(`"category":{"id":${digits}}`), text);
  }
  const invalidIds = ['9223372036854775808', '-9223372036854775809', '1e19', '1e400', '1.5', '"1"', 'true', '[]'];
  for (const digits of [
    ...invalidIds,
    '9007199254740993.5',
    '1e-1',
    '1e-400',
    '0.99999999999999999',
    '18446744073709551616',
  ]) {
    const bad = await put('1', digits);
    t.match(bad, { status: 405, headers: { allow: 'PUT' }, body: { errors: [{ pointer: '/category/id' }] } }, digits);
    t.match(await put(digits, '1'), { status: 400, body: { detail: 'Invalid ID supplied' } }, digits);
  }
  for (const digits of ['0', '-1']) t.match(await put(digits, '1'), { status: 400 }, `${digits}: an id is positive`);
  for (const digits of ['2', '9223372036854775807', '9007199254740993'])
    t.match(await put(digits, '1'), { status: 404, headers: PROBLEM, body: { detail: 'Pet not found' } }, digits);
});
