/** The operators' screens about the gateway itself: its events, the audit log, its health and its settings. */
import type { Screen } from '../../app/screen.js';
import { TailLog } from '../../live/tail-log.js';
import { AuditScreen } from './audit-screen.js';
import { LiveScreen } from './live-screen.js';
import { NodesScreen } from './nodes-screen.js';
import { SettingsScreen } from './settings-screen.js';

/**
 * The screens of one session. They remember events, so each session needs its own.
 *
 * @param liveWorker the address of the worker that follows the gateway's stream
 */
export function gatewayScreens(liveWorker: string): readonly Screen[] {
  const log = new TailLog();
  return [
    {
      name: 'live',
      title: 'Live',
      key: 'e',
      isListed: true,
      view: ({ route }) => <LiveScreen route={route} workerUrl={liveWorker} log={log} />,
    },
    { name: 'audit', title: 'Audit', key: 'a', isListed: true, view: AuditScreen },
    { name: 'nodes', title: 'Nodes', key: 'h', isListed: true, view: NodesScreen },
    { name: 'settings', title: 'Settings', key: 's', isListed: true, view: SettingsScreen },
  ];
}
