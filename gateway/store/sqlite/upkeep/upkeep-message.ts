/** Messages between upkeep.ts and its thread (upkeep-thread.ts). */
import type { CheckReport } from '../../contract/check-report.js';

/** The thread's task; the thread exits when the task is done. */
export type UpkeepTask =
  | { readonly type: 'check'; readonly file: string }
  | { readonly type: 'copy'; readonly from: string; readonly to: string };

/**
 * A message from the thread. In `progress`, `task` is the check's name or `pages`, and the numbers count rows or pages
 * (`total` null if unknown); `sums` are the checksums of the copy's blocks (file-sums.ts); `code` is that of a
 * LockgateError, null for any other error.
 */
export type UpkeepAnswer =
  | { readonly type: 'progress'; readonly task: string; readonly done: number; readonly total: number | null }
  | { readonly type: 'checked'; readonly report: CheckReport }
  | { readonly type: 'copied'; readonly bytes: number; readonly sums: Uint32Array }
  | { readonly type: 'failed'; readonly code: string | null; readonly message: string };
