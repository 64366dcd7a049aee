/** The page of the operator's port. */

import type { Screen } from './app/screen.js';
import { Shell } from './app/shell.js';
import { startPage } from './app/start.js';
import { TraceScreen } from './screens/trace-screen.js';

startPage(({ traceWorker }) => {
  const screens: readonly Screen[] = [
    { name: 'trace', title: 'Trace', key: 't', isListed: true, view: () => <TraceScreen workerUrl={traceWorker} /> },
  ];
  return <Shell title="Operator" screens={screens} account={null} />;
});
