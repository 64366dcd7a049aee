/**
 * Conformance with Standard Webhooks, the specification of webhook signatures: the libraries that merchants use verify
 * every webhook that the gateway sends, whatever text it contains, and refuse a changed one.
 */
import { randomBytes } from 'node:crypto';
import got from 'got';
import t from 'tap';
import { makeWebhookSecret, signHeaders, verifySignature } from '../../../gateway/webhooks/payload/signature.js';
import { Minutes, systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { CellularPing } from '../../../proto/wire/ping.js';
import { Webhook as StandardWebhook, svixWebhook } from '../../clients/webhook-libraries.js';
import { LOCKGATE, Program } from '../../helpers/cli/program.js';
import { testMac, testUplink } from '../../helpers/gateway/test-gateway.js';
import { setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

const LIBRARIES = { standardwebhooks: StandardWebhook, svix: svixWebhook() } as const;

/**
 * Scripts written in both directions, letters beyond Unicode's first 65,536, emoji made of several characters, and
 * characters that end a line or control a terminal.
 */
const TEXTS = [
  'äöüß ñ ø ł İı ẞ',
  'Ελληνικά кириллица עברית العربية हिन्दी বাংলা தமிழ் ไทย ភាសាខ្មែរ',
  '中文 日本語 한국어 ᏣᎳᎩ ⵜⴰⵎⴰⵣⵉⵖⵜ',
  '𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𒀭𒂗 𓀀 🔒🚲 👩‍👩‍👧‍👦 🏳️‍🌈 🇳🇱 👍🏽',
  'e\u0301 \u200d\u200b\ufeff \u202eabc\u202c \u2066x\u2069 \u2028 \u2029',
  `"quoted" \\back\\ /slash/ \b\f\n\r\t \u0000 \u001b[31m \u007f \u009b ${'\ufffd'} \uffff \u{10ffff}`,
  '',
  ' leading and trailing ',
  '{"event_id":"evt_1"}',
];

t.test('the published Standard Webhooks vector is reproduced, and verified', async (t) => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  // From the documentation of Standard Webhooks.
  const [id, seconds, body] = ['msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}'];
  const headers = signHeaders([secret], id, seconds * 1000, body);
  t.same(headers, {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
  for (const each of [body, Buffer.from(body)])
    t.ok(verifySignature(secret, { ...headers }, each, seconds * 1000 + Minutes(5)).ok, 'at the end of the tolerance');
  t.notOk(verifySignature(secret, { ...headers }, body, seconds * 1000 + Minutes(5) + 1).ok, 'older than 5 min');
  t.notOk(verifySignature(secret, { ...headers }, body, seconds * 1000 - Minutes(5) - 1).ok, 'newer than 5 min');
});

t.test('any text in a body verifies with both libraries, with one secret and with two', async (t) => {
  // The libraries check against the machine's clock.
  const nowMs = systemClock.now();
  const [secret, older] = [makeWebhookSecret(), makeWebhookSecret()];
  const texts = [...TEXTS, TEXTS.join('\n'), randomBytes(3000).toString('latin1')];
  for (const [index, text] of texts.entries())
    for (const secrets of [[secret], [secret, older]]) {
      const body = JSON.stringify({ firmware_version: text });
      const headers = signHeaders(secrets, 'evt_1', nowMs, body);
      for (const [name, Library] of Object.entries(LIBRARIES))
        for (const each of secrets) {
          const read = new Library(each).verify(body, { ...headers }) as { firmware_version: string };
          t.ok(read.firmware_version === text, `${name}, text ${index}`);
        }
      t.throws(() => new StandardWebhook(makeWebhookSecret()).verify(body, { ...headers }));
    }
});

/** The same bytes with one bit flipped. */
function* withOneFlippedBit(bytes: Buffer): Generator<Buffer> {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const copy = Buffer.from(bytes);
    copy[bit >> 3] = (copy[bit >> 3] as number) ^ (1 << (bit & 7));
    yield copy;
  }
}

t.test('one flipped bit in body, id, time or signature makes the verification fail', async (t) => {
  const nowMs = systemClock.now();
  const secret = makeWebhookSecret();
  const body = Buffer.from('{"a":"é🔒\ufffd","n":1}');
  const headers = { ...signHeaders([secret], 'evt_A4_1', nowMs, body.toString()) };
  const wronglyAccepted: string[] = [];
  let triedCount = 0;
  const tryVerification = (what: string, changed: Record<string, string>, bytes: Buffer): void => {
    triedCount += 1;
    if (verifySignature(secret, changed, bytes, nowMs).ok) wronglyAccepted.push(`${what}: lockgate`);
    for (const [name, Library] of Object.entries(LIBRARIES))
      try {
        new Library(secret).verify(bytes, changed);
        wronglyAccepted.push(`${what}: ${name}`);
      } catch {
        // Expected: the library refuses the changed request.
      }
  };
  for (const bytes of withOneFlippedBit(body)) tryVerification('body', headers, bytes);
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const)
    for (const bytes of withOneFlippedBit(Buffer.from(headers[name])))
      tryVerification(name, { ...headers, [name]: bytes.toString('latin1') }, body);
  const [timestampDigits, signatureLetters] = [10, 44];
  t.equal(triedCount, 8 * (body.length + 'evt_A4_1'.length + timestampDigits + 'v1,'.length + signatureLetters));
  t.same(wronglyAccepted, []);
  t.ok(verifySignature(secret, headers, body, nowMs).ok, 'unchanged, it verifies');
});

t.test('a receiver that verifies the bytes is not misled by invalid UTF-8', async (t) => {
  const nowMs = systemClock.now();
  const secret = makeWebhookSecret();
  const headers = { ...signHeaders([secret], 'evt_1', nowMs, '{"a":"\ufffd"}') };
  const forged = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  t.equal(forged.toString('utf8'), '{"a":"\ufffd"}', 'as text they are the same');
  t.notOk(verifySignature(secret, headers, forged, nowMs).ok);
});

t.test('texts of locks and custom headers arrive unchanged, also while a secret is rotated', async (t) => {
  // What HTTP allows in header values: a tab, and Latin-1 except control characters.
  const customHeaders = {
    'X-Latin': 'caf\u00e9 \u00a0\u00ff',
    'X-Tab': 'a\tb',
    'X-Signs': '!"#$%&\'()*+,-./:;<=>?@[]^_`{|}~',
  };
  const { gateway, receiver, secret, urlId } = await setUpWebhooks(t, { headers: customHeaders });
  for (const value of ['🔒', 'a\nb', 'a\rb', '\u0000', 'ł', '\u007f'])
    await t.rejects(gateway.accounts.addWebhookUrl({ url: receiver.url, headers: { 'X-A': value } }), {
      code: 'input-header',
    });
  const lock = await connectedLock(t, gateway, testMac());
  const rotated = await gateway.webhooks.settings.rotateSecret(urlId);
  // A cellular ping.
  const body = testUplink(1).body as CellularPing;
  for (const [index, firmwareVersion] of TEXTS.entries())
    await lock.send(Buffer.from(encodeUplink(testUplink(index + 1, { body: { ...body, firmwareVersion } }))));
  await receiver.waitForRequests(TEXTS.length);
  t.same(
    receiver.requests.map(({ json }) => json.firmware_version),
    TEXTS,
  );
  for (const { body, headers } of receiver.requests) {
    const received = headers as Record<string, string>;
    t.equal(received['webhook-signature']?.split(' ').length, 2, 'signed with the old and the new secret');
    for (const [name, value] of Object.entries(customHeaders)) t.equal(received[name.toLowerCase()], value, name);
    for (const Library of Object.values(LIBRARIES))
      for (const each of [secret, rotated.secret]) t.doesNotThrow(() => new Library(each).verify(body, received));
  }
});

t.test('“lockgate webhook listen”, the CLI’s receiver, refuses a body that is too large and continues', async (t) => {
  const words = [LOCKGATE, 'webhook', 'listen', '--port', '0', '--expect', '1'];
  const program = new Program(t, process.execPath, words);
  const [url = ''] = /http:\S+/.exec(await program.waitForLine(/Listening on/, 'stderr')) ?? [];
  const post = (body: string) => {
    return got.post(url, { body, throwHttpErrors: false, retry: { limit: 0 } }).then(
      ({ statusCode }) => statusCode,
      () => 'cut off',
    );
  };
  // The receiver may close the connection before its answer is read.
  t.ok([413, 'cut off'].includes(await post('x'.repeat(5 * 1024 * 1024))));
  t.equal(await post('{}'), 204);
  t.same(await program.waitForExit(), { code: 0, signal: null });
});
