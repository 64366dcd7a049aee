/**
 * The traffic of one lock in a day. {@link simulateDay} records it from a simulation without a gateway; {@link
 * replayDay} sends the same messages between a real MQTT client and a gateway, through a proxy that counts bytes.
 */
import type { Test } from 'tap';
import { runVirtual } from '../../../firmware-sim/fleet/virtual-run.js';
import type { WireSize } from '../../../firmware-sim/link/wire-size.js';
import { Traffic } from '../../../firmware-sim/plan/traffic.js';
import { ScriptedWorld, type World, type WorldEvent } from '../../../firmware-sim/world/world.js';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { encodeDownlink, encodeUplink } from '../../../proto/wire/codec.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, type Downlink, type PowerSettings, type Uplink } from '../../../proto/wire/ping.js';
import { setUpUsage } from '../gateway/usage-setup.js';
import { CountingProxy } from '../http/counting-proxy.js';
import { TestLock } from '../mqtt/test-lock.js';
import { RUN_STARTS_MS } from '../sim/judged-run.js';
import { PARKED, PARKED_AT } from '../sim/parked-bicycle.js';

/** The surroundings of a parked bicycle, in which only the given events happen. */
export function parkedWorld(power: Partial<PowerSettings> = {}, events: readonly WorldEvent[] = []): World {
  const fix = { position: PARKED_AT, speedMetersPerSecond: 0, directionDegrees: 0 };
  return new ScriptedWorld({ ...PARKED, power: { ...DEFAULT_POWER, ...power } }, events, fix);
}

/** A day with a ride and other events, so that the lock sends each kind of uplink. */
export function eventfulWorld(): World {
  const at = (span: number, change: WorldEvent['change']): WorldEvent => ({ atMs: RUN_STARTS_MS + span, change });
  return parkedWorld({ recovery: true, rideTracking: true }, [
    at(Hours(1), { type: 'lock-state', lockState: 'unlocked' }),
    at(Hours(1) + Minutes(1), { type: 'motion', moving: true }),
    at(Hours(1) + Minutes(9), { type: 'motion', moving: false }),
    at(Hours(1) + Minutes(10), { type: 'lock-state', lockState: 'locked' }),
    at(Hours(2), { type: 'settings', change: { recovery: false } }),
    at(Hours(3), { type: 'motion', moving: true }),
    at(Hours(3) + Minutes(2), { type: 'motion', moving: false }),
  ]);
}

/** The keepalive interval of locks (protocol.md §1). */
const KEEPALIVE = Seconds(300);
const KEEPALIVE_SECONDS = KEEPALIVE / 1000;

type DayMessage =
  | { readonly type: 'connect' | 'keepalive' | 'disconnect' }
  | { readonly type: 'uplink'; readonly uplink: Uplink }
  | { readonly type: 'command'; readonly downlink: Downlink };

/**
 * Runs a lock for a day. Returns its messages in order, and its traffic as the simulator counts it with `wire`, the
 * sizes of the messages.
 */
export function simulateDay(world: World, wire: WireSize) {
  const countUntilMs = Number.POSITIVE_INFINITY;
  const traffic = new Traffic(wire, RUN_STARTS_MS, countUntilMs);
  const messages: DayMessage[] = [];
  let mac: Mac | undefined;
  let lastMs = 0;
  // A silent client sends a PINGREQ at each keepalive interval.
  const addKeepalivesUntil = (atMs: number): void => {
    for (let dueMs = lastMs + KEEPALIVE; dueMs < atMs; dueMs += KEEPALIVE) messages.push({ type: 'keepalive' });
    lastMs = atMs;
  };
  runVirtual({
    seed: 1,
    locks: 1,
    days: 1,
    startMs: RUN_STARTS_MS,
    worldOf: () => world,
    commandSchedule: { perDay: 40, commands: [{ type: 'locate-gps' }, { type: 'siren', seconds: 2 }] },
    sink: {
      connect: (from, atMs) => {
        mac = from;
        lastMs = atMs;
        messages.push({ type: 'connect' });
        traffic.connect(from, atMs);
      },
      uplink: (from, atMs, uplink) => {
        addKeepalivesUntil(atMs);
        messages.push({ type: 'uplink', uplink });
        traffic.uplink(from, atMs, uplink);
      },
      command: (to, atMs, downlink) => {
        addKeepalivesUntil(atMs);
        messages.push({ type: 'command', downlink });
        traffic.command(to, atMs, downlink);
      },
      disconnect: (from, atMs, cause) => {
        addKeepalivesUntil(atMs);
        messages.push({ type: 'disconnect' });
        traffic.disconnect(from, atMs, cause);
      },
    },
  });
  if (mac === undefined) throw new Error('the lock never connected');
  return { mac, messages, counted: traffic.of(mac) };
}

/** Repeats the messages between a real MQTT client and the gateway. Returns the traffic that the gateway bills. */
export async function replayDay(t: Test, transport: 'tcp' | 'tls', mac: Mac, messages: readonly DayMessage[]) {
  const setup = await setUpUsage(t);
  const port = await setup.openPort(transport);
  const proxy = await CountingProxy.start(t, () => port);
  const { device, secret } = await setup.accounts.addDevice({ mac });
  const tls = transport === 'tls' ? ({ protocol: 'mqtts', rejectUnauthorized: false } as const) : {};
  let lock: TestLock | undefined;
  for (const message of messages) {
    if (message.type === 'connect') {
      lock = await TestLock.connect(t, proxy.port, mac, secret, { ...tls, keepalive: KEEPALIVE_SECONDS });
      await lock.client.subscribeAsync('down', { qos: 1 });
    }
    if (lock === undefined) throw new Error('a message comes before the first connect');
    const { client } = lock;
    if (message.type === 'uplink') await lock.send(Buffer.from(encodeUplink(message.uplink)));
    else if (message.type === 'command') {
      const arrived = new Promise((resolve) => client.once('message', resolve));
      await setup.broker.sessions.ofLock(device.id)?.send(Buffer.from(encodeDownlink(message.downlink)));
      await arrived;
    } else if (message.type === 'keepalive') {
      // Each keepalive adds a listener. 0 is MQTT.js's value for any number of listeners.
      const answered = new Promise<void>((resolve) => {
        client.setMaxListeners(0).on('packetreceive', (packet) => packet.cmd === 'pingresp' && resolve());
      });
      client.sendPing();
      await answered;
    } else if (message.type === 'disconnect') {
      await client.endAsync();
      await lock.closed;
    }
  }
  await proxy.waitForAllClosed(proxy.connections.length);
  await setup.waitForSocketsClosed();
  const [billed] = await setup.usage.read({ mac });
  if (billed === undefined) throw new Error('nothing was billed');
  return { row: billed };
}
