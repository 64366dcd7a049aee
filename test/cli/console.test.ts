/** `lockgate console`: its link, when it opens the browser, and when it prints the command of a tunnel instead. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { hasDisplay } from '../../cli/commands/console/browser.js';
import { consoleAddress, tunnelCommand } from '../../cli/commands/console/ssh-tunnel.js';
import { consoleText } from '../../cli/commands/demo/accounts.js';
import { afterThisTurn } from '../../proto/clock.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { pageHeaders } from '../helpers/console/dashboard.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const HERE = { sshConnection: undefined, user: 'ada', hostName: 'depot' };
/** SSH_CONNECTION has the address and port of the reader's machine, then those of this one. */
const OVER_SSH = { ...HERE, sshConnection: '198.51.100.7 50122 192.0.2.4 22' };

t.test('on the gateway’s machine, the browser opens its address', async (t) => {
  t.equal(tunnelCommand(new URL('http://127.0.0.1:8081'), HERE), null);
  const isTunnelled = false;
  t.equal(consoleAddress(new URL('http://[::1]:8081'), isTunnelled), 'http://[::1]:8081');
});

t.test('over SSH, the port is forwarded from the machine that the reader came from', async (t) => {
  const gateway = new URL('http://127.0.0.1:8081');
  t.equal(tunnelCommand(gateway, OVER_SSH), 'ssh -N -L 8081:127.0.0.1:8081 ada@192.0.2.4');
  const otherPort = { ...OVER_SSH, sshConnection: '2001:db8::7 50122 2001:db8::4 2222' };
  t.equal(tunnelCommand(new URL('http://[::1]:9081'), otherPort), 'ssh -N -L 9081:[::1]:9081 -p 2222 ada@2001:db8::4');
  t.equal(tunnelCommand(gateway, { ...OVER_SSH, sshConnection: 'x' }), 'ssh -N -L 8081:127.0.0.1:8081 ada@depot');
  t.equal(tunnelCommand(gateway, { ...OVER_SSH, user: null }), 'ssh -N -L 8081:127.0.0.1:8081 192.0.2.4');
  const isTunnelled = true;
  t.equal(consoleAddress(new URL('http://[::1]:9081'), isTunnelled), 'http://127.0.0.1:9081');
});

t.test('plain HTTP to another machine needs a tunnel to it, HTTPS needs none', async (t) => {
  t.equal(tunnelCommand(new URL('http://10.0.0.5:8081'), HERE), 'ssh -N -L 8081:127.0.0.1:8081 10.0.0.5');
  t.equal(tunnelCommand(new URL('https://ops.example.com'), OVER_SSH), null);
});

t.test('a browser is opened only where a desktop can show its window', async (t) => {
  t.notOk(hasDisplay({}, 'linux'));
  t.ok(hasDisplay({ DISPLAY: ':0' }, 'linux'));
  t.ok(hasDisplay({ WAYLAND_DISPLAY: 'wayland-0' }, 'linux'));
  t.ok(hasDisplay({}, 'darwin'));
});

t.test('a link is printed and opened; over SSH it is only printed, with the command of the tunnel', async (t) => {
  const gateway = await testGateway(t);
  const folder = tempFolder(t);
  // Stands in for the browser: writes the link that it is called with.
  const opened = path.join(folder, 'opened');
  writeFileSync(path.join(folder, 'xdg-open'), `#!/bin/sh\necho "$1" >${opened}.new && mv ${opened}.new ${opened}\n`);
  chmodSync(path.join(folder, 'xdg-open'), 0o755);
  const desktop = {
    PATH: `${folder}:${process.env.PATH}`,
    DISPLAY: ':0',
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  const run = (args: readonly string[], others: Record<string, string> = {}) =>
    runCommand(['console', ...args], { environment: { ...desktop, ...others } });
  const overSsh = await run([], { SSH_CONNECTION: '198.51.100.7 50122 192.0.2.4 22' });
  t.match(overSsh.stdout, new RegExp(`ssh -N -L ${gateway.operatorPort}:127.0.0.1:${gateway.operatorPort} `));
  // A link ends in a token: 32 random bytes in base64url.
  t.match(overSsh.stdout, /#lgl_[\w-]{43}\n$/);
  const { stdout: json } = await run(['--json']);
  const { link, role, tunnel } = JSON.parse(json) as Record<string, string | null>;
  t.match({ link, role, tunnel }, { link: /#lgl_[\w-]{43}$/, role: 'admin', tunnel: null });
  t.match((await run(['--no-open'])).stdout, /^http.*#lgl_[\w-]{43}\n$/);
  const { stdout } = await run([]);
  while (!existsSync(opened)) await new Promise<void>((resolve) => afterThisTurn(resolve));
  t.equal(readFileSync(opened, 'utf8'), stdout, 'the link of this call was opened, and none before');
  const headers = { ...pageHeaders(gateway.operatorPort), 'content-type': 'application/json' };
  for (const text of [stdout, await consoleText(gateway, desktop.LOCKGATE_GATEWAY)]) {
    const body = JSON.stringify({ token: /#(lgl_[\w-]{43})/.exec(text)?.[1] });
    const { status } = await fetch(`${desktop.LOCKGATE_GATEWAY}/console/login`, { method: 'POST', headers, body });
    t.equal(status, 200, 'the link of the command works, and that of the demo');
  }
});
