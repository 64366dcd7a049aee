/** The worker that judges a dropped trace (trace/trace-check.ts), so that the page stays responsive meanwhile. */
import { checkTrace } from './trace/trace-check.js';
import type { CheckMessage, CheckRequest } from './trace/trace-report.js';

const post = (message: CheckMessage): void => postMessage(message);

addEventListener('message', ({ data }: MessageEvent<CheckRequest>) => {
  checkTrace(data.file, data.file.name, (lines) => post({ type: 'progress', lines })).then(
    (report) => post({ type: 'done', report }),
    (error: unknown) => post({ type: 'failed', why: error instanceof Error ? error.message : String(error) }),
  );
});
