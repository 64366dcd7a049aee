/**
 * Reads of merchants' data take turns on the event loop, so that several which arrive together delay a ping by one of
 * them, not by all (interfaces.md §2).
 */
import { request } from 'node:http';
import t from 'tap';
import { basicAuthorization, callMerchantApi } from '../../../helpers/http/merchant-call.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';

t.test('a read starts when its turn comes; a change and a login do not wait for one', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const { readTurns } = gateway.merchants.ownData;
  // Held up are only reads of merchants, which have a signal: the gateway’s own lists divide their work into turns too.
  const held: (() => void)[] = [];
  let asked: () => void = () => undefined;
  const hasAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const next = readTurns.next.bind(readTurns);
  readTurns.next = async (signal) => {
    if (signal !== undefined) {
      await new Promise<void>((resolve) => {
        held.push(resolve);
        asked();
      });
    }
    await next(signal);
  };
  let isAnswered = false;
  const read = callMerchantApi(gateway, `/v1/locks/${amber.mac}`, { key: amber.key }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await Promise.race([hasAsked, read]);
  const token = await callMerchantApi(gateway, '/oauth/token', {
    key: amber.key,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials',
  });
  t.equal(token.status, 200);
  const body = { name: 'Harbour 7' };
  const change = await callMerchantApi(gateway, `/v1/locks/${amber.mac}`, { key: amber.key, method: 'PATCH', body });
  t.equal(change.status, 200);
  t.notOk(isAnswered, 'the read waits');
  t.equal(held.length, 1, 'and it alone');
  held[0]?.();
  t.equal((await read).status, 200);
});

t.test('the signal of a read says that its client has hung up, not that it was answered', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const { readTurns } = gateway.merchants.ownData;
  const next = readTurns.next.bind(readTurns);
  const signals: AbortSignal[] = [];
  readTurns.next = async (signal) => {
    if (signal !== undefined) signals.push(signal);
    await next(signal);
  };
  const path = `/v1/locks/${amber.mac}`;
  t.equal((await callMerchantApi(gateway, path, { key: amber.key })).status, 200);
  // The second call is answered after the first one's response was closed.
  t.equal((await callMerchantApi(gateway, path, { key: amber.key })).status, 200);
  t.equal(signals[0]?.aborted, false);

  const read = request({
    port: gateway.httpPort,
    path,
    headers: { authorization: basicAuthorization(amber.key) },
  }).on('error', () => undefined);
  const aborted = new Promise<void>((resolve) => {
    readTurns.next = (signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          resolve();
          reject(signal.reason);
        });
        read.destroy();
      });
  });
  read.end();
  await aborted;
});
