/** The part `webhooks` of the OpenAPI document: what lockgate sends to a merchant's URLs. Pure. */
import type { TSchema } from 'typebox';
import { MERCHANT_EVENT_SCHEMAS } from '../../../webhooks/payload/merchant-event-schema.js';
import { PAYLOAD_SCHEMAS } from '../../../webhooks/payload/schema.js';

/** What a URL is to answer. */
const RESPONSES = {
  '2XX': { description: 'The event has arrived. Any other answer is a failure, and the event is sent again.' },
  '410': { description: 'The URL is gone: lockgate disables it.' },
};

const [commandSchema, presenceSchema, batterySchema] = MERCHANT_EVENT_SCHEMAS;

/** The part of the document, by types of events. */
export function documentedWebhooks(): object {
  return {
    ping: webhook('A lock or phone sent a ping. Every URL gets these by default.', { oneOf: PAYLOAD_SCHEMAS }),
    command: webhook('A command has ended. Only URLs that are set to get these.', commandSchema),
    presence: webhook('A lock is late, or back. Only URLs that are set to get these.', presenceSchema),
    battery: webhook('A lock’s battery is low, or charged again. Only URLs that are set to get these.', batterySchema),
  };
}

function webhook(summary: string, schema: TSchema | { readonly oneOf: readonly TSchema[] }): object {
  const content = { 'application/json': { schema } };
  return { post: { summary, requestBody: { required: true, content }, responses: RESPONSES } };
}
