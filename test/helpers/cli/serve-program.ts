/**
 * Runs `lockgate serve` as a separate process on free ports, and other commands against it.
 */

import type { Teardown } from '../store/temp-folder.js';
import { LOCKGATE, lockgateJson, Program } from './program.js';

/** A running `lockgate serve`. */
export class ServeProgram {
  readonly program: Program;
  /** The data folder. */
  readonly data: string;
  /** Where locks connect. */
  mqttPort = 0;
  readonly #test: Teardown;

  private constructor(test: Teardown, data: string, environment: NodeJS.ProcessEnv) {
    this.#test = test;
    this.data = data;
    this.program = serveProgram(test, data, environment);
  }

  /** Starts the gateway and waits until it reports that it is ready. */
  static async start(test: Teardown, data: string, environment: NodeJS.ProcessEnv = {}): Promise<ServeProgram> {
    const serve = new ServeProgram(test, data, environment);
    serve.mqttPort = Number(/:(\d+)$/.exec(await serve.program.waitForLine(/mqtt:/))?.[1]);
    // `serve` prints what an operator can do next when it accepts connections.
    await serve.program.waitForLine(/Next:/);
    return serve;
  }

  /** Runs a command against this gateway, and returns its JSON output. @throws Error if the command fails */
  async json<T>(...args: string[]): Promise<T> {
    return await lockgateJson<T>([...args, '--data', this.data]);
  }

  /** Starts a long-running command against this gateway. */
  run(...args: string[]): Program {
    return new Program(this.#test, process.execPath, [LOCKGATE, ...args, '--data', this.data]);
  }
}

/** Starts `serve` on this folder and on free ports, without waiting for the result. */
export function serveProgram(test: Teardown, data: string, environment: NodeJS.ProcessEnv = {}): Program {
  const dataAndPorts = ['--data', data, '--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  const flags = [...dataAndPorts, '--allow-webhook-range', '127.0.0.0/8'];
  return new Program(test, process.execPath, [LOCKGATE, 'serve', ...flags], environment);
}
