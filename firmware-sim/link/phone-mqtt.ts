/**
 * A simulated phone that acts for a lock (protocol.md §1): it connects with its own credential, publishes one ping and
 * disconnects.
 */
import { connect as connectMqtt } from 'mqtt';
import { encodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { PingUplink } from '../../proto/wire/ping.js';
import { type MqttAddress, mqttOptions } from './mqtt-link.js';

/** A phone, and its credential. */
export interface Phone {
  /** The lock that the phone acts for. */
  readonly mac: Mac;
  /** 1 to 32 letters or digits. */
  readonly name: string;
  readonly secret: string;
}

/**
 * Publishes the ping, and resolves when the gateway has acknowledged it.
 *
 * @throws Error if the gateway refuses the phone, or the connection closes first
 */
export function sendAsPhone(address: MqttAddress, { mac, name, secret }: Phone, uplink: PingUplink): Promise<void> {
  const client = connectMqtt(mqttOptions(address, { clientId: `phone-${mac}-${name}`, mac, secret }));
  return new Promise<void>((resolve, reject) => {
    client.on('error', reject);
    client.on('close', () => reject(new Error('the connection to the gateway was closed')));
    client.on('connect', () => {
      client.publish('up', Buffer.from(encodeUplink(uplink)), { qos: 1 }, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }).finally(() => client.end());
}
