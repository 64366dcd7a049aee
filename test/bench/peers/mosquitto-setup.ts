/**
 * A system that lockgate's ingest is compared with: the broker Mosquitto, a subscriber that stores pings
 * (sqlite-subscriber.ts), and a load generator whose locks publish.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Program } from '../../helpers/cli/program.js';
import { freePort } from '../../helpers/http/free-port.js';
import { type CpuTime, readCpuTime } from '../cpu-share.js';
import type { ChildProgram } from '../load/child-program.js';
import { LoadGenerator } from '../load/generator.js';
import { lockLogins } from '../load/lock-logins.js';
import type { Resources } from '../resources.js';
import { type SubscriberRequest, topicOf } from './sqlite-subscriber.js';

/** Debian installs Mosquitto in a folder that only root's PATH contains. */
const COMMANDS = ['mosquitto', '/usr/sbin/mosquitto', '/usr/local/sbin/mosquitto', '/opt/homebrew/sbin/mosquitto'];

/** The message if Mosquitto is not installed. */
export const MOSQUITTO_MISSING = 'Mosquitto is not installed (Debian: apt-get install mosquitto)';

/**
 * Without authentication, and without discarding messages if the subscriber is slower than the locks: 0 and −1 stand
 * for no limit.
 */
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
  // Mosquitto then says that it is running, and its version.
  'log_type information',
];

/** The running broker, subscriber and load generator. */
export class MosquittoSetup {
  readonly generator: LoadGenerator;
  readonly version: string;
  readonly #broker: Program;
  readonly #subscriber: ChildProgram;

  private constructor(generator: LoadGenerator, version: string, broker: Program, subscriber: ChildProgram) {
    this.generator = generator;
    this.version = version;
    this.#broker = broker;
    this.#subscriber = subscriber;
  }

  /** Starts broker, subscriber and locks; null if Mosquitto is not installed. */
  static async open(resources: Resources, locks: number): Promise<MosquittoSetup | null> {
    const command = COMMANDS.find((command) => spawnSync(command, ['-h']).error === undefined);
    if (command === undefined) return null;
    const [folder, port] = [resources.makeFolder(), await freePort()];
    const settings = path.join(folder, 'mosquitto.conf');
    // Started by root, Mosquitto would otherwise change to a user who may not read the folder.
    const user = process.getuid?.() === 0 ? ['user root'] : [];
    writeFileSync(settings, `${[`listener ${port} 127.0.0.1`, ...user, ...SETTINGS].join('\n')}\n`);
    const broker = new Program(resources, command, ['-c', settings]);
    const running = /mosquitto version (\S+) running/;
    const version = running.exec(await broker.waitForLine(running, 'stderr'))?.[1] ?? '';
    const logins = lockLogins(locks);
    const macs = logins.map(({ mac }) => mac);
    const request: SubscriberRequest = { port, file: path.join(folder, 'pings.sqlite'), macs };
    const subscriber = resources.startScript('peers/sqlite-subscriber.js', request);
    await subscriber.readAnswer();
    const generator = await LoadGenerator.start(resources, { port, locks: logins, topic: topicOf });
    return new MosquittoSetup(generator, version, broker, subscriber);
  }

  /**
   * Sends pings for this time, as fast as they are acknowledged. `rate` is pings a second until the last one is stored.
   *
   * @throws Error if an acknowledged ping was not stored
   */
  async run(milliseconds: number): Promise<{ readonly pings: number; readonly rate: number }> {
    const startedAt = performance.now();
    const { pings } = await this.generator.floodFor(milliseconds);
    const { stored } = await this.#subscriber.ask<{ stored: number }>(String(pings));
    const seconds = (performance.now() - startedAt) / 1000;
    if (stored !== pings) throw new Error(`the subscriber stored ${stored} of ${pings} pings`);
    return { pings, rate: pings / seconds };
  }

  cpu(): { readonly broker: CpuTime | null; readonly subscriber: CpuTime | null } {
    return { broker: readCpuTime(this.#broker.pid), subscriber: readCpuTime(this.#subscriber.pid) };
  }
}
