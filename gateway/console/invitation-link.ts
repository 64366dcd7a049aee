/** The link of an invitation. Its token is in the fragment, which browsers do not send, so that no server logs it. */

/** The link without the address of the merchants' interface. The page at `/` reads the fragment. */
export function invitationPath(token: string): string {
  return `/#invitation=${token}`;
}
