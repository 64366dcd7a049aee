/** Opens an address in the user's browser. Must not wait for the browser, nor keep this process running. */
import { spawn } from 'node:child_process';

/** The program that opens an address, by platform; others have `xdg-open`. */
const OPENERS: Readonly<Record<string, readonly [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};
const OTHER_OPENER = ['xdg-open'] as const;

/** Whether a browser can show a window here. */
export function hasDisplay(environment: NodeJS.ProcessEnv, platform: string): boolean {
  if (platform in OPENERS) return true;
  return Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY);
}

/** Opens an address. Resolves to false if there is no program for that. */
export async function openInBrowser(address: string): Promise<boolean> {
  const [program, ...args] = OPENERS[process.platform] ?? OTHER_OPENER;
  return await new Promise((resolve) => {
    const opener = spawn(program, [...args, address], { stdio: 'ignore', detached: true });
    opener.once('error', () => resolve(false));
    opener.once('spawn', () => resolve(true));
    opener.unref();
  });
}
