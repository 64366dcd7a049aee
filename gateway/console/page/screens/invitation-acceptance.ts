/**
 * Accepts an invitation, which makes the user, and logs in. An invitation can be accepted once: if the login fails, the
 * next attempt only logs in. Pure, apart from the calls.
 */
import type { merchantApi } from '../api/merchant.js';

/** What a person fills in. */
interface AcceptanceInput {
  /** The user's name; the one in the invitation if it names one. */
  readonly username: string;
  readonly password: string;
}

export class InvitationAcceptance {
  readonly #calls: Pick<typeof merchantApi, 'acceptInvitation' | 'logIn'>;
  readonly #invitation: { readonly token: string; readonly merchant: string; readonly username: string | null };
  #acceptedAs: string | null = null;

  /** @param invitation `username`: null if the person may choose it */
  constructor(
    calls: Pick<typeof merchantApi, 'acceptInvitation' | 'logIn'>,
    invitation: { readonly token: string; readonly merchant: string; readonly username: string | null },
  ) {
    this.#calls = calls;
    this.#invitation = invitation;
  }

  /** The name of the user that was made; null until the invitation is accepted. */
  get acceptedAs(): string | null {
    return this.#acceptedAs;
  }

  /** Resolves when the person is logged in. @throws ApiFailure */
  async attempt({ username, password }: AcceptanceInput): Promise<void> {
    const { token, merchant, username: given } = this.#invitation;
    const name = given ?? username;
    if (this.#acceptedAs === null) {
      await this.#calls.acceptInvitation({ token, password, ...(given === null && { username: name }) });
      this.#acceptedAs = name;
    }
    await this.#calls.logIn({ merchant, username: this.#acceptedAs, password });
  }
}
