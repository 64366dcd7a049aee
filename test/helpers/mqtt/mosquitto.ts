/**
 * Somebody else's MQTT client: what we say of the protocol must hold for a client that we did not write.
 */
import { spawnSync } from 'node:child_process';
import { type Program, runProgram } from '../cli/program.js';
import type { Teardown } from '../store/temp-folder.js';

/** Why tests with it have to be left out; false where it is installed. */
export function mosquittoIsMissing(): string | false {
  const missing = ['mosquitto_pub', 'mosquitto_sub'].filter((name) => spawnSync(name, ['--help']).error !== undefined);
  return missing.length > 0 && `${missing.join(' and ')} not installed (Debian: mosquitto-clients)`;
}

/** Who connects, as MQTT has it. */
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
