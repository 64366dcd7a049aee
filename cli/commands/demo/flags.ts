import type { RunFlags } from '../serve/serve.js';

/** What the demo can be told besides the settings. */
export interface DemoFlags extends RunFlags {
  readonly locks: number;
  readonly speed: number;
  readonly seed: string;
  readonly webhookPort?: number;
}
