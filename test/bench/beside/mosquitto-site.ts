/** Mosquitto with a subscriber that stores what comes (sqlite-subscriber.ts), and a crowd of locks that publish. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Program } from '../../helpers/cli/program.js';
import { freePort } from '../../helpers/http/free-port.js';
import { type CpuTime, cpuTime } from '../cpu-share.js';
import { crowdLocks } from '../load/crowd-accounts.js';
import { Generator } from '../load/generator.js';
import type { Obedient } from '../load/obedient.js';
import type { Stage } from '../stage.js';
import { type SubscriberRequest, topicOf } from './sqlite-subscriber.js';

/** Debian puts it where only root looks. */
const PLACES = ['mosquitto', '/usr/sbin/mosquitto', '/usr/local/sbin/mosquitto', '/opt/homebrew/sbin/mosquitto'];

/** How to get it, where it is not installed. */
export const MOSQUITTO_MISSING = 'Mosquitto is not installed (Debian: apt-get install mosquitto)';

/** Nobody is asked who they are, and nothing is thrown away because the subscriber is slower than the locks. */
const SETTINGS = [
  'allow_anonymous true',
  'persistence false',
  'max_connections -1',
  'max_queued_messages 0',
  'max_queued_bytes 0',
  'max_inflight_messages 0',
  'set_tcp_nodelay true',
  'log_dest stderr',
  'log_type error',
  'log_type information',
];

export class MosquittoSite {
  readonly generator: Generator;
  readonly version: string;
  readonly #broker: Program;
  readonly #subscriber: Obedient;

  private constructor(generator: Generator, version: string, broker: Program, subscriber: Obedient) {
    this.generator = generator;
    this.version = version;
    this.#broker = broker;
    this.#subscriber = subscriber;
  }

  /** Null where there is no Mosquitto. */
  static async open(stage: Stage, locks: number): Promise<MosquittoSite | null> {
    const command = PLACES.find((place) => spawnSync(place, ['-h']).error === undefined);
    if (command === undefined) return null;
    const [folder, port] = [stage.folder(), await freePort()];
    const settings = path.join(folder, 'mosquitto.conf');
    const user = process.getuid?.() === 0 ? ['user root'] : [];
    writeFileSync(settings, `${[`listener ${port} 127.0.0.1`, ...user, ...SETTINGS].join('\n')}\n`);
    const broker = new Program(stage, command, ['-c', settings]);
    const running = /mosquitto version (\S+) running/;
    const version = running.exec(await broker.line(running, 'stderr'))?.[1] ?? '';
    const played = crowdLocks(locks);
    const macs = played.map(({ mac }) => mac);
    const request: SubscriberRequest = { port, file: path.join(folder, 'pings.sqlite'), macs };
    const subscriber = stage.script('beside/sqlite-subscriber.js', request);
    await subscriber.answer();
    const generator = await Generator.start(stage, { port, locks: played, topic: topicOf });
    return new MosquittoSite(generator, version, broker, subscriber);
  }

  /**
   * As many pings as are acknowledged in so long, and how many a second they are until the last is stored too.
   *
   * @throws Error where not every acknowledged ping was stored
   */
  async run(milliseconds: number): Promise<{ readonly pings: number; readonly rate: number }> {
    const startedAt = performance.now();
    const { pings } = await this.generator.run(milliseconds);
    const { stored } = await this.#subscriber.answer<{ stored: number }>(String(pings));
    const seconds = (performance.now() - startedAt) / 1000;
    if (stored !== pings) throw new Error(`the subscriber stored ${stored} of ${pings} pings`);
    return { pings, rate: pings / seconds };
  }

  cpu(): { readonly broker: CpuTime | null; readonly subscriber: CpuTime | null } {
    return { broker: cpuTime(this.#broker.pid), subscriber: cpuTime(this.#subscriber.pid) };
  }
}
