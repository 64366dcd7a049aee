/**
 * A lock of a rental business, for tests: it executes commands at once, reports each change of its lock state, and can
 * be ridden.
 */
import { decodeDownlink } from '../../../../proto/wire/codec.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { CommandAck, LockState, Ping } from '../../../../proto/wire/ping.js';
import { testBytes } from '../../gateway/test-gateway.js';
import { TestLock } from '../../mqtt/test-lock.js';
import type { Teardown } from '../../store/temp-folder.js';

/** The positions of a ride, in degrees. */
export const RIDE: readonly (readonly [latitude: number, longitude: number])[] = [
  [52.52, 13.404],
  [52.521, 13.405],
  [52.522, 13.406],
];
const RIDE_INTERVAL_MS = 30_000;

/** The lock, connected to a gateway. */
export class RentedLock {
  /** The sequence numbers of the pings that were acknowledged: its diary. */
  readonly sentPings: number[] = [];
  readonly #lock: TestLock;
  #state: LockState = 'locked';
  #sequence = 0;
  #timeMs: number;
  /** Uplinks are sent one after another. */
  #sending: Promise<void> = Promise.resolve();

  private constructor(lock: TestLock, nowMs: number) {
    this.#lock = lock;
    this.#timeMs = nowMs;
    lock.client.on('message', (_topic, payload) => this.#execute(payload));
  }

  /** Connects and sends a first ping. @param nowMs the lock's clock, which advances by itself with each message */
  static async connect(test: Teardown, port: number, mac: Mac, secret: string, nowMs: number): Promise<RentedLock> {
    const lock = new RentedLock(await TestLock.connect(test, port, mac, secret), nowMs);
    await lock.#lock.client.subscribeAsync('down', { qos: 1 });
    await lock.#send(lock.#cellular('REASON_STATE_PING'));
    return lock;
  }

  get state(): LockState {
    return this.#state;
  }

  /** Sends the pings of a ride. */
  async ride(): Promise<void> {
    for (const [latitudeDegrees, longitudeDegrees] of RIDE) {
      this.#timeMs += RIDE_INTERVAL_MS;
      await this.#send({
        kind: 'gps',
        reason: 'REASON_UNLOCKED_PING',
        lockState: this.#state,
        batteryPercent: 80,
        ebikeVolts: null,
        tetherState: 'detached',
        speedMetersPerSecond: 4,
        directionDegrees: 45,
        position: { latitudeDegrees, longitudeDegrees, uncertaintyMeters: 5 },
      });
    }
  }

  #execute(payload: Uint8Array): void {
    const downlink = decodeDownlink(payload);
    if (!downlink.ok) throw new Error(downlink.error.message);
    const { id, command } = downlink.value;
    if (command.type === 'unlock') this.#state = 'unlocked';
    if (command.type === 'lock') this.#state = 'locked';
    void this.#send({ kind: 'ack', commandId: id, result: 'ok', detail: '', highWindow: null });
    void this.#send(this.#cellular('REASON_STATE_PING'));
  }

  #cellular(reason: 'REASON_STATE_PING'): Ping {
    return {
      kind: 'cellular',
      reason,
      lockState: this.#state,
      batteryPercent: 80,
      firmwareVersion: '2.4.1',
      ebikeVolts: null,
      tetherState: 'detached',
      position: null,
    };
  }

  #send(body: Ping | CommandAck): Promise<void> {
    this.#sending = this.#sending.then(async () => {
      this.#sequence += 1;
      this.#timeMs += 1_000;
      const sequence = this.#sequence;
      await this.#lock.send(testBytes(sequence, { timeMs: this.#timeMs, body }));
      if (body.kind !== 'ack') this.sentPings.push(sequence);
    });
    return this.#sending;
  }
}
