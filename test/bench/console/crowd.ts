/**
 * A program of the bench's row `console` that plays a fleet in one city: all locks report their position once, some of
 * them stay connected and move, and the others are disconnected until they report a theft. It takes one argument, a
 * {@link CrowdRequest} as JSON, and reads commands from stdin:
 *
 * - `place`: every lock connects and sends one ping; answers `{}` when all are acknowledged.
 * - `move RATE`: the moving locks send RATE pings a second in turn, until the next `move`; 0 stops them. Answers `{}`.
 * - `theft`: the next lock that stands still connects and reports a theft; answers {@link Theft} when the ping is
 *   acknowledged.
 * - `sent`: answers `{"pings":n}`, the number of pings so far.
 */
import { createInterface } from 'node:readline';
import { type Milliseconds, monotonicMs, systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { PubackLock, uplinkPacket } from '../../helpers/mqtt/puback-lock.js';
import { SeededChance } from '../../helpers/pair/seeded-chance.js';
import { lockLogins } from '../load/lock-logins.js';
import { newBootNumber } from '../load/ping-template.js';

export interface CrowdRequest {
  readonly port: number;
  readonly locks: number;
  /** How many of the locks move; they are the first ones. */
  readonly moving: number;
  /** How many further locks report a theft. */
  readonly thefts: number;
}

/** A reported theft. */
export interface Theft {
  /** The lock's name. */
  readonly name: string;
  /** When the PUBACK arrived, ms since the epoch. */
  readonly acked_at_ms: number;
}

/** The name of the lock with this number. */
export function crowdLockName(number: number): string {
  return `Harbour ${number}`;
}

/** How many locks connect at the same time. */
const CONCURRENT_CONNECTS = 200;
/** How often pings that are due are sent. */
const SEND_EVERY: Milliseconds = 20;
const CENTER = { latitude: 52.52, longitude: 13.405 };
/** Half of the width of the city, degrees. */
const SPREAD_DEGREES = 0.08;
/** How far a lock rides between two pings at most, degrees: some 50 m. */
const STEP_DEGREES = 0.0005;
const MAX_PACKET_ID = 65_535;
const BOOT = newBootNumber();

/** One lock, at a place of the city. */
class CrowdLock {
  readonly #chance: SeededChance;
  readonly #login: { readonly mac: string; readonly secret: string };
  #place: { latitude: number; longitude: number };
  #sequence = 0;
  #connection: PubackLock | undefined;
  #onPuback: () => void = () => undefined;

  constructor(chance: SeededChance, login: { readonly mac: string; readonly secret: string }) {
    this.#chance = chance;
    this.#login = login;
    this.#place = {
      latitude: CENTER.latitude + this.#around(SPREAD_DEGREES),
      // At this latitude a degree of longitude is shorter by this factor.
      longitude: CENTER.longitude + this.#around(SPREAD_DEGREES * 1.6),
    };
  }

  async connect(port: number): Promise<void> {
    const { mac, secret } = this.#login;
    this.#connection = await PubackLock.connect(port, mac, secret, () => this.#onPuback());
  }

  /** Sends a DISCONNECT and closes the connection. */
  disconnect(): void {
    this.#connection?.socket.end(Buffer.from([0xe0, 0]));
    this.#connection = undefined;
  }

  /** Moves a little, and sends a ping about it, without waiting for the PUBACK. */
  ride(): void {
    this.#place.latitude += this.#around(STEP_DEGREES);
    this.#place.longitude += this.#around(STEP_DEGREES);
    this.#send('REASON_UNLOCKED_MOVEMENT', 'unlocked');
  }

  /** Sends a ping, and resolves at its PUBACK. @throws Error if the gateway ends the connection before */
  async report(reason: Ping['reason']): Promise<void> {
    const acknowledged = new Promise<'acknowledged'>((resolve) => {
      this.#onPuback = () => resolve('acknowledged');
    });
    this.#send(reason, 'locked');
    const outcome = await Promise.race([acknowledged, this.#connection?.closed]);
    if (outcome !== 'acknowledged') throw new Error(`the gateway ended the connection of ${this.#login.mac}`);
    this.#onPuback = () => undefined;
  }

  #send(reason: Ping['reason'], lockState: 'locked' | 'unlocked'): void {
    this.#sequence += 1;
    const { latitude: latitudeDegrees, longitude: longitudeDegrees } = this.#place;
    const power = { mode: 'MID', rideTracking: true, airplane: false, recovery: false } as const;
    const uplink: Uplink = {
      ...{ boot: BOOT, sequence: this.#sequence, timeMs: systemClock.now(), power, kept: 0, dropped: 0 },
      body: {
        ...{ kind: 'cellular', reason, lockState, batteryPercent: 81, ebikeVolts: null, tetherState: 'detached' },
        firmwareVersion: '2.4.1-lockgate-bench',
        position: { latitudeDegrees, longitudeDegrees, uncertaintyMeters: 6 },
      } as Ping,
    };
    this.#connection?.socket.write(uplinkPacket((this.#sequence % MAX_PACKET_ID) + 1, encodeUplink(uplink)));
  }

  /** A number between minus and plus `span`, more often near 0. */
  #around(span: number): number {
    return span * (this.#chance.next() + this.#chance.next() - 1);
  }
}

/** All locks, and the program's commands. */
class Crowd {
  readonly #request: CrowdRequest;
  readonly #locks: readonly CrowdLock[];
  #thefts = 0;
  #pings = 0;
  /** Ends the present movement. */
  #stop: () => void = () => undefined;

  constructor(request: CrowdRequest) {
    // A fixed seed, for the same places in each run. Any would do.
    const chance = new SeededChance(20);
    this.#request = request;
    this.#locks = lockLogins(request.locks).map((login) => new CrowdLock(chance, login));
  }

  async answer(line: string): Promise<unknown> {
    const [command, argument] = line.split(' ');
    if (command === 'place') await this.#placeAll();
    else if (command === 'move') this.#move(Number(argument));
    else if (command === 'theft') return await this.#reportTheft();
    else return { pings: this.#pings };
    return {};
  }

  async #placeAll(): Promise<void> {
    const { port, moving } = this.#request;
    let next = 0;
    const placeNext = async (): Promise<void> => {
      for (let number = next++; number < this.#locks.length; number = next++) {
        const lock = this.#locks[number] as CrowdLock;
        await lock.connect(port);
        await lock.report('REASON_PERIOD_TRACKING');
        this.#pings += 1;
        if (number >= moving) lock.disconnect();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_CONNECTS }, placeNext));
  }

  #move(rate: number): void {
    this.#stop();
    if (rate === 0) return;
    const startedAtMs = monotonicMs();
    let sent = 0;
    const sendDue = (): void => {
      for (const due = ((monotonicMs() - startedAtMs) * rate) / 1000; sent < due; sent += 1) {
        this.#locks[sent % this.#request.moving]?.ride();
        this.#pings += 1;
      }
      timer = systemClock.after(SEND_EVERY, sendDue);
    };
    let timer = systemClock.after(SEND_EVERY, sendDue);
    this.#stop = () => timer.cancel();
  }

  async #reportTheft(): Promise<Theft> {
    const number = this.#request.moving + (this.#thefts % this.#request.thefts);
    this.#thefts += 1;
    const lock = this.#locks[number] as CrowdLock;
    // Not connected until now: the gateway would have ended a connection that was silent for so long.
    await lock.connect(this.#request.port);
    await lock.report('REASON_THEFT');
    const ackedAtMs = systemClock.now();
    this.#pings += 1;
    lock.disconnect();
    return { name: crowdLockName(number), acked_at_ms: ackedAtMs };
  }
}

async function main(argument: string): Promise<void> {
  const crowd = new Crowd(JSON.parse(argument) as CrowdRequest);
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await crowd.answer(line)));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
