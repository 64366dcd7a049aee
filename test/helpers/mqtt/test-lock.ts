/**
 * A lock for tests: an MQTT client that sends only what the test sends.
 */
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import type { Gateway } from '../../../gateway/gateway.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Teardown } from '../store/temp-folder.js';

/** The CONNACK's return code of an attempt to connect; 0 if accepted. */
export async function connackCode(port: number, options: IClientOptions): Promise<number> {
  const client = mqtt.connect({ host: '127.0.0.1', port, reconnectPeriod: 0, protocolVersion: 4, ...options });
  try {
    return await new Promise<number>((resolve, reject) => {
      client.on('connect', () => resolve(0));
      client.on('error', (error) => {
        const { code } = error as { code?: unknown };
        if (typeof code === 'number') resolve(code);
        else reject(error);
      });
      client.on('close', () => reject(new Error('the connection was closed without a CONNACK')));
    });
  } finally {
    await client.endAsync(true);
  }
}

/** A connected client. */
export class TestLock {
  readonly client: MqttClient;
  /** Resolves when the connection has closed, from either side. */
  readonly closed: Promise<void>;

  private constructor(client: MqttClient) {
    this.client = client;
    this.closed = new Promise((resolve) => client.once('close', () => resolve()));
  }

  /** Connects as a lock does; it is disconnected after the test. */
  static async connect(
    test: Teardown,
    port: number,
    mac: Mac,
    secret: string,
    options: IClientOptions = {},
  ): Promise<TestLock> {
    return await TestLock.#connectAs(test, port, { clientId: mac, username: mac, password: secret, ...options });
  }

  /** Connects as a phone that acts for a lock does, under a client id that ends in `name`. */
  static async connectPhone(test: Teardown, port: number, mac: Mac, name: string, secret: string): Promise<TestLock> {
    return await TestLock.#connectAs(test, port, { clientId: `phone-${mac}-${name}`, username: mac, password: secret });
  }

  static async #connectAs(test: Teardown, port: number, identity: IClientOptions): Promise<TestLock> {
    const client = await mqtt.connectAsync({
      host: '127.0.0.1',
      port,
      reconnectPeriod: 0,
      protocolVersion: 4,
      ...identity,
    });
    // Some tests expect the gateway to close the connection.
    client.on('error', () => undefined);
    test.teardown(() => client.endAsync(true).then(() => undefined));
    return new TestLock(client);
  }

  /** Resolves at the PUBACK. */
  async send(bytes: Buffer): Promise<void> {
    await this.client.publishAsync('up', bytes, { qos: 1 });
  }
}

/** Adds a lock to the gateway's merchant, and connects it. */
export async function connectedLock(test: Teardown, gateway: Gateway, mac: Mac): Promise<TestLock> {
  const { secret } = await gateway.accounts.addDevice({ mac });
  return await TestLock.connect(test, gateway.mqttPort, mac, secret);
}
