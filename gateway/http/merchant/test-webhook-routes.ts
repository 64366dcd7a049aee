/** The route of the test webhook: operation 7 of the specification (interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { parseMac } from '../../../proto/wire/mac.js';
import { noSuchDevice } from '../../store/contract/errors.js';
import { TESTS_PER_MINUTE, type TestDelivery } from '../../webhooks/webhook-test.js';
import { checkToken, lacksScope } from './authentication.js';
import { Refusal } from './refusal.js';
import {
  type MerchantRoute,
  problemResponse,
  tooLarge,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_TYPE,
} from './route.js';

/** Ten times what a token and a MAC need (docs/http.md, "How much"). */
const MAX_BODY_BYTES = 1024;

const TestRequest = Type.Object(
  {
    access_token: Type.String({ description: 'A token with the scope webhooks:test.' }),
    mac_addr: Type.String({ description: 'The lock’s hardware address, in any common spelling.' }),
  },
  { title: 'TestRequest' },
);

const nullable = (type: 'integer' | 'string', description: string) =>
  Type.Unsafe<number | string | null>({ anyOf: [{ type }, { type: 'null' }], description });

const TestResult = Type.Object(
  {
    status: Type.Unsafe<'success' | 'error'>({ type: 'string', enum: ['success', 'error'] }),
    deliveries: Type.Array(
      Type.Object({
        url_id: Type.Integer(),
        origin: Type.String({ description: 'Scheme, host and port.' }),
        status: nullable('integer', 'The status of the answer; null if there was none.'),
        duration_ms: nullable('integer', 'Null if the address is not allowed.'),
        error: nullable('string', 'A sentence; null if the answer was 2xx.'),
      }),
    ),
  },
  { title: 'TestResult' },
);

// Examples for the documentation.
const DELIVERED = { url_id: 1, origin: 'https://example.com', status: 200, duration_ms: 41, error: null };
const FAILED = { ...DELIVERED, status: 500, error: 'the receiver answered 500' };

export const TEST_WEBHOOK_ROUTES: readonly MerchantRoute[] = [
  {
    method: 'POST',
    path: '/test_webhook',
    operationId: 'testWebhook',
    tag: 'webhooks',
    summary: 'Sends a test webhook to every active URL of the merchant and waits for the answers.',
    scheme: 'access-token',
    keyScope: 'spec',
    body: TestRequest,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { access_token: 'lgt_…', mac_addr: 'A4:C1:38:F0:E1:D2' },
    responses: {
      200: {
        description: 'Every URL answered 2xx.',
        schema: TestResult,
        example: { status: 'success', deliveries: [DELIVERED] },
      },
      400: problemResponse('A member is missing, or the MAC is malformed.'),
      401: UNAUTHORIZED,
      403: problemResponse('The token lacks the scope webhooks:test.'),
      404: problemResponse('The merchant has no such lock.'),
      409: problemResponse('The merchant has no active webhook URL.'),
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
      429: tooMany(`Over ${TESTS_PER_MINUTE} tests a minute. Or: `),
      502: {
        description: 'A URL did not answer 2xx.',
        schema: TestResult,
        example: { status: 'error', deliveries: [FAILED] },
      },
      503: UNAVAILABLE,
    },
    handle: async ({ parts, body, takeRequest }) => {
      const { access_token: sentToken, mac_addr: macText } = body as Static<typeof TestRequest>;
      const mac = parseMac(macText);
      if (!mac.ok) {
        const faults = [{ pointer: '/mac_addr', detail: 'expected a MAC: 12 hex digits' }];
        throw new Refusal({ status: 400, code: 'input-mac', detail: 'mac_addr is not a MAC', faults });
      }
      const token = await checkToken(parts, sentToken);
      takeRequest(token.merchantId);
      if (!token.scopes.includes('webhooks:test')) throw lacksScope('webhooks:test');
      const reading = await parts.store.findDevice(mac.value);
      if (reading?.device.merchantId !== token.merchantId) throw noSuchDevice(mac.value);
      const { deliveries } = await parts.tester.test(mac.value);
      const isDelivered = deliveries.every(({ error }) => error === null);
      return {
        status: isDelivered ? 200 : 502,
        body: { status: isDelivered ? 'success' : 'error', deliveries: deliveries.map(deliveryJson) },
      };
    },
  },
];

function deliveryJson({ urlId, origin, status, durationMs, error }: TestDelivery) {
  return {
    url_id: urlId,
    origin,
    status,
    duration_ms: durationMs === null ? null : Math.round(durationMs),
    error,
  };
}
