/** A logout token that is refused. The message names the broken rule and holds no part of the token. */
export class InvalidLogoutToken extends Error {
  override readonly name = 'InvalidLogoutToken';
}
