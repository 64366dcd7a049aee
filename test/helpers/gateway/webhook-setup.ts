/**
 * What tests of webhooks share: a gateway whose deliveries use a manual clock, a merchant's receiver, and functions
 * that wait for conditions.
 */
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import type { DeliveryReading, DeliveryState } from '../../../gateway/store/contract/webhook-store.js';
import { ATTEMPT_TIMEOUT } from '../../../gateway/webhooks/sending/attempt.js';
import { afterThisTurn, ManualClock, systemClock } from '../../../proto/clock.js';
import { within } from '../clocks/change-signal.js';
import type { Teardown } from '../store/temp-folder.js';
import { testGateway } from './test-gateway.js';
import { type TestReceiver, testReceiver } from './test-receiver.js';

/** The gateway, the clock of its deliveries, and the receiver with its URL's id and signing secret. */
export interface WebhookSetup {
  readonly clock: ManualClock;
  readonly gateway: Gateway;
  readonly receiver: TestReceiver;
  readonly urlId: number;
  readonly secret: string;
}

/** For the option `random` of a gateway: waits before retries are exactly those of the schedule. */
export const NO_JITTER = (): number => 0.5;

/** A gateway on a manual clock, without jitter, with a receiver as its merchant's URL. */
export async function setUpWebhooks(
  test: Teardown,
  url: { readonly ordered?: boolean; readonly headers?: Record<string, string>; readonly timeoutMs?: number } = {},
  options: GatewayOptions = {},
): Promise<WebhookSetup> {
  const clock = new ManualClock(systemClock.now());
  const gateway = await testGateway(test, { deliveryClock: clock, random: NO_JITTER, ...options });
  const receiver = await testReceiver(test);
  const added = await gateway.accounts.addWebhookUrl({ url: receiver.url, ...url });
  return { clock, gateway, receiver, urlId: added.url.id, secret: added.secret };
}

/** Resolves when `holds` returns true, checked each turn of the loop. @throws Error with `what` if not within 20 s */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  let isOver = false;
  const pollCondition = async (): Promise<void> => {
    while (!isOver && !(await holds())) await new Promise<void>((resolve) => afterThisTurn(resolve));
  };
  await within(20, () => what, pollCondition()).finally(() => {
    isOver = true;
  });
}

/**
 * Advances the clock to its next timer, except the time limit of an attempt that has just started. Returns by how many
 * ms.
 */
export async function advanceToNextTimer(clock: ManualClock): Promise<number> {
  const limitMs = clock.now() + ATTEMPT_TIMEOUT;
  await eventually('a timer', () => clock.nextDueMs !== undefined && clock.nextDueMs !== limitMs);
  const span = Math.max((clock.nextDueMs ?? 0) - clock.now(), 0);
  clock.advance(span);
  return span;
}

/**
 * The deliveries in these states (`kept`: not sent, the URL was disabled), newest event first, at most 500. By default
 * those of all the gateway's URLs.
 */
export async function readDeliveries(
  { store }: Gateway,
  states: readonly DeliveryState[] = ['pending', 'delivered', 'dead', 'kept'],
  onlyUrlIds?: readonly number[],
): Promise<DeliveryReading[]> {
  const urlIds = onlyUrlIds ?? (await store.listWebhookUrls()).map(({ id }) => id);
  const allEvents = { fromId: 0, toId: 1e9 };
  return await store.webhooks.readDeliveries({ urlIds, states, ...allEvents, limit: 500 });
}

/** The sequence numbers of the events that a receiver got, in order. */
export function receivedSequences(receiver: TestReceiver): unknown[] {
  return receiver.requests.map(({ json }) => json.sequence);
}
