/**
 * Runs mosquitto's MQTT clients: the gateway must also work with clients from other projects.
 */
import { spawnSync } from 'node:child_process';
import { type Program, runProgram } from '../cli/program.js';
import type { Teardown } from '../store/temp-folder.js';

/** Why tests with mosquitto are skipped; false if it is installed. */
export function mosquittoIsMissing(): string | false {
  const missing = ['mosquitto_pub', 'mosquitto_sub'].filter((name) => spawnSync(name, ['--help']).error !== undefined);
  return missing.length > 0 && `${missing.join(' and ')} not installed (Debian: mosquitto-clients)`;
}

/** The MQTT identity of a client. */
export interface MosquittoIdentity {
  readonly port: number;
  readonly clientId: string;
  readonly userName: string;
  readonly password: string;
}

/** Runs `mosquitto_pub` or `mosquitto_sub` to its end, speaking MQTT 3.1.1. */
export async function mosquitto(
  test: Teardown,
  command: 'pub' | 'sub',
  { port, clientId, userName, password }: MosquittoIdentity,
  args: readonly string[],
): Promise<Program> {
  const identity = ['-i', clientId, '-u', userName, '-P', password];
  const place = ['-h', '127.0.0.1', '-p', String(port), '-V', 'mqttv311'];
  return await runProgram(test, `mosquitto_${command}`, [...place, ...identity, ...args]);
}
