/** Builds and starts the parts that deliver webhooks. Only gateway.ts may import this file. */
import { type Clock, Seconds, systemClock } from '../../proto/clock.js';
import type { Config } from '../config.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import { Figures } from '../metrics/figures.js';
import { VERSION } from '../version.js';
import { Backlogs } from '../webhooks/backlogs.js';
import { Dispatcher, type DispatcherParts } from '../webhooks/dispatcher.js';
import { GuardedConnections } from '../webhooks/sending/guarded-connections.js';
import { TargetCheck } from '../webhooks/sending/target-check.js';
import { DeliveryClock } from '../webhooks/url/delivery-clock.js';
import { Webhooks } from '../webhooks/webhooks.js';
import type { GatewayOptions } from './gateway-base.js';

/** How long running deliveries may continue when the gateway stops. */
const DELIVERY_GRACE = Seconds(3);

/** Builds the dispatcher, and the webhook functions of the HTTP interfaces. @param dates the confirmed wall clock */
export function makeWebhooks(
  config: Config,
  options: GatewayOptions,
  dates: Clock,
  parts: Pick<DispatcherParts, 'store' | 'keys' | 'events' | 'runClock'>,
): { dispatcher: Dispatcher; webhooks: Webhooks } {
  const connections = new GuardedConnections(config.allowWebhookRange, options.lookUp);
  // Tests pass clocks and random numbers of their own.
  const dispatcherParts: DispatcherParts = {
    ...parts,
    connections,
    deliveryClock: new DeliveryClock(options.deliveryDates ?? options.deliveryClock ?? dates, options.deliveryClock),
    userAgent: `lockgate/${VERSION}`,
    random: options.random ?? cryptoRandom,
  };
  const dispatcher = new Dispatcher(dispatcherParts);
  const targets = new TargetCheck(config.allowWebhookRange, connections.names.lookUp);
  return { dispatcher, webhooks: new Webhooks({ ...dispatcherParts, dispatcher, targets }) };
}

/** Builds the figures that are counted on demand, and starts the watch on URLs' backlogs. */
export function startFigures(
  { speed = 1 }: GatewayOptions,
  { store, events, runClock }: Pick<DispatcherParts, 'store' | 'events' | 'runClock'>,
  dispatcher: Dispatcher,
  isStoreFailing: () => boolean,
  started: StopStep[],
): Figures {
  const backlogs = new Backlogs({ store, events, clock: systemClock, runClock, speed });
  backlogs.start();
  started.push(stopStep('the watch on backlogs', () => backlogs.stop()));
  return new Figures({
    backlogs,
    store,
    outcomesStored: () => dispatcher.flushOutcomes(),
    isStoreFailing,
    clock: systemClock,
  });
}

/** Starts the deliveries to all URLs, and adds the step that stops them to `started`. */
export async function startDeliveries(
  dispatcher: Dispatcher,
  { tester }: Webhooks,
  started: StopStep[],
): Promise<void> {
  await dispatcher.start();
  started.push(
    stopStep('a delivery', async () => {
      tester.stop();
      await dispatcher.stop(DELIVERY_GRACE);
    }),
  );
}

/** A random number of 32 bits in [0, 1). */
export function cryptoRandom(): number {
  return (globalThis.crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;
}
