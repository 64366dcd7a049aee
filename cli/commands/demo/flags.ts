import type { RunFlags } from '../serve/serve.js';

/** The flags of the demo: those of `serve`, and its own. */
export interface DemoFlags extends RunFlags {
  readonly locks: number;
  readonly speed: number;
  readonly seed: string;
  readonly webhookPort?: number;
}
