/**
 * What tests of notifications share. A gateway sends its notices (reports of problems) to the operators' notify URL.
 * The test has a receiver at that URL and a manual clock.
 */
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { ManualClock, systemClock } from '../../../proto/clock.js';
import { memoryFolder, type Teardown } from '../store/temp-folder.js';
import { openGateway } from './test-gateway.js';
import { type TestReceiver, testReceiver } from './test-receiver.js';
import { eventually, NO_JITTER } from './webhook-setup.js';

/** The gateway, its clock, and the receiver of its notices. */
export interface NotifySetup {
  readonly folder: string;
  /** The clock of attempts and retries. */
  readonly clock: ManualClock;
  readonly gateway: Gateway;
  /** The operators' receiver. */
  readonly receiver: TestReceiver;
}

/** A gateway that sends its notices to a receiver. */
export async function setUpNotify(test: Teardown, options: GatewayOptions = {}): Promise<NotifySetup> {
  const folder = memoryFolder(test);
  const receiver = await testReceiver(test);
  const { gateway, clock } = await openNotifying(test, folder, receiver.url, options);
  await gateway.accounts.addMerchant('Amber');
  return { folder, clock, gateway, receiver };
}

/** Starts a gateway, without jitter in its retries, on a folder that may hold data already. */
export async function openNotifying(
  test: Teardown,
  folder: string,
  notifyUrl: string | null,
  options: GatewayOptions = {},
): Promise<{ readonly gateway: Gateway; readonly clock: ManualClock }> {
  const clock = new ManualClock(systemClock.now());
  const gatewayOptions = { deliveryClock: clock, random: NO_JITTER, ...options };
  return { gateway: await openGateway(test, folder, gatewayOptions, { notifyUrl }), clock };
}

/** The types of the messages that a receiver got, in order. */
export function receivedTypes(receiver: TestReceiver): unknown[] {
  return receiver.requests.map(({ json }) => json.type);
}

/** The ids of the messages that a receiver got, in order. */
export function receivedIds(receiver: TestReceiver): unknown[] {
  return receiver.requests.map(({ headers }) => headers['webhook-id']);
}

/** Resolves when every message to a recipient (0: the operators) is delivered or given up. */
export async function waitForOutcomes({ store }: Gateway, recipientId = 0): Promise<void> {
  await eventually('every message has an outcome', async () => {
    return (await store.notifications.countMessages(recipientId)).pending === 0;
  });
}
