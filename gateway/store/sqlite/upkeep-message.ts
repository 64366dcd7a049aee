/** What is said between whoever has upkeep done and the thread that does it (upkeep-thread.ts). */
import type { CheckReport } from '../contract/check-report.js';

/** What the thread is to do; it ends when it is done. */
export type UpkeepTask =
  | { readonly type: 'check'; readonly file: string }
  | { readonly type: 'copy'; readonly from: string; readonly to: string };

/** What it says. */
export type UpkeepAnswer =
  | { readonly type: 'progress'; readonly what: string; readonly done: number; readonly total: number | null }
  | { readonly type: 'checked'; readonly report: CheckReport }
  | { readonly type: 'copied'; readonly bytes: number; readonly sums: Uint32Array }
  | { readonly type: 'failed'; readonly code: string | null; readonly message: string };
