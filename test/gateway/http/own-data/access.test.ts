/**
 * Who may call the operations on a merchant's own data (/v1/locks, /v1/events and so on): every operation by every
 * caller, with every scope, on own and on another merchant's locks (interfaces.md §2). OWN_DATA_CALLS has for each
 * operation a call, its status, and its status for other merchants; the fixture has two merchants, Amber and Basil.
 */
import t from 'tap';
import { OWN_DATA_ROUTES } from '../../../../gateway/http/merchant/own-data/routes.js';
import { ALL_KEY_SCOPES } from '../../../../gateway/store/contract/merchants/key-scopes.js';
import { callMerchantApi, type MerchantAnswer } from '../../../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../../../helpers/http/own-data/calls.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';

const PROBLEM = { 'content-type': /^application\/problem\+json/ };
const UNKNOWN_KEY = `lgk_000000000000_${'x'.repeat(43)}`;

/** An answer without the headers that differ in every answer. */
function comparable({ status, headers, text }: MerchantAnswer): unknown {
  const { 'x-request-id': _id, date: _date, ...others } = headers;
  return { status, others, text };
}

t.test('each operation answers its callers by key, scope and merchant', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const { apiKeys } = gateway.merchants;
  const rows = OWN_DATA_ROUTES.map(({ method, path }) => `${method} ${path}`);
  t.strictSame(Object.keys(OWN_DATA_CALLS).sort(), rows.sort(), 'the table has every operation');
  const oldKey = await apiKeys.create(amber.merchant, 'old');
  await apiKeys.revoke(oldKey.key.publicId);
  const scoped = new Map<string, string>();
  for (const scope of ALL_KEY_SCOPES)
    scoped.set(scope, (await apiKeys.create(amber.merchant, scope, { scopes: [scope] })).text);

  for (const { method, path, keyScope } of OWN_DATA_ROUTES)
    await t.test(`${method} ${path}`, async (t) => {
      const row = OWN_DATA_CALLS[`${method} ${path}`];
      if (row === undefined) return;
      const callOperation = (key: string | undefined, subject = amber) => {
        const [where, terms] = row.callFor(subject);
        return callMerchantApi(gateway, where, { method, ...terms, key });
      };
      for (const [name, key] of [
        ['none', undefined] as const,
        ['unknown', UNKNOWN_KEY],
        ['revoked', oldKey.text],
      ] as const)
        t.match(
          await callOperation(key),
          { status: 401, headers: { ...PROBLEM, 'www-authenticate': /^Basic / }, body: { code: 'unauthorized' } },
          `key: ${name}`,
        );
      for (const [scope, key] of scoped)
        t.match(
          await callOperation(key),
          scope === keyScope
            ? { status: row.status }
            : { status: 403, headers: PROBLEM, body: { code: 'insufficient-scope' } },
          `scope ${scope}`,
        );
      const others = await callOperation(basil.key);
      t.equal(others.status, row.statusForOthers, 'another merchant’s key');
      t.notMatch(others.text, amber.mac, 'which sees nothing of this lock');
      const unknown = await callOperation(basil.key, { ...amber, mac: 'A4:C1:38:00:00:63' });
      if (row.createsNew !== true)
        t.strictSame(comparable(others), comparable(unknown), 'the same answer as for a lock that does not exist');
      t.equal((await callOperation(basil.key, basil)).status, row.status, 'the other merchant’s own data');
    });
});

t.test('lists have no entries of another merchant, who can’t withdraw an invitation', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const idsIn = async (path: string, { key } = basil): Promise<readonly number[]> => {
    const { body } = await callMerchantApi(gateway, path, { key });
    return (body as { readonly data: readonly { readonly id: number }[] }).data.map(({ id }) => id);
  };
  t.strictSame(await idsIn('/v1/webhooks'), [basil.webhookId, basil.disabledWebhookId]);
  t.strictSame(await idsIn('/v1/invitations'), [basil.invitationId]);
  // In the test above the owner has withdrawn it before the other merchant tries.
  const withdrawal = { method: 'DELETE', key: basil.key };
  t.match(await callMerchantApi(gateway, `/v1/invitations/${amber.invitationId}`, withdrawal), { status: 404 });
  t.strictSame(await idsIn('/v1/invitations', amber), [amber.invitationId]);
});
