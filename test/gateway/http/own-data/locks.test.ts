/**
 * A merchant's own locks over HTTP (interfaces.md §2): names and labels, the history page by page while pings arrive,
 * the track, findings (objections to a lock) and explanations, and a lock that moves to another merchant.
 */
import t, { type Test } from 'tap';
import type { ReadPing } from '../../../../gateway/http/merchant/own-data/history/ping-read.js';
import { Track } from '../../../../gateway/http/merchant/own-data/history/track.js';
import type { Device } from '../../../../gateway/store/contract/devices/device.js';
import { formatMac, parseMac } from '../../../../proto/wire/mac.js';
import { testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { callMerchantApi, type MerchantCall } from '../../../helpers/http/merchant-call.js';
import { type OwnDataSite, ownDataSite, SITE_NOW_MS } from '../../../helpers/http/own-data/site.js';
import { TestLock } from '../../../helpers/mqtt/test-lock.js';

/** A page of a list, as far as these tests read it. */
interface ListAnswer {
  readonly data: readonly { readonly event_id: string; readonly id: string; readonly mac_addr: string }[];
  readonly next_cursor: string | null;
}

/** A call with Amber's key. */
const callOwn = ({ gateway, amber }: OwnDataSite, routePath: string, terms: MerchantCall = {}) =>
  callMerchantApi(gateway, routePath, { key: amber.key, ...terms });

/** All pages of a list, as the header `Link` names them; `between` runs after each page. */
async function readAll(
  site: OwnDataSite,
  routePath: string,
  between = async () => {},
): Promise<ListAnswer['data'][number][]> {
  const found: ListAnswer['data'][number][] = [];
  for (let next: string | undefined = routePath; next !== undefined; ) {
    const { status, headers, body } = await callOwn(site, next);
    if (status !== 200) throw new Error(`${next}: ${status}`);
    const { data, next_cursor } = body as ListAnswer;
    found.push(...data);
    next = /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1];
    if ((next === undefined) !== (next_cursor === null)) throw new Error('Link and next_cursor differ');
    await between();
  }
  return found;
}

t.test('a lock’s name and labels can be set, searched and removed, and stay unchanged when left out', async (t) => {
  const site = await ownDataSite(t);
  const routePath = `/v1/locks/${site.amber.mac}`;
  const patch = (body: unknown) => callOwn(site, routePath, { method: 'PATCH', body });
  const labels = { city: 'Köln', row: 'x=y' };
  t.match(await patch({ name: ' Harbour 7 ', labels, mac_addr: 'x' }), {
    status: 200,
    body: { name: 'Harbour 7', labels },
  });
  t.match(await patch({ name: null }), { body: { name: 'Harbour 7', labels } }, 'null is the same as absent');
  for (const query of [
    'search=harbour',
    'search=K%C3%B6ln',
    'label=city',
    'label=city=K%C3%B6ln,row=x=y',
    'state=locked',
  ])
    t.equal((await readAll(site, `/v1/locks?${query}`)).length, 1, query);
  for (const query of ['search=basil', 'label=city=Berlin', 'presence=late', 'state=theft,unlocked'])
    t.equal((await readAll(site, `/v1/locks?${query}`)).length, 0, query);
  t.match(await patch({ labels: { city: 'Bonn' } }), { body: { name: 'Harbour 7', labels: { city: 'Bonn' } } });
  const shown = (await callOwn(site, routePath)).body as object;
  t.strictSame(shown, (await patch({})).body as object, 'the answer of a change is the lock as it is shown');
  t.match(await patch({ name: '', labels: {} }), { body: { name: null, labels: {} } });
  const pointers = async (body: unknown) => {
    const answer = (await patch(body)).body as { errors?: { pointer: string }[] };
    return answer.errors?.map(({ pointer }) => pointer);
  };
  t.strictSame(await pointers({ name: 'x'.repeat(61) }), ['/name']);
  // In a JSON Pointer `~1` stands for a slash.
  t.strictSame(await pointers({ name: 'a\u0000b', labels: { 'a/b ': 'c' } }), ['/name', '/labels/a~1b ']);
  t.strictSame(await pointers({ labels: { a: 7, b: null } }), ['/labels/a', '/labels/b']);
  t.strictSame(await pointers({ labels: ['a=b'] }), ['/labels']);
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v']));
  t.strictSame(await pointers({ labels: many }), ['/labels']);
});

t.test('a lock is shown with its state, the gateway’s belief, and its requested power settings (twin)', async (t) => {
  const site = await ownDataSite(t);
  const { body } = await callOwn(site, `/v1/locks/${site.amber.mac.replaceAll(':', '').toLowerCase()}`);
  t.match(body, {
    mac_addr: site.amber.mac,
    presence: 'asleep',
    power_state: 'MID',
    lock_state: 'locked',
    battery_percent: 80,
    firmware_version: '2.4.1',
    position: { latitude: 52.520108, longitude: 13.405954, uncertainty: 6, date: '2026-11-20T06:29:58.000Z' },
    last_reason: 'REASON_CLOSE_CONNECTION',
    received_at: '2026-11-20T06:30:00.000Z',
    sim: { state: 'active', activated_at: '2026-11-20T06:30:00.000Z' },
    believed: { connected: false, messages: 4, power: { mode: 'MID' } },
    twin: { wanted: {}, differs: [] },
  });
  await site.gateway.accounts.addDevice({ mac: testMac(7), merchant: 'Amber' });
  t.match(await callOwn(site, `/v1/locks/${testMac(7)}`), {
    body: { presence: 'never-seen', power_state: null, position: null, believed: null, sim: { state: 'inactive' } },
  });
  t.match(await callOwn(site, '/v1/locks/A4C1'), { status: 404, body: { code: 'no-such-device' } });
});

t.test('pings come once, newest first, while more arrive', async (t) => {
  const site = await ownDataSite(t);
  const mac = parseMac(site.amber.mac);
  if (!mac.ok) throw mac.error;
  const secret = await site.gateway.accounts.rotateLockSecret(mac.value);
  const lock = await TestLock.connect(t, site.gateway.mqttPort, mac.value, secret);
  // The lock of the fixture (own-data/site.ts) has sent four pings.
  let sequence = 4;
  const send = async () => {
    sequence += 1;
    await lock.send(testBytes(sequence, { timeMs: SITE_NOW_MS + sequence }));
  };
  for (let count = 0; count < 30; count += 1) await send();
  const routePath = `/v1/locks/${site.amber.mac}/pings`;
  const allAtOnce = await readAll(site, `${routePath}?limit=1000`);
  t.equal(allAtOnce.length, 34, 'the fixture’s four and the 30 new ones');
  const paged = await readAll(site, `${routePath}?limit=7`, send);
  t.strictSame(paged, allAtOnce, 'pings that arrive meanwhile change nothing');
  t.match(allAtOnce[0], {
    mac_addr: site.amber.mac,
    ping_type: 'cellular',
    sequence: 34,
    buffered: false,
    test: false,
  });
  // The fixture's four are a state ping, two period pings by GPS, at 6:29:57 and 6:29:58, and a close-connection ping.
  // The new ones are state pings, from 6:30:00 on.
  t.equal((await readAll(site, `${routePath}?ping_type=gps,close_connection&limit=2`)).length, 3);
  t.equal((await readAll(site, `${routePath}?reason=REASON_PERIOD_TRACKING`)).length, 2);
  t.equal((await readAll(site, `${routePath}?to=2026-11-20T06:30:00Z`)).length, 4);
  t.equal((await readAll(site, `${routePath}?from=2026-11-20T07:29:58%2B01:00&to=2026-11-20T06:29:59Z`)).length, 1);
  t.equal((await readAll(site, `${routePath}?from=2027-01-01T00:00:00Z`)).length, 0, 'none is that late');
  const { next_cursor } = (await callOwn(site, `${routePath}?limit=7`)).body as ListAnswer;
  const other = await callOwn(site, `${routePath}?limit=7&ping_type=gps&cursor=${next_cursor}`);
  t.match(other, { status: 400, body: { errors: [{ pointer: '/cursor' }] } }, 'a cursor of other filters');
  const reversedRange = '2026-11-20T06:00:00Z&to=2026-11-19T06:00:00Z';
  t.match(await callOwn(site, `${routePath}?from=${reversedRange}`), {
    status: 400,
    body: { errors: [{ pointer: '/to' }] },
  });
  t.match(await callOwn(site, `${routePath}?limit=1001`), { status: 400, body: { errors: [{ pointer: '/limit' }] } });
});

t.test('the track is a line with times, as GeoJSON and as GPX', async (t) => {
  const site = await ownDataSite(t);
  const routePath = `/v1/locks/${site.amber.mac}/track`;
  await callOwn(site, `/v1/locks/${site.amber.mac}`, { method: 'PATCH', body: { name: 'A <b> & "c"' } });
  const line = await callOwn(site, routePath);
  t.match(line.headers, { 'content-type': 'application/geo+json; charset=utf-8' });
  t.strictSame(line.body, {
    type: 'Feature',
    geometry: {
      type: 'LineString',
      coordinates: [
        [13.404954, 52.520008],
        [13.405954, 52.520108],
      ],
    },
    properties: {
      mac_addr: site.amber.mac,
      name: 'A <b> & "c"',
      coordTimes: ['2026-11-20T06:29:57.000Z', '2026-11-20T06:29:58.000Z'],
      uncertainties: [6, 6],
      speeds: [0, 0],
      directions: [0, 0],
      complete_from: null,
    },
  });
  const point = await callOwn(site, `${routePath}?to=2026-11-20T06:29:58Z`);
  t.match(point.body, { geometry: { type: 'Point', coordinates: [13.404954, 52.520008] } });
  t.match((await callOwn(site, `${routePath}?from=2027-01-01T00:00:00Z`)).body, { geometry: null });
  const gpx = await callOwn(site, `${routePath}?format=gpx`);
  t.match(gpx.headers, { 'content-type': 'application/gpx+xml; charset=utf-8' });
  t.match(gpx.text, /<name>A &lt;b&gt; &amp; &quot;c&quot;<\/name>/);
  t.equal([...gpx.text.matchAll(/<trkpt lat="52\.\d+" lon="13\.\d+"><time>[^<]+Z<\/time><\/trkpt>/g)].length, 2);
});

t.test('a GPX file has decimal numbers without an exponent, as its schema requires', async (t) => {
  const device = { mac: testMac(), name: null } as Device;
  // Only the members that a track uses.
  const track = new Track(device);
  const position = { latitudeDegrees: 1e-7, longitudeDegrees: -3e-7, uncertaintyMeters: 5 };
  const body = { kind: 'gps', reason: 'REASON_GPS_PING', position, speedMetersPerSecond: 0, directionDegrees: 0 };
  track.add({ stored: { source: 'lock' }, uplink: { timeMs: 1, body } } as unknown as ReadPing);
  const { content } = track.finish('gpx', null);
  t.match(content, '<trkpt lat="0.0000001" lon="-0.0000003">');
});

t.test('each finding has an explanation, which other merchants can’t read', async (t) => {
  const site = await ownDataSite(t);
  const { gateway, amber, basil } = site;
  const findings = await readAll(site, `/v1/locks/${amber.mac}/findings?limit=1`);
  t.ok(findings.length > 0, 'the second period ping is a finding');
  for (const { id } of findings) {
    const why = await callOwn(site, `/v1/why/${id}`);
    t.match(why, { status: 200, body: { about: { kind: 'finding', id, mac_addr: amber.mac } } });
    t.ok((why.body as { steps: unknown[] }).steps.length > 2);
  }
  const [ping] = await readAll(site, `/v1/locks/${amber.mac}/pings?limit=1`);
  const ids = [findings[0]?.id ?? '', ping?.event_id ?? '', `${amber.mac} 1/2`, amber.mac];
  for (const id of ids) {
    const routePath = `/v1/why/${encodeURIComponent(id)}`;
    t.match(await callOwn(site, routePath), { status: 200 }, id);
    t.match(
      await callMerchantApi(gateway, routePath, { key: basil.key }),
      { status: 404, body: { code: 'no-such-subject' } },
      id,
    );
  }
  t.match(
    await callOwn(site, `/v1/why/${encodeURIComponent(`${ping?.event_id}/99`)}`),
    { status: 404 },
    'there is no such URL',
  );
  t.match(await callOwn(site, `/v1/why/${amber.mac}?at=never`), {
    status: 400,
    body: { errors: [{ pointer: '/at' }] },
  });
});

/** Lets a new lock of Amber break a rule `count` times: with each daily ping after the first one. */
async function addFindings(test: Test, { gateway }: OwnDataSite, number: number, count: number): Promise<string> {
  const mac = testMac(number);
  const { secret } = await gateway.accounts.addDevice({ mac, merchant: 'Amber' });
  const lock = await TestLock.connect(test, gateway.mqttPort, mac, secret);
  for (let sequence = 1; sequence <= count + 1; sequence += 1)
    await lock.send(testBytes(sequence, { timeMs: SITE_NOW_MS - 60_000 + sequence }));
  return formatMac(mac);
}

t.test('the findings of all locks are newest first, without those of locks that have left', async (t) => {
  const site = await ownDataSite(t);
  const { gateway, amber, basil } = site;
  const staying = await addFindings(t, site, 7, 2);
  const leaving = await addFindings(t, site, 8, 9);
  const byLock = async (mac: string) => await readAll(site, `/v1/locks/${mac}/findings`);
  const [ofSite, ofStaying, ofLeaving] = [await byLock(amber.mac), await byLock(staying), await byLock(leaving)];
  t.ok(ofStaying.length >= 2 && ofLeaving.length >= 9, 'each lock has findings');
  const all = await readAll(site, '/v1/findings');
  t.strictSame(all, [...ofLeaving, ...ofStaying, ...ofSite], 'as in the lists of the locks, the last lock first');
  t.strictSame(await readAll(site, '/v1/findings?limit=2'), all, 'page by page');
  t.same(new Set(all.map(({ mac_addr }) => mac_addr)), new Set([amber.mac, staying, leaving]));

  const first = await callOwn(site, '/v1/findings?limit=2');
  const { next_cursor: cursor } = first.body as ListAnswer;
  const others = await callMerchantApi(gateway, `/v1/findings?cursor=${cursor}`, { key: basil.key });
  t.match(others, { status: 400, body: { code: 'input-cursor' } }, 'a cursor of another merchant');
  const own = await callMerchantApi(gateway, '/v1/findings', { key: basil.key });
  t.same(new Set((own.body as ListAnswer).data.map(({ mac_addr }) => mac_addr)), new Set([basil.mac]));

  const left = parseMac(leaving);
  if (!left.ok) throw left.error;
  await gateway.accounts.devices.change(left.value, { merchant: 'Basil' });
  const empty = await callOwn(site, '/v1/findings?limit=1');
  t.match(empty.body, { data: [], next_cursor: String }, 'one page does not look at all that was left out');
  t.strictSame(await readAll(site, '/v1/findings?limit=1'), [...ofStaying, ...ofSite]);
  t.match(await callMerchantApi(gateway, '/v1/findings', { key: basil.key }), { body: own.body as object });
  const gone = parseMac(staying);
  if (!gone.ok) throw gone.error;
  await gateway.accounts.devices.remove(gone.value);
  t.strictSame(await readAll(site, '/v1/findings'), ofSite, 'nor of a lock that was taken out of service');
});

t.test('a lock that moves to another merchant does not take its history, name and labels along', async (t) => {
  const site = await ownDataSite(t);
  const { gateway, amber, basil } = site;
  await callOwn(site, `/v1/locks/${amber.mac}`, {
    method: 'PATCH',
    body: { name: 'Harbour 7', labels: { city: 'Bonn' } },
  });
  const [finding] = await readAll(site, `/v1/locks/${amber.mac}/findings`);
  const [ping] = await readAll(site, `/v1/locks/${amber.mac}/pings?limit=1`);
  const mac = parseMac(amber.mac);
  if (!mac.ok) throw mac.error;
  await gateway.accounts.devices.change(mac.value, { merchant: 'Basil' });
  const asBasil = { key: basil.key };
  t.match(await callMerchantApi(gateway, `/v1/locks/${amber.mac}`, asBasil), {
    body: { name: null, labels: {}, believed: { messages: 0 } },
  });
  for (const part of ['pings', 'findings'])
    t.match(await callMerchantApi(gateway, `/v1/locks/${amber.mac}/${part}`, asBasil), { body: { data: [] } });
  t.match(await callMerchantApi(gateway, `/v1/locks/${amber.mac}/track`, asBasil), { body: { geometry: null } });
  for (const key of [amber.key, basil.key])
    for (const id of [finding?.id, ping?.event_id])
      t.match(
        await callMerchantApi(gateway, `/v1/why/${id}`, { key }),
        { status: 404 },
        'neither merchant can read it: the event belongs to the previous one, and the lock to the new one',
      );
  t.equal((await readAll(site, '/v1/locks')).length, 0, 'Amber has no lock any more');
});
