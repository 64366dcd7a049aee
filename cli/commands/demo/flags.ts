import type { RunFlags } from '../serve/serve.js';

/** The flags of the demo, besides the settings. */
export interface DemoFlags extends RunFlags {
  readonly locks: number;
  readonly speed: number;
  readonly seed: string;
  readonly webhookPort?: number;
}
