/**
 * Commands to locks that merchants send: idempotency keys (a repeated call gets the first answer), parameters, wrong
 * bodies, and the list of commands (interfaces.md §2). The fixture of own-data/site.ts is a gateway with the merchants
 * Amber and Basil, each with a lock.
 */
import t from 'tap';
import { IdempotentCalls } from '../../../../gateway/commands/idempotent-calls.js';
import { callMerchantApi, type MerchantAnswer } from '../../../helpers/http/merchant-call.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';

/** A command in an answer, as far as these tests read it. */
interface CommandJson {
  readonly id: number;
  readonly state: string;
}

t.test('a repeated call with an idempotency key gets the first answer, and the lock one command', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const send = (body: unknown, idempotencyKey: string, merchant = amber): Promise<MerchantAnswer> =>
    callMerchantApi(gateway, `/v1/locks/${merchant.mac}/commands`, {
      key: merchant.key,
      body,
      headers: { 'idempotency-key': idempotencyKey },
    });
  const before = (await gateway.store.commands.list({ merchantId: amber.merchantId, limit: 99 })).length;
  const calls = await Promise.all(Array.from({ length: 5 }, () => send({ type: 'unlock' }, 'rental 1')));
  // A call that comes while the first one is still running is refused.
  const answered = calls.filter(({ status }) => status === 202);
  t.ok(answered.length >= 1);
  for (const { status, body } of calls)
    if (status !== 202) t.match({ status, body }, { status: 409, body: { code: 'idempotency-key-in-use' } });
  const repeat = await send({ type: 'unlock' }, 'rental 1');
  t.match(repeat, { status: 202, headers: { 'idempotency-replayed': 'true' } });
  t.equal(repeat.text, answered[0]?.text);
  t.equal((await gateway.store.commands.list({ merchantId: amber.merchantId, limit: 99 })).length, before + 1);

  await gateway.commands.cancel((repeat.body as CommandJson).id);
  t.equal((await send({ type: 'unlock' }, 'rental 1')).text, repeat.text, 'the first answer, whatever happened since');
  t.match(await send({ type: 'lock' }, 'rental 1'), { status: 422, body: { code: 'idempotency-key-reused' } });
  const callOfBasil = await send({ type: 'unlock' }, 'rental 1', basil);
  t.match(callOfBasil, { status: 202, body: { mac_addr: basil.mac } }, 'another merchant may use the same key');
  t.equal(callOfBasil.headers['idempotency-replayed'], undefined);
  for (const wrong of ['', 'x'.repeat(256)])
    t.match(await send({ type: 'unlock' }, wrong), { status: 400, body: { code: 'input-idempotency-key' } });
  t.match(await send({ type: 'no' }, 'rental 2'), { status: 400 });
  t.match(await send({ type: 'lock' }, 'rental 2'), { status: 202 }, 'a call that was refused leaves its key unused');
});

t.test('a call whose command could not be stored leaves its key unused', async (t) => {
  const calls = new IdempotentCalls({ findAnswer: async () => null });
  const call = { merchantId: 1, route: 'r', key: 'k', bodyDigest: Buffer.alloc(1), nowMs: 0 };
  await t.rejects(
    calls.once(call, async () => {
      throw new Error('the disk is full');
    }),
    { message: 'the disk is full' },
  );
  t.same(await calls.once(call, async () => 'done'), { answer: 'done', isRepeat: false });
});

t.test('answers show the parameters; a refusal points to the wrong member, and nothing is sent', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const path = `/v1/locks/${amber.mac}/commands`;
  const power = { type: 'set-power', parameters: { mode: 'HIGH', high_window: { from: '06:00', to: '22:00' } } };
  const sent = await callMerchantApi(gateway, path, { key: amber.key, body: { ...power, expires_in: 60 } });
  t.match(sent, { status: 202, body: { parameters: { mode: 'HIGH', high_window: { from: '06:00', to: '22:00' } } } });
  t.match(sent.body, { asked_by: /^API key [0-9a-f]{12} \(test\)$/, waits: { for: String }, state: 'queued' });
  const count = (await gateway.store.commands.list({ limit: 99 })).length;
  const wrong: readonly [body: unknown, pointer: string][] = [
    [{}, '/type'],
    [{ type: 'open' }, '/type'],
    [{ type: 'siren', parameters: { seconds: 0 } }, '/parameters/seconds'],
    [{ type: 'siren', parameters: { second: 9 } }, '/parameters/second'],
    [{ type: 'unlock', not_befor: '2026-11-21T00:00:00Z' }, '/not_befor'],
    [{ type: 'unlock', macs: [amber.mac] }, '/macs'],
    [{ type: 'unlock', asked_by: 'the operator' }, '/asked_by'],
    [{ type: 'unlock', expires_in: 0 }, '/expires_in'],
    [{ type: 'unlock', not_before: '2020-01-01T00:00:00Z' }, '/not_before'],
  ];
  for (const [body, pointer] of wrong)
    t.match(
      await callMerchantApi(gateway, path, { key: amber.key, body }),
      { status: 400, body: { errors: [{ pointer }] } },
      JSON.stringify(body),
    );
  const airplane = { type: 'set-power', parameters: { airplane: true } };
  const unconfirmed = await callMerchantApi(gateway, path, { key: amber.key, body: airplane });
  t.match(unconfirmed, { status: 409 }, 'a lock in airplane mode can’t be reached, so it must be confirmed');
  t.equal((await gateway.store.commands.list({ limit: 99 })).length, count);
  const confirmed = { ...airplane, confirm_airplane: true, not_before: null };
  t.match(await callMerchantApi(gateway, path, { key: amber.key, body: confirmed }), { status: 202 });
});

t.test('the list of commands has stable pages, by lock and by state', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  type Page = { readonly data: readonly CommandJson[]; readonly next_cursor: string | null };
  const list = async (query: string): Promise<Page> =>
    (await callMerchantApi(gateway, `/v1/commands?${query}`, { key: amber.key })).body as Page;
  // A page's cursor names the place of the next page. The fixture has two commands of Amber: an older one that is
  // queued, and a newer one that has expired.
  const first = await list('limit=1');
  t.equal(first.data[0]?.state, 'expired');
  await callMerchantApi(gateway, `/v1/locks/${amber.mac}/commands`, { key: amber.key, body: { type: 'lock' } });
  const second = await list(`limit=1&cursor=${first.next_cursor}`);
  t.match(second, { data: [{ id: amber.queuedCommand }], next_cursor: null }, 'a new command is on no later page');
  t.match(await list('state=expired'), { data: [{ id: amber.expiredCommand }], next_cursor: null });
  t.equal((await list(`mac_addr=${amber.mac}`)).data.length, 3, 'the two of the fixture and the new one');
  t.match(
    await callMerchantApi(gateway, `/v1/commands?state=queued&cursor=${first.next_cursor}`, { key: amber.key }),
    { status: 400, body: { errors: [{ pointer: '/cursor' }] } },
    'a cursor is valid for the same query only',
  );
});
