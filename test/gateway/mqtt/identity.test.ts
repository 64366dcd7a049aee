/**
 * The credentials of a lock: its secret, phones' credentials, and how they are revoked or expire (protocol.md §1):
 * unknown and wrong credentials get the same answer, and a revoked session ends within 5 s. A finding is the gateway's
 * objection to an uplink.
 */
import t from 'tap';
import { Keys } from '../../../gateway/data-folder/keys.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { parseDeviceState } from '../../../gateway/locks/device-state.js';
import { authenticate } from '../../../gateway/mqtt/authentication.js';
import {
  type LockAccount,
  MAX_PHONES_PER_LOCK,
  type StoredCredential,
} from '../../../gateway/store/contract/devices/device.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Hours, ManualClock, Seconds, systemClock } from '../../../proto/clock.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { within } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { connackCode, connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { PHONE_PING } from '../../helpers/wire/phone-ping.js';

const MAC = testMac();
/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;
const OTHER_MAC = testMac(2);
/** The CONNACK code of a refused login. */
const NOT_AUTHORIZED = 5;
/** The time limit for ending a revoked session. */
const MAX_CLOSE_SECONDS = 5;

/** A phone's ping, as different from the lock's as possible. */
function phoneBytes(sequence: number, members: Partial<Uplink> = {}): Buffer {
  const power = { mode: 'HIGH', rideTracking: true, airplane: true, recovery: true } as const;
  return testBytes(sequence, { boot: 900, body: PHONE_PING, power, ...members });
}

/** Adds a phone of the lock. Returns its secret. */
async function addPhone(gateway: Gateway, name = 'Ada', expiresAtMs: number | null = null): Promise<string> {
  return (await gateway.accounts.devices.addPhone({ mac: MAC, name, expiresAtMs })).secret;
}

/** The lock's state as the gateway has stored it. */
async function stateOf(gateway: Gateway) {
  return parseDeviceState((await gateway.store.findDevice(MAC))?.state ?? 'null');
}

t.test(
  'two phones and the lock can be connected at once; a phone’s ping does not change the lock’s state',
  async (t) => {
    const gateway = await testGateway(t);
    const receiver = await testReceiver(t);
    await gateway.accounts.addWebhookUrl({ url: receiver.url });
    const lock = await connectedLock(t, gateway, MAC);
    await lock.send(testBytes(1));
    const before = await stateOf(gateway);
    const connected = waitForEvents(gateway, 'connected', 2);
    const ada = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'ada1', await addPhone(gateway, 'Ada'));
    const bob = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'B', await addPhone(gateway, 'Bob'));
    t.match(await connected, [{ source: 'phone' }, { source: 'phone' }]);
    const stored = waitForEvents(gateway, 'uplink', 2);
    await ada.send(phoneBytes(1));
    await bob.send(phoneBytes(1));
    t.same(
      (await stored).map(({ source, findings }) => [source, findings]),
      [
        ['phone', []],
        ['phone', []],
      ],
    );
    await receiver.waitForRequests(3);
    t.match(
      receiver.requests.map(({ json }) => json),
      [{ reason: 'REASON_STATE_PING' }, { reason: 'PHONE', latitude: 48.85 }, { reason: 'PHONE', longitude: 2.35 }],
    );
    const after = await stateOf(gateway);
    t.same(
      { ...after, belief: { ...after.belief, nowMs: before.belief.nowMs } },
      before,
      'the lock’s state is unchanged',
    );
    t.match(await callOperator(gateway, 'GET', '/status'), { body: { mqtt: { connected: 3 } } });
    const device = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as { uplinks: []; phone_uplinks: [] };
    t.same([device.uplinks.length, device.phone_uplinks.length], [1, 2]);
    t.match(device, {
      presence: 'online',
      state: { reason: 'REASON_STATE_PING', lock_state: 'locked', battery_percent: 81, latitude: null },
      uplinks: [{ boot: 1, sequence: 1 }],
      phone_uplinks: [{ boot: 900 }, { boot: 900 }],
    });
    await lock.send(testBytes(2));
    t.equal((await gateway.store.readUplinks(FIRST_ID, 9)).length, 2, 'the lock’s session stays');
  },
);

t.test('a phone’s connection does not make the lock online', async (t) => {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', await addPhone(gateway));
  await phone.send(phoneBytes(1));
  const device = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as Record<string, unknown>;
  t.same([device.presence, device.uplinks], ['never-seen', []]);
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  await phone.client.endAsync();
  t.match(await disconnected, [{ source: 'phone', cause: 'closed' }]);
  t.match((await callOperator(gateway, 'GET', `/devices/${MAC}`)).body, { presence: 'online' });
  await lock.send(testBytes(1));
});

t.test('anything but PHONE from a phone, and PHONE from a lock, is stored with a finding', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', await addPhone(gateway));
  const stored = waitForEvents(gateway, 'uplink', 2);
  await phone.send(testBytes(1));
  await lock.send(testBytes(1, { body: PHONE_PING }));
  const [phoneUplink, lockUplink] = await stored;
  t.match(phoneUplink?.findings, [{ rule: 'wrong-source' }]);
  t.ok(lockUplink?.findings.some(({ rule }) => rule === 'wrong-source'));
  t.equal((await gateway.store.readEvents(FIRST_ID, LOG_START, 9)).length, 2, 'both pings are stored');
});

t.test('a phone can’t subscribe and publishes only to up', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addDevice({ mac: MAC });
  const secret = await addPhone(gateway);
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', secret);
  for (const topic of ['down', 'up', '#', '$SYS/#']) {
    const refused = waitForEvents(gateway, 'refused', 1);
    // The client's library reports the refusal as an error.
    await phone.client.subscribeAsync(topic, { qos: 1 }).catch(() => undefined);
    t.match(await refused, [{ what: 'subscribe' }], topic);
  }
  const refused = waitForEvents(gateway, 'refused', 1);
  phone.client.publish('down', 'x', { qos: 1 });
  await phone.closed;
  t.match(await refused, [{ what: 'publish' }]);
  t.same(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), []);
});

t.test('every refusal is the same CONNACK; only operators see the reason', async (t) => {
  const wallClock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { wallClock });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  await gateway.accounts.addDevice({ mac: OTHER_MAC });
  const good = await addPhone(gateway, 'good');
  const expired = await addPhone(gateway, 'expired', wallClock.now() + Hours(1));
  const revoked = await addPhone(gateway, 'revoked');
  await gateway.accounts.devices.revokePhone(MAC, 'revoked');
  wallClock.advance(Hours(1));
  const phone = { clientId: `phone-${MAC}-a`, username: MAC, password: good };
  t.equal(await connackCode(gateway.mqttPort, phone), 0);
  const longest = `phone-${MAC}-${'Z9'.repeat(16)}`;
  t.equal(await connackCode(gateway.mqttPort, { ...phone, clientId: longest }), 0, '32 letters and digits');
  const cases: readonly (readonly [string, { clientId: string; username?: string; password?: string }, RegExp])[] = [
    ['an unknown MAC', { ...phone, clientId: `phone-${testMac(9)}-a`, username: testMac(9) }, /no such lock/],
    ['a wrong secret', { ...phone, password: 'lgp_wrong' }, /wrong phone credential/],
    ['no password', { clientId: phone.clientId, username: MAC }, /wrong phone credential/],
    ['an expired phone', { ...phone, password: expired }, /expired/],
    ['a revoked phone', { ...phone, password: revoked }, /revoked/],
    ['the lock’s secret', { ...phone, password: secret }, /wrong phone credential/],
    ['a phone’s credential as the lock', { clientId: MAC, username: MAC, password: good }, /wrong secret/],
    ['a phone of another lock', { ...phone, clientId: `phone-${OTHER_MAC}-a`, username: OTHER_MAC }, /wrong phone/],
    ['the user name of another lock', { ...phone, username: OTHER_MAC }, /neither that MAC/],
    ['33 letters', { ...phone, clientId: `${longest}a` }, /neither that MAC/],
    ['no letter', { ...phone, clientId: `phone-${MAC}-` }, /neither that MAC/],
    ['no letter or digit', { ...phone, clientId: `phone-${MAC}-a_b` }, /neither that MAC/],
    ['a client id in small letters', { ...phone, clientId: `phone-${MAC.toLowerCase()}-a` }, /neither that MAC/],
  ];
  for (const [what, options, why] of cases) {
    const refused = waitForEvents(gateway, 'refused', 1);
    t.equal(await connackCode(gateway.mqttPort, options), NOT_AUTHORIZED, what);
    t.match(await refused, [{ what: 'connect', why }], `${what} is reported to operators`);
  }
});

t.test('every CONNECT costs one look-up and one hash, whether the credential exists or not', async (t) => {
  const counts = { hashes: 0, lookUps: 0 };
  class CountingKeys extends Keys {
    override hashSecret(secret: Uint8Array | string): Buffer {
      counts.hashes += 1;
      return super.hashSecret(secret);
    }
  }
  const keys = new CountingKeys(Buffer.alloc(32, 1));
  const credential = (id: number, members: Partial<StoredCredential> = {}): StoredCredential => {
    return { id, secretHash: keys.hashSecret(`secret ${id}`), expiresAtMs: null, isRevoked: false, ...members };
  };
  const maximumPhones = Array.from({ length: MAX_PHONES_PER_LOCK }, (_, index) => credential(index + 10));
  const account = { deviceId: 1, merchantId: 1, mac: MAC, simulated: false, isMerchantClosed: false };
  const credentialsByCase = {
    'an unknown lock': null,
    'no phone': [],
    'one phone': [credential(1)],
    'the maximum number of phones': maximumPhones,
    'an expired one': [credential(1, { expiresAtMs: 5 })],
    'a revoked one': [credential(1, { isRevoked: true })],
  };
  for (const [what, credentials] of Object.entries(credentialsByCase)) {
    for (const password of ['secret 1', 'wrong', '']) {
      Object.assign(counts, { hashes: 0, lookUps: 0 });
      const findLock = async (): Promise<LockAccount | null> => {
        counts.lookUps += 1;
        return credentials === null ? null : { ...account, credentials };
      };
      // Authenticated at time 5 (ms), when the phone that expires at 5 has expired.
      const claim = { clientId: `phone-${MAC}-a`, username: MAC, password: Buffer.from(password), hasWill: false };
      const { ok } = await authenticate({ store: { findLock }, keys }, claim, 5);
      t.same(counts, { hashes: 1, lookUps: 1 }, `${what}, ${password}`);
      t.equal(ok, what === 'one phone' && password === 'secret 1', `${what}, ${password}`);
    }
  }
});

t.test('a revoked phone’s connections are closed; other phones’ stay open', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const [ada, bob] = [await addPhone(gateway, 'Ada'), await addPhone(gateway, 'Bob')];
  const first = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a1', ada);
  const second = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a2', ada);
  const other = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'b', bob);
  const disconnected = waitForEvents(gateway, 'disconnected', 2);
  await gateway.accounts.devices.revokePhone(MAC, 'Ada');
  await within(MAX_CLOSE_SECONDS, () => 'the end of Ada’s connections', Promise.all([first.closed, second.closed]));
  t.match(await disconnected, [
    { source: 'phone', cause: 'gateway' },
    { source: 'phone', cause: 'gateway' },
  ]);
  await other.send(phoneBytes(1));
  await lock.send(testBytes(1));
  const phone = { clientId: `phone-${MAC}-a1`, username: MAC };
  t.equal(await connackCode(gateway.mqttPort, { ...phone, password: ada }), NOT_AUTHORIZED);
  t.equal(
    await connackCode(gateway.mqttPort, { ...phone, password: await addPhone(gateway, 'Ada') }),
    0,
    'a new phone',
  );
});

t.test('an expired phone’s connection ends within 5 s of the expiry, and not before it', async (t) => {
  const wallClock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { wallClock });
  await gateway.accounts.addDevice({ mac: MAC });
  const lasting = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'l', await addPhone(gateway, 'lasting'));
  const expiring = await addPhone(gateway, 'expiring', wallClock.now() + Hours(1));
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'e', expiring);
  wallClock.advance(Hours(1) - 1);
  await phone.send(phoneBytes(1));
  wallClock.advance(1 + Seconds(MAX_CLOSE_SECONDS));
  await within(MAX_CLOSE_SECONDS, () => 'the end of the phone’s connection', phone.closed);
  await lasting.send(phoneBytes(1));
});

t.test('rotating the secret closes the lock’s connection; phones stay connected', async (t) => {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', await addPhone(gateway));
  const newer = await gateway.accounts.rotateLockSecret(MAC);
  await within(MAX_CLOSE_SECONDS, () => 'the end of the lock’s connection', lock.closed);
  await phone.send(phoneBytes(1));
  t.equal(await connackCode(gateway.mqttPort, { clientId: MAC, username: MAC, password: secret }), NOT_AUTHORIZED);
  t.equal(await connackCode(gateway.mqttPort, { clientId: MAC, username: MAC, password: newer }), 0);
});

t.test('an old secret stays valid in addition to the new one until its time ends', async (t) => {
  const wallClock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { wallClock });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const newer = await gateway.accounts.devices.rotateSecret(MAC, Hours(1));
  const identity = { clientId: MAC, username: MAC };
  t.equal(await connackCode(gateway.mqttPort, { ...identity, password: newer }), 0);
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  wallClock.advance(Hours(1) + Seconds(MAX_CLOSE_SECONDS));
  await within(MAX_CLOSE_SECONDS, () => 'the end of the lock’s connection', lock.closed);
  t.equal(await connackCode(gateway.mqttPort, { ...identity, password: secret }), NOT_AUTHORIZED);
  const newest = await gateway.accounts.devices.rotateSecret(MAC, Hours(1));
  await gateway.accounts.devices.rotateSecret(MAC, Hours(1));
  t.equal(
    await connackCode(gateway.mqttPort, { ...identity, password: newer }),
    NOT_AUTHORIZED,
    'one old secret at most',
  );
  t.equal(await connackCode(gateway.mqttPort, { ...identity, password: newest }), 0);
});

t.test('a CONNECT whose credential is revoked during its authentication is refused', async (t) => {
  let onRead: () => void = () => undefined;
  const wasRead = new Promise<void>((resolve) => (onRead = resolve));
  let continueReading: () => void = () => undefined;
  const mayContinue = new Promise<void>((resolve) => (continueReading = resolve));
  let isFirst = true;
  const gateway = await testGateway(t, {
    wrapStore: (store) =>
      withOverrides(store, {
        findLock: async (...args: Parameters<typeof store.findLock>) => {
          const account = await store.findLock(...args);
          // The first look-up has read the credential as valid; its answer is late.
          if (isFirst) {
            isFirst = false;
            onRead();
            await mayContinue;
          }
          return account;
        },
      }),
  });
  await gateway.accounts.addDevice({ mac: MAC });
  const password = await addPhone(gateway);
  const answer = connackCode(gateway.mqttPort, { clientId: `phone-${MAC}-a`, username: MAC, password });
  await wasRead;
  await gateway.accounts.devices.revokePhone(MAC, 'Ada');
  continueReading();
  t.equal(await answer, NOT_AUTHORIZED);
});

t.test('repeats and conflicts are recognised, whichever credential is newer', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  const secret = await addPhone(gateway);
  let phoneNumber = 0;
  for (const what of ['the phone’s is newer', 'the lock’s is newer']) {
    const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, `a${phoneNumber++}`, secret);
    // Two uplinks with the same number and different contents.
    const [first, conflicting] = [phoneBytes(phoneNumber), phoneBytes(phoneNumber, { kept: 7 })];
    const stored = waitForEvents(gateway, 'uplink', 3, ({ source }) => source === 'phone');
    await phone.send(first);
    await phone.send(first);
    await phone.send(conflicting);
    const uplinks = await stored;
    t.same(
      uplinks.map(({ repeated }) => repeated),
      [false, true, false],
      what,
    );
    t.match(uplinks[2]?.findings, [{ rule: 'sequence-conflict' }], what);
    const newer = await gateway.accounts.rotateLockSecret(MAC);
    const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, newer);
    const ofLock = waitForEvents(gateway, 'uplink', 2, ({ source }) => source === 'lock');
    await reconnected.send(testBytes(5));
    await reconnected.send(testBytes(5));
    t.match(await ofLock, [{ repeated: false }, { repeated: true }], `${what}: uplinks of the lock`);
  }
  t.equal(
    (await gateway.store.readEvents(FIRST_ID, LOG_START, 99)).length,
    1 + 2 * 2 + 2,
    'the first one; each time two of the phone and one of the lock',
  );
});

t.test('a trace contains a phone’s actions', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addDevice({ mac: MAC });
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', await addPhone(gateway));
  await phone.send(phoneBytes(1));
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  await phone.client.endAsync();
  await disconnected;
  const response = await fetch(`http://127.0.0.1:${gateway.operatorPort}/trace`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  const lines = (await response.text()).trim().split('\n');
  const reported = lines.map((line) => JSON.parse(line) as { event?: string; source?: string });
  t.match(
    reported.filter(({ event }) => event !== undefined && event !== 'gateway'),
    [
      { event: 'connect', source: 'phone' },
      { event: 'ping', source: 'phone', ping: { reason: 'PHONE' } },
      { event: 'disconnect', source: 'phone', cause: 'closed' },
    ],
  );
});

t.test('the number of a lock’s phones is limited, and the names of valid ones are unique', async (t) => {
  const wallClock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { wallClock });
  await gateway.accounts.addDevice({ mac: MAC });
  for (let count = 0; count < MAX_PHONES_PER_LOCK - 1; count += 1) await addPhone(gateway, `phone ${count}`);
  const route = `/devices/${MAC}/phones`;
  t.match(await callOperator(gateway, 'POST', route, { name: 'phone 0' }), {
    status: 409,
    body: { code: 'phone-exists' },
  });
  const expires_at = new Date(wallClock.now() + Hours(1)).toISOString();
  t.match(await callOperator(gateway, 'POST', route, { name: 'last', expires_at }), {
    status: 201,
    body: { expires_at },
  });
  t.match(await callOperator(gateway, 'POST', route, { name: 'one more' }), {
    status: 409,
    body: { code: 'too-many-phones' },
  });
  wallClock.advance(Hours(1));
  t.match(
    await callOperator(gateway, 'POST', route, { name: 'last' }),
    { status: 201 },
    'an expired one does not count',
  );
  t.match(await callOperator(gateway, 'DELETE', `${route}/phone%200`), { status: 200, body: { revoked: true } });
  t.match(await callOperator(gateway, 'DELETE', `${route}/phone%200`), {
    status: 404,
    body: { code: 'no-such-phone' },
  });
  const { phones } = (await callOperator(gateway, 'GET', route)).body as { phones: { name: string; state: string }[] };
  const states = phones.map(({ state }) => state);
  t.equal(states.filter((state) => state === 'active').length, MAX_PHONES_PER_LOCK - 1);
  t.equal(states.filter((state) => state === 'expired').length, 1);
  t.match(phones.at(-1), { name: 'phone 0', state: 'revoked' });
  t.notMatch(JSON.stringify(phones), /lgp_|secret/);
  const bad: readonly unknown[] = [
    { name: '' },
    { name: 'a\nb' },
    { name: 'x'.repeat(65) },
    { name: 'late', expires_at: '2020-01-01T00:00:00Z' },
    { name: 'never', expires_at: 'soon' },
    {},
  ];
  for (const body of bad)
    t.match(await callOperator(gateway, 'POST', route, body), { status: 400 }, JSON.stringify(body));
  const routeOfUnknownLock = `/devices/${OTHER_MAC}/phones`;
  t.match(await callOperator(gateway, 'POST', routeOfUnknownLock, { name: 'a' }), {
    status: 404,
    body: { code: 'no-such-device' },
  });
  t.match(await callOperator(gateway, 'GET', routeOfUnknownLock), { status: 404 });
});
