/**
 * Locks that send pings, in a process of their own. It takes one argument, a {@link FloodRequest} as JSON, prints `{}`
 * when all are connected, and at each line of stdin sends and answers `{"ms":t}` when the last PUBACK is there:
 *
 * - `flood N`: N pings in all, one in flight for each lock, as fast as they are acknowledged.
 * - `pace N MS`: N pings, one every MS, by the locks in turn.
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../proto/clock.js';
import { encodeUplink } from '../../proto/codec.js';
import { DEFAULT_POWER } from '../../proto/ping.js';
import { publishPacket, RawLock } from '../helpers/raw-mqtt.js';

export interface FloodRequest {
  readonly port: number;
  readonly locks: readonly { readonly mac: string; readonly secret: string }[];
}

/** Sets the boots of one flood apart from another's: a name is used once. */
const BOOT = Math.floor(systemClock.now() / 1000) % 2 ** 31;

class Sender {
  #lock!: RawLock;
  #sequence = 0;
  #onAck: () => void = () => undefined;

  async connect(port: number, mac: string, secret: string): Promise<void> {
    this.#lock = await RawLock.connect(port, mac, secret, () => this.#onAck());
  }

  /** Sends one, and calls back at its PUBACK. */
  send(acked: () => void): void {
    this.#onAck = acked;
    this.#lock.acked.length = 0;
    this.#sequence += 1;
    this.#lock.socket.write(publishPacket((this.#sequence % 65_535) + 1, ping(this.#sequence)));
  }
}

/** A GPS ping of some fifty bytes. */
function ping(sequence: number): Uint8Array {
  const uplink = { boot: BOOT, sequence, timeMs: systemClock.now(), power: DEFAULT_POWER, kept: 0, dropped: 0 };
  return encodeUplink({
    ...uplink,
    body: {
      kind: 'gps',
      reason: 'REASON_UNLOCKED_PING',
      lockState: 'unlocked',
      batteryPercent: 81,
      ebikeVolts: null,
      tetherState: 'detached',
      position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 8 },
      speedMetersPerSecond: 3,
      directionDegrees: 90,
    },
  });
}

function flood(senders: readonly Sender[], count: number): Promise<void> {
  let [left, unacked] = [count, count];
  return new Promise((resolve) => {
    const next = (sender: Sender): void => {
      if (left-- > 0)
        sender.send(() => {
          unacked -= 1;
          if (unacked === 0) resolve();
          else next(sender);
        });
    };
    for (const sender of senders) next(sender);
  });
}

async function pace(senders: readonly Sender[], count: number, everyMs: number): Promise<void> {
  const acked: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < count; index++) {
    const delay = startedAt + index * everyMs - performance.now();
    if (delay > 0) await new Promise<void>((resolve) => systemClock.after(delay, resolve));
    const sender = senders[index % senders.length] as Sender;
    acked.push(new Promise((resolve) => sender.send(resolve)));
    // A lock has one ping in flight.
    if (acked.length >= senders.length) await acked[acked.length - senders.length];
  }
  await Promise.all(acked);
}

async function main(argument: string): Promise<void> {
  const { port, locks } = JSON.parse(argument) as FloodRequest;
  const senders: Sender[] = [];
  for (const { mac, secret } of locks) {
    const sender = new Sender();
    await sender.connect(port, mac, secret);
    senders.push(sender);
  }
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    const [word, count, everyMs] = line.split(' ');
    const startedAt = performance.now();
    if (word === 'flood') await flood(senders, Number(count));
    else await pace(senders, Number(count), Number(everyMs));
    console.log(JSON.stringify({ ms: performance.now() - startedAt }));
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
