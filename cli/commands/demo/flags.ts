/** The flags of `lockgate demo`, in a separate file so that its help does not load the demo. */
import type { RunFlags } from '../serve/serve.js';

/** The flags of `serve`, and those that only the demo has. */
export interface DemoFlags extends RunFlags {
  readonly locks: number;
  /** How many times faster than real time the locks live. */
  readonly speed: number;
  readonly seed: string;
  readonly webhookPort?: number;
}
