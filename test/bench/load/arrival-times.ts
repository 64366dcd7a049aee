/**
 * How soon after its PUBACK a ping arrives as a webhook: a lock at each of some gateways that share a store, and the
 * merchant's receiver, all in this process.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GatewayClient } from '../../../cli/client.js';
import { type Milliseconds, systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { PubackLock, uplinkPacket } from '../../helpers/mqtt/puback-lock.js';
import type { Resources } from '../resources.js';
import { lockLogins } from './lock-logins.js';
import { newBootNumber, rideUplink } from './ping-template.js';

/** Sends this many pings one by one by the lock at this gateway. Returns each delay. */
export type MeasureArrivals = (gateway: number, pings: number) => Promise<Milliseconds[]>;

/**
 * Adds a URL for a receiver, and connects a lock to each of the MQTT ports. The first of the bench's locks, one for
 * each port, must be registered already; `client` is the operator's interface of any of the gateways.
 */
export async function startArrivals(
  resources: Resources,
  client: GatewayClient,
  ports: readonly number[],
): Promise<MeasureArrivals> {
  let onWebhook: (atMs: number) => void = () => undefined;
  const server = createServer((request, response) => {
    const atMs = performance.now();
    request.resume().on('end', () => {
      response.writeHead(204).end();
      onWebhook(atMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resources.teardown(() => server.close());
  await client.post('/webhooks', { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` });
  let onPuback: () => void = () => undefined;
  const locks: PubackLock[] = [];
  for (const [index, { mac, secret }] of lockLogins(ports.length).entries()) {
    const lock = await PubackLock.connect(ports[index] ?? 0, mac, secret, () => onPuback());
    resources.teardown(() => lock.socket.destroy());
    locks.push(lock);
  }
  const boot = newBootNumber();
  const sequences = locks.map(() => 0);
  return async (gateway, pings) => {
    const lags: Milliseconds[] = [];
    for (let ping = 0; ping < pings; ping++) {
      const sequence = (sequences[gateway] ?? 0) + 1;
      sequences[gateway] = sequence;
      const arrival = new Promise<number>((resolve) => {
        onWebhook = resolve;
      });
      const puback = new Promise<number>((resolve) => {
        onPuback = () => resolve(performance.now());
      });
      const uplink = encodeUplink(rideUplink(boot, sequence, systemClock.now()));
      locks[gateway]?.socket.write(uplinkPacket(sequence, uplink));
      const [ackedMs, arrivedMs] = await Promise.all([puback, arrival]);
      // The webhook may arrive before the PUBACK.
      lags.push(Math.max(arrivedMs - ackedMs, 0));
    }
    return lags;
  };
}
