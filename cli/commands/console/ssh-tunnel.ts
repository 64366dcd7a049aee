/**
 * When the console must be reached through an SSH tunnel, and the tunnel's command: over plain HTTP, the gateway lets
 * only browsers on its own machine log in to the console. Pure.
 */

/** Where this command runs. */
export interface CommandPlace {
  /** The environment's SSH_CONNECTION: the addresses and ports of client and server; undefined without SSH. */
  readonly sshConnection: string | undefined;
  /** The user's name; null if there is none. */
  readonly user: string | null;
  /** This machine's name. */
  readonly hostName: string;
}

/** The port of an SSH server that a command need not name. */
const SSH_PORT = '22';
const DEFAULT_PORT = '80';

/**
 * The command that makes the gateway's port reachable on the reader's own machine, at the same port; null if the
 * browser can open the gateway's address as it is.
 */
export function tunnelCommand(gateway: URL, { sshConnection, user, hostName }: CommandPlace): string | null {
  if (gateway.protocol === 'https:') return null;
  const port = gateway.port || DEFAULT_PORT;
  const forward = (host: string): string => `ssh -N -L ${port}:${host}:${port}`;
  if (!isLoopback(gateway.hostname)) return `${forward('127.0.0.1')} ${withoutBrackets(gateway.hostname)}`;
  if (sshConnection === undefined) return null;
  const [, , server = hostName, serverPort = SSH_PORT] = sshConnection.split(' ').filter(Boolean);
  const portFlag = serverPort === SSH_PORT ? '' : `-p ${serverPort} `;
  return `${forward(gateway.hostname)} ${portFlag}${user === null ? '' : `${user}@`}${server}`;
}

/** The address that the reader's browser opens. */
export function consoleAddress(gateway: URL, isTunnelled: boolean): string {
  return isTunnelled ? `http://127.0.0.1:${gateway.port || DEFAULT_PORT}` : gateway.origin;
}

function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host);
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}
