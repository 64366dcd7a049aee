/** How many files a process may have open at once, each connection among them: what `ulimit -n` says. */

/** Of this process; undefined where the system sets no limit, or does not tell. */
export function mostOpenFiles(): number | undefined {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}
