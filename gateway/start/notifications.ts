/**
 * Builds and starts the notices, stored conditions that an operator should know about, and the notifier, which sends
 * them and troubles of webhook URLs as notifications to notify URLs. Only gateway.ts may import this file.
 */
import { type Clock, Seconds } from '../../proto/clock.js';
import type { Config } from '../config.js';
import type { Keys } from '../data-folder/keys.js';
import { stopStep } from '../graceful-stop.js';
import { Notices } from '../notices/notices.js';
import { Notifier } from '../notify/notifier.js';
import { VERSION } from '../version.js';
import { GuardedConnections } from '../webhooks/sending/guarded-connections.js';
import { DeliveryClock } from '../webhooks/url/delivery-clock.js';
import { cryptoRandom } from './deliveries.js';
import type { GatewayBase, GatewayOptions } from './gateway-base.js';

/** How long a running attempt may continue when the gateway stops. */
const NOTIFICATION_GRACE = Seconds(1);

/** What the notices and the notifier need besides the base. */
interface NotificationParts {
  readonly keys: Keys;
  /** Stamps the gateway's events: wall-clock time, except in a sped-up simulation. */
  readonly clock: Clock;
  /** Stamps notices. The confirmed date (clocks/clock-guard.ts), unless a test replaces it. */
  readonly wallClock: Clock;
  /** Stamps deliveries. The confirmed date: it does not follow a doubtful jump of the machine's clock. */
  readonly confirmedWallClock: Clock;
}

/** Starts the notices and the notifier. They start before the parts that cause notices, and so stop after these. */
export async function startNotifications(
  config: Config,
  options: GatewayOptions,
  { store, events, health, now, started }: GatewayBase,
  { keys, clock, wallClock, confirmedWallClock }: NotificationParts,
): Promise<{ readonly notices: Notices; readonly notifier: Notifier }> {
  const deliveryDates = options.deliveryDates ?? options.deliveryClock ?? confirmedWallClock;
  const notifier = await Notifier.start(
    {
      ...{ store, keys, events, runClock: clock },
      connections: new GuardedConnections(config.allowWebhookRange, options.lookUp),
      deliveryClock: new DeliveryClock(deliveryDates, options.deliveryClock),
      userAgent: `lockgate/${VERSION}`,
      random: options.random ?? cryptoRandom,
    },
    config.notifyUrl,
  );
  started.push(stopStep('the notifications', () => notifier.stop(NOTIFICATION_GRACE)));
  const isStoreFailing = (): boolean => health.isStoreFailing;
  const onWritten = (): void => notifier.wake();
  // Notices name the gateway only if several gateways share the store, each with its own cellular locks.
  const { slot, locks: lockOwnership } = store.ownership;
  const gateway = lockOwnership.isSole ? undefined : `gateway ${slot}`;
  const notices = await Notices.start({ store, events, clock: wallClock, now, isStoreFailing, onWritten, gateway });
  started.push(stopStep('the notices', () => notices.stop()));
  return { notices, notifier };
}
